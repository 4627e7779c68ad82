"""Cost: verifying several tokens reads more experts."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, DECISIVE, HINT, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import Facts, Symptom


class ExpertGrowth(Cause):
    """Verifying several tokens reads more experts of the target."""

    id, title = "expert-growth", "Verifying several tokens reads more experts of the target"
    kind = Kind.COST
    reports = 3
    explains = frozenset({Symptom.COST, Symptom.SLOW, Symptom.WASTE})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        yield from when(facts.case.mixture_of_experts is False, "the target is dense", -DECISIVE, refutes=True)
        yield from when(facts.experts, "the target is a mixture of experts", CLEAR)
        running, width = facts.running, facts.run.width
        yield from when(
            facts.experts and running is not None and running <= 8,
            f"small batch ({running:.0f}): each further token brings experts of its own" if running else "",
            CLEAR,
        )
        yield from when(facts.experts and width is not None and width >= 8, f"{width} tokens are verified a step", HINT)
        yield from when(
            running is not None and running >= 64, "at this batch nearly all experts are read anyway", -STRONG
        )

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Measure with and without speculation at a larger batch, then: draftscope compare SMALL LARGE",
            {"speed-up rises with the batch": "experts are the cost", "it falls": "compute or cache is the limit"},
        )
