"""Wiring: drafted ids mean other tokens."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, HINT, STRONG, Cause, Experiment, Kind, Reason, establishes, favours, opposes
from analysis.causes.facts import LOW_ACCEPTANCE, Facts, Symptom
from collector.domain.findings import Severity


class VocabularyMapWrong(Cause):
    """Drafted ids name other tokens than the draft means: vocabulary map or tokenizer.

    A draft with a reduced vocabulary needs its map (d2t); a draft of another family has other
    ids for the same text. Engines compare sizes at most. What is drafted is then unrelated to
    what is meant, and next to nothing is accepted.
    """

    id = "vocabulary-map-wrong"
    kind = Kind.WIRING
    reports = ("LostRuins/koboldcpp#2325", "a-ghorbani/pocketpal-ai#876", "ggml-org/llama.cpp, vocabulary check")
    explains = LOW_ACCEPTANCE | {Symptom.INACTIVE, Symptom.REFUSED}

    def applies(self, facts: Facts) -> bool:
        """Drafts with a vocabulary."""
        return not facts.copies

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """The sizes of both vocabularies, and whether anything is accepted."""
        refused = facts.run.record.events_of("vocabulary-mismatch")
        if refused:
            yield establishes(f"the engine says: {refused[0].evidence.text.strip()}")
        elif facts.run.record.events_of("vocabulary-translated"):
            yield favours(STRONG, "the engine translates tokens between the two vocabularies")
        finding = facts.finding("DRF004")
        if finding is not None and finding.severity is Severity.CRITICAL:
            yield establishes("the two vocabularies cannot be one", "DRF004")
        elif finding is not None:
            yield favours(CLEAR, "the vocabularies differ in size", "DRF004")
        elif self._same_size(facts):
            yield opposes(STRONG, "both sides state the same vocabulary")
        if facts.near_zero:
            yield favours(HINT, "practically nothing is accepted", "ACC002")
        elif facts.value("accepted_per_step") is not None:
            yield opposes(STRONG, "drafts are accepted, so most ids mean the same")

    @staticmethod
    def _same_size(facts: Facts) -> bool:
        sizes = [
            side.number("vocab_size") if side is not None else None
            for side in (facts.draft_config, facts.target_config)
        ]
        return None not in sizes and sizes[0] == sizes[1]

    def experiment(self, facts: Facts) -> Experiment:
        """Tokenize the same text twice."""
        del facts
        ids = "print(T.from_pretrained(p)('The quick brown fox, 1984 €').input_ids)"
        return Experiment(
            "Tokenize one text with both tokenizers and compare the ids; look for d2t in the draft's weights",
            (f'python3 -c "from transformers import AutoTokenizer as T; import sys; p = sys.argv[1]; {ids}" MODEL',),
            {"ids differ, or d2t is missing": "the map is at fault", "all agree": "the vocabulary is not the reason"},
        )
