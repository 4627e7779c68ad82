"""Cost: far more is verified than can be accepted."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import Facts, Symptom


class VerifyTooWide(Cause):
    """Far more tokens are verified than can be accepted."""

    id, title = "verify-too-wide", "Far more tokens are verified than can be accepted"
    kind = Kind.COST
    reports = 3
    explains = frozenset({Symptom.COST, Symptom.SLOW, Symptom.WASTE})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        width, depth = facts.run.width, facts.run.depth
        wide = width is not None and depth is not None and width > 2 * (depth + 1)
        yield from when(wide, f"{width} tokens verified for at most {(depth or 0) + 1} accepted", STRONG)
        yield from when(facts.fired("PAY003"), "more is drafted than can be accepted (PAY003)", STRONG)
        yield from when(
            width is not None and width <= 8 and not wide, f"only {width} tokens are verified a step", -STRONG
        )

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        width = facts.run.width
        return Experiment(
            f"Run once with half of the {width} draft tokens at the same load, then: draftscope compare WIDE NARROW",
            {"throughput rises": "go on halving while it does", "throughput falls": "the width was earning its cost"},
        )
