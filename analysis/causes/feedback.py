"""Wiring: the draft's own later steps are fed the wrong state."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, DECISIVE, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import LOW_ACCEPTANCE, Facts


class FeedbackBroken(Cause):
    """The draft's steps after the first are fed the wrong state."""

    id, title = "feedback-broken", "The draft's steps after the first are fed the wrong state"
    kind = Kind.WIRING
    reports = 2
    explains = frozenset(LOW_ACCEPTANCE)

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        cliff = facts.finding("ACC005")
        later = cliff is not None and cliff.values["position"] > 1
        yield from when(later, "acceptance breaks off after a good position (ACC005)", DECISIVE)
        yield from when(cliff is not None and not later, "the first position already fails (ACC005)", -STRONG)
        yield from when(facts.prefix and cliff is None, "positions fall gently", -STRONG)
        yield from when(facts.near_zero, "not even first drafts are accepted", -CLEAR)
        yield from when(facts.ngram, "n-gram drafts feed nothing back", -DECISIVE, refutes=True)

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        depth = facts.run.depth
        return Experiment(
            "Run once with depth 1 and compare the first position with that of the deeper run",
            {
                "length at depth 1 is as validation says": f"the later steps are wrong; keep depth 1 instead of {depth} until repaired",
                "also low": "the first position fails as well: look at what the target hands over",
            },
        )
