"""Settings: the scheduler does not fit the method."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, HINT, STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.commands import compare, relaunch
from analysis.causes.facts import EXPENSIVE, LOW_ACCEPTANCE, Facts


class SchedulingConflict(Cause):
    """Overlap or asynchronous scheduling does not fit this method.

    With it, the next batch is prepared before the last one's tokens are known; a method that
    needs those tokens drafts from stale text. Without it, the GPU waits for the CPU in every
    step. Which of the two runs depends on method and release.
    """

    id = "scheduling-conflict"
    kind = Kind.SETTINGS
    reports = (
        "vllm-project/vllm#37150",
        "sgl-project/sglang#12411",
        "sgl-project/sglang#15307",
        "vllm-project/vllm#31998",
        "sgl-project/sglang#9588",
    )
    explains = LOW_ACCEPTANCE | EXPENSIVE
    changes = (
        ("async_scheduling", STRONG),
        ("disable_overlap_schedule", STRONG),
        ("speculative_config.method", CLEAR),
        ("release", HINT),
    )

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """Whether the scheduler overlaps, and what the method needs."""
        asynchronous = facts.flag("async_scheduling") is True or facts.method == "ngram_gpu"
        if facts.copies and asynchronous and facts.low_acceptance:
            yield favours(STRONG, "copied drafts are looked up while the last tokens are not known yet")
        elif facts.low_acceptance and not facts.costly:
            yield opposes(STRONG, "scheduling moves time, not the acceptance of such drafts")
        if facts.costly and facts.fired("FLG002"):
            yield favours(CLEAR, "the overlap scheduler is off, and the step is dear", "FLG002")
        elif facts.costly and facts.flag("disable_overlap_schedule") is False:
            yield opposes(HINT, "the overlap scheduler is on")

    def experiment(self, facts: Facts) -> Experiment:
        """The other scheduler."""
        if facts.engine == "vllm":
            command = relaunch(facts, "--no-async-scheduling", without=("--async-scheduling",))
        elif facts.flag("disable_overlap_schedule") is True:
            command = relaunch(facts, without=("--disable-overlap-schedule",))
        else:
            command = relaunch(facts, "--disable-overlap-schedule")
        return Experiment(
            "Run once with the scheduler switched, same draft and prompts",
            (command, compare(facts, "OTHER_SCHEDULER_LOG")),
            {
                "the figures change clearly": "the scheduler is part of it",
                "no difference": "scheduling is not the reason",
            },
        )
