"""Load: verification is bound by compute."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.commands import compare
from analysis.causes.common import step_cost
from analysis.causes.facts import EXPENSIVE, Facts

MANY_TOKENS = 256
FEW_TOKENS = 64
"""Tokens in one verification from which it is bound by compute, and up to which by memory. Counts; theory section 5.4."""


class BatchBeyondKnee(Cause):
    """The batch is so large that verification is bound by compute.

    Extra tokens are nearly free while a step waits for memory. Beyond the knee each costs its
    share of compute, and rejected ones are a loss: one report saw 27% better at 1 request per
    second and 13% worse beyond 8.
    """

    id = "batch-beyond-knee"
    kind = Kind.LOAD
    reports = ("llm-d/llm-d#2074", "SafeAILab/EAGLE#298")
    explains = EXPENSIVE

    def applies(self, facts: Facts) -> bool:
        """Where load and width are known."""
        return facts.verified_at_once is not None

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """Tokens in one verification."""
        yield from step_cost(facts)
        tokens = facts.verified_at_once or 0.0
        if tokens >= MANY_TOKENS:
            yield favours(STRONG, f"{tokens:.0f} tokens are verified at a time")
        elif tokens <= FEW_TOKENS:
            yield opposes(STRONG, f"only {tokens:.0f} tokens are verified at a time")

    def experiment(self, facts: Facts) -> Experiment:
        """Half the requests."""
        half = max(1, round((facts.running or 2) / 2))
        return Experiment(
            f"Measure the speed-up at {half} concurrent requests",
            (f"draftscope diagnose LOG_AT_{half} --baseline BASELINE_AT_{half}", compare(facts, f"LOG_AT_{half}")),
            {
                "it rises": "limit speculation to small batches, or lower the depth",
                "it stays": "the batch is not the reason",
            },
        )
