"""Traffic: nothing to copy."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.facts import LOW_ACCEPTANCE, Facts, Symptom


class TextDoesNotRepeat(Cause):
    """The text does not repeat itself, so copied drafts find nothing.

    N-gram and suffix methods draft what followed the same words before. Chat gives them little,
    summaries and code edits much. Long n-grams may never match at all.
    """

    id = "text-does-not-repeat"
    kind = Kind.TRAFFIC
    reports = ("ggml-org/llama.cpp#19493",)
    explains = LOW_ACCEPTANCE | {Symptom.RARE, Symptom.INACTIVE}

    def applies(self, facts: Facts) -> bool:
        """Methods that copy."""
        return facts.copies

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What the method lives from."""
        yield favours(STRONG, "copied drafts live from repetition")
        if facts.fired("FLG006", "ACC008"):
            yield favours(CLEAR, "hardly any draft is made at all", "ACC008" if facts.fired("ACC008") else "FLG006")
        if facts.earlier_was_better:
            yield opposes(STRONG, "copying accepted more before", "ACC003")

    def experiment(self, facts: Facts) -> Experiment:
        """A text that repeats."""
        del facts
        return Experiment(
            "Send a prompt that asks to repeat a given text, and judge that log alone",
            ("draftscope diagnose REPEAT_LOG",),
            {
                "it is high": "the method works, and the traffic does not suit it",
                "it is low too": "the method itself is broken here",
            },
        )
