"""Wiring: drafted ids name other tokens than the draft means."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, DECISIVE, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import LOW_ACCEPTANCE, Facts, Symptom


class VocabularyMapWrong(Cause):
    """Drafted ids name other tokens than the draft means."""

    id, title = "vocabulary-map-wrong", "Drafted ids name other tokens than the draft means"
    kind = Kind.WIRING
    reports = 3
    explains = frozenset(LOW_ACCEPTANCE | {Symptom.INACTIVE, Symptom.REFUSED})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        vocabulary = facts.finding("DRF004")
        yield from when(facts.ngram, "n-gram drafts have no vocabulary of their own", -DECISIVE, refutes=True)
        yield from when(
            vocabulary is not None and vocabulary.severity.word == "critical",
            "the vocabularies cannot be one (DRF004)",
            DECISIVE + 1,
            sufficient=True,
        )
        yield from when(
            vocabulary is not None and vocabulary.severity.word != "critical",
            "the vocabularies differ in size (DRF004)",
            CLEAR,
        )
        draft, target = facts.run.record.draft_config, facts.run.record.target_config
        both = draft is not None and target is not None and draft.number("vocab_size") and target.number("vocab_size")
        yield from when(both and vocabulary is None, "both sides state the same vocabulary", -STRONG)
        yield from when(
            facts.value("accepted_per_step") is not None and not facts.near_zero,
            "drafts are accepted, so most ids mean the same",
            -STRONG,
        )
        yield from when(facts.earlier_was_better, "the same draft was better before", -CLEAR)

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Tokenize one text with both tokenizers and compare the ids; look for d2t in the draft's weights",
            {"ids differ, or d2t is missing": "the map is at fault", "all agree": "the vocabulary is not the reason"},
        )
