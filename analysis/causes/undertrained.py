"""Draft: another or an undertrained checkpoint is served."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, DECISIVE, HINT, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import LOW_ACCEPTANCE, Facts


class DraftUntrainedOrWrong(Cause):
    """The checkpoint is undertrained, or not the one that was validated."""

    id, title = "draft-untrained-or-wrong", "The checkpoint is undertrained, or not the one that was validated"
    kind = Kind.DRAFT
    reports = 6
    explains = frozenset(LOW_ACCEPTANCE)

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        yield from when(facts.ngram, "n-gram drafts are not trained", -DECISIVE, refutes=True)
        yield from when(
            facts.earlier_was_better and not facts.differs("draft"),
            "the same draft was better before (ACC003)",
            -STRONG,
        )
        yield from when(
            facts.earlier_was_better and facts.differs("draft"), "the draft is what changed (ACC003)", CLEAR
        )
        yield from when(facts.fired("ACC001"), "its validation promises far more, if it is this checkpoint", -HINT)
        yield from when(facts.near_zero, "even small training gives 40% at the first position", -CLEAR)
        yield from when(facts.fired("ACC006", "ACC007"), "it works in part of the traffic or units", -CLEAR)
        rate = facts.value("conditional_acceptance_rate")
        yield from when(
            rate is not None and 0.25 < rate < 0.6 and not facts.earlier_was_better,
            f"conditional acceptance {rate:.2f} is what undertrained drafts show" if rate else "",
            HINT,
        )

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Compare the digest of the served weights with the validated ones, and replay the validation prompts at temperature 0",
            {
                "digests differ": "another checkpoint is served",
                "replay matches validation": "the draft is fine and the traffic differs",
                "replay is low too": "wiring, not training: the same weights were better offline",
            },
        )
