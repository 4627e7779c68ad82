"""Measurement: too little was seen."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.facts import LOW_ACCEPTANCE, Facts, Symptom

FEW_STEPS = 200
"""Verify steps below which chance explains much. Count."""


class TooFewSteps(Cause):
    """So little was seen that chance or the start-up explains it.

    The first line after the start holds warm-up requests and idle time; a handful of steps says
    nothing about a rate.
    """

    id = "too-few-steps"
    kind = Kind.MEASUREMENT
    reports = ("vllm-project/vllm#7301",)
    explains = LOW_ACCEPTANCE | {Symptom.SLOW, Symptom.COST}

    def applies(self, facts: Facts) -> bool:
        """Where the evidence is said to be thin."""
        return facts.fired("MEA006")

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """How many steps stand behind the figures."""
        pooled = facts.run.pooled
        steps = pooled.verify_steps if pooled is not None else 0.0
        if pooled is not None and pooled.tainted:
            yield favours(CLEAR, "every window holds start-up, a pause or idle time", "MEA006")
        if steps < FEW_STEPS:
            yield favours(STRONG, f"{steps:.0f} steps were seen", "MEA006")
        else:
            yield opposes(STRONG, f"{steps:.0f} steps were seen, enough for what was found")

    def experiment(self, facts: Facts) -> Experiment:
        """A longer log."""
        thin = facts.finding("MEA006")
        windows = f"{thin.values['windows_needed']} windows" if thin is not None else "more windows"
        return Experiment(
            f"Collect {windows} under steady load",
            ("draftscope diagnose LONGER_LOG",),
            {"the figures hold": "it was no chance", "they move": "the first log was too short"},
        )
