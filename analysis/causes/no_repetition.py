"""Traffic: n-gram drafts find nothing to copy."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import DECISIVE, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import LOW_ACCEPTANCE, Facts, Symptom


class TextDoesNotRepeat(Cause):
    """The text does not repeat itself, so n-gram drafts find nothing."""

    id, title = "text-does-not-repeat", "The text does not repeat itself, so n-gram drafts find nothing"
    kind = Kind.TRAFFIC
    reports = 3
    explains = frozenset(LOW_ACCEPTANCE | {Symptom.RARE, Symptom.INACTIVE})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        yield from when(
            not facts.ngram, f"method {facts.method or 'unknown'} does not copy from the text", -DECISIVE, refutes=True
        )
        yield from when(facts.ngram, "n-gram drafts live from repetition", STRONG)
        yield from when(facts.earlier_was_better, "the same method accepted more before (ACC003)", -STRONG)

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Send a prompt that asks to repeat a given text, and look at its acceptance",
            {
                "it is high": "the method works, the traffic does not suit it",
                "it is low too": "the method itself is broken here",
            },
        )
