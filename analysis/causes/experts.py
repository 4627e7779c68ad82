"""Cost: verifying several tokens reads more experts."""

from __future__ import annotations

from collections.abc import Iterator

from analysis import words
from analysis.causes.base import CLEAR, HINT, STRONG, Cause, Experiment, Kind, Reason, favours, opposes, refutes
from analysis.causes.commands import compare
from analysis.causes.common import step_cost
from analysis.causes.facts import EXPENSIVE, Facts, Symptom

FEW_REQUESTS = 8
"""Running requests up to which each verified token brings experts of its own. Count; theory section 5.4."""
MANY_REQUESTS = 64
"""Running requests from which nearly all experts are read anyway. Count; theory section 5.4."""


class ExpertGrowth(Cause):
    """Verifying several tokens reads more experts of the target.

    A mixture of experts reads few experts for one token and more for each further one: with 128
    experts of which 8 work, four tokens of one request read 3.6 times the weights. At 64
    requests nearly all are read anyway, and the difference is gone.
    """

    id = "expert-growth"
    kind = Kind.COST
    reports = ("sgl-project/SpecForge#339", "kekzl/imp#1428")
    explains = EXPENSIVE | {Symptom.WASTE}

    def applies(self, facts: Facts) -> bool:
        """Targets that may be a mixture of experts."""
        return facts.case.mixture_of_experts is not None

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """The kind of target, and the batch."""
        if not facts.experts:
            yield refutes("the target is dense")
            return
        yield from step_cost(facts)
        yield favours(CLEAR, "the target is a mixture of experts")
        running, width = facts.running, facts.run.width
        if running is not None and running <= FEW_REQUESTS:
            yield favours(
                CLEAR, f"with {words.plural(running, 'request')} running each further token brings experts of its own"
            )
        elif running is not None and running >= MANY_REQUESTS:
            yield opposes(STRONG, f"with {words.plural(running, 'request')} running nearly all experts are read anyway")
        if width is not None and width >= FEW_REQUESTS:
            yield favours(HINT, f"{width} tokens are verified a step")

    def experiment(self, facts: Facts) -> Experiment:
        """A larger batch."""
        running = round(4 * (facts.running or 1))
        return Experiment(
            f"Measure with and without speculation at {running} concurrent requests",
            (
                f"draftscope diagnose LOG_AT_{running} --baseline BASELINE_AT_{running}",
                compare(facts, f"LOG_AT_{running}"),
            ),
            {"the speed-up rises with the batch": "experts are the cost", "it falls": "compute or cache is the limit"},
        )
