"""Load: the batch is too large for speculation to pay."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import Facts, Symptom


class BatchBeyondKnee(Cause):
    """The batch is so large that verification is bound by compute."""

    id, title = "batch-beyond-knee", "The batch is so large that verification is bound by compute"
    kind = Kind.LOAD
    reports = 3
    explains = frozenset({Symptom.SLOW, Symptom.COST})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        running, width = facts.running, facts.run.width or 1
        tokens = running * width if running is not None else None
        yield from when(
            tokens is not None and tokens >= 256,
            f"{tokens:.0f} tokens are verified at a time" if tokens else "",
            STRONG,
        )
        yield from when(
            tokens is not None and tokens <= 64,
            f"only {tokens:.0f} tokens are verified at a time" if tokens else "",
            -STRONG,
        )

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Measure speed-up at half and at a quarter of the concurrent requests",
            {
                "it rises": "limit speculation to small batches, or lower the depth",
                "it stays": "the batch is not the reason",
            },
        )
