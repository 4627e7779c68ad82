"""DRF004: vocabulary or token map do not fit."""

from __future__ import annotations

from analysis.base import Outcome, Rule
from analysis.view import RunView
from collector.domain.drafts import ModelConfig
from collector.domain.findings import Confidence, Question, Severity

PADDING = 1_024
"""How far two vocabularies may lie apart and still be one padded to a multiple. Tokens."""


class VocabIncompatible(Rule):
    """Vocabulary sizes or the token map of draft and target cannot fit.

    Why it matters:
        Drafted ids then name other tokens than the draft means, or none: everything is
        rejected, or the server stops. A reduced draft vocabulary by itself is no fault.

    How to fix:
        Use a draft made for this target's tokenizer, with the token map it was trained with.

    Example:
        A draft with 32,000 tokens of its own for a target with 151,936.

    Source:
        SGLang and vLLM, loading of draft vocabularies (`d2t`, `draft_vocab_size`).
    """

    id, name = "DRF004", "vocab-incompatible"
    question = Question.CONFIG
    severity = Severity.CRITICAL

    def check(self, speculating: RunView, draft: ModelConfig, target: ModelConfig) -> Outcome:
        """Full vocabularies against each other, the reduced one against the draft's own."""
        del speculating
        own, reduced, theirs = draft.number("vocab_size"), draft.number("draft_vocab_size"), target.number("vocab_size")
        if own and reduced and reduced > own:
            yield self.finding(
                f"The reduced vocabulary ({reduced:,.0f}) is larger than the draft's own ({own:,.0f})",
                "A reduced vocabulary is a part of the full one, so one of the two figures is wrong.",
                values={"draft": int(reduced), "target": int(own)},
                evidence=[draft.evidence("draft_vocab_size"), draft.evidence("vocab_size")],
                fix=["Check draft_vocab_size and vocab_size of the draft's config.json against its weights."],
                verify=["Compare with the number of rows of the draft's lm_head and of its d2t map."],
            )
        if not own or not theirs or own == theirs:
            return
        padded = abs(own - theirs) < PADDING
        yield self.finding(
            f"The draft knows {own:,.0f} tokens, the target {theirs:,.0f}",
            "The sizes are near enough to be one vocabulary padded in two ways."
            if padded
            else "They cannot be one vocabulary, so drafted ids name other tokens than the draft means.",
            values={"draft": int(own), "target": int(theirs)},
            evidence=[draft.evidence("vocab_size"), target.evidence("vocab_size")],
            fix=["Use a draft made for this target's tokenizer."],
            verify=["Compare tokenizer.json of both: the same text must give the same ids."],
            severity=Severity.WARNING if padded else Severity.CRITICAL,
            confidence=Confidence.LOW if padded else Confidence.HIGH,
        )
