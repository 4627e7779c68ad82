"""Measurement: the baseline ran under other conditions."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.commands import without_speculation
from analysis.causes.facts import EXPENSIVE, Facts


class BaselineUnlike(Cause):
    """The run without speculation had other load, flags or prompts.

    Plain decoding gains from every further request of a batch, and engines change scheduling
    and limits when they speculate. A speed-up over another load, or over a slow reference, says
    little.
    """

    id = "baseline-unlike"
    kind = Kind.MEASUREMENT
    reports = ("sgl-project/sglang#5502", "vllm-project/vllm#38182")
    explains = EXPENSIVE

    def applies(self, facts: Facts) -> bool:
        """Where there is a run without speculation."""
        return facts.baseline is not None

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What MEA008 says about the pair."""
        if facts.finding_about_others("MEA008") is not None:
            yield favours(STRONG, "load or flags of the two runs differ", "MEA008")
        else:
            yield opposes(CLEAR, "load and flags of both runs agree")

    def experiment(self, facts: Facts) -> Experiment:
        """A baseline at equal batch."""
        source = facts.run.record.source
        return Experiment(
            "Repeat the baseline with the same flags, prompts and number of concurrent requests",
            (without_speculation(facts), f"draftscope diagnose {source} --baseline NEW_BASELINE_LOG"),
            {"the loss is gone": "the first baseline was not comparable", "it stays": "the loss is real"},
        )
