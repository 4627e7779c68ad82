"""DRF004: vocabulary or token map do not fit."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from analysis import words
from analysis.base import Outcome, Rule
from analysis.case import Case
from analysis.view import RunView
from collector.domain.drafts import ModelConfig, Weights
from collector.domain.findings import Confidence, Finding, Question, Severity
from collector.domain.layouts import READS_SEVERAL_LAYERS, Kind, kind_of

PADDING: Final = 1_024
"""How far two vocabularies may lie apart and still be one padded to a multiple. Tokens."""
ROWS_PADDING: Final = 256
"""How many rows a head may have beyond its vocabulary, for the sake of its kernel. Rows."""
LLAMACPP_MOST: Final = 128
"""How far sizes may lie apart for llama.cpp to draft with another model. Tokens."""
_SAID: Final = ("vocabulary-mismatch", "vocabulary-translated")


class VocabIncompatible(Rule):
    """Vocabulary sizes, the token map or special tokens of draft and target cannot fit.

    Why it matters:
        Drafted ids then name other tokens than the draft means, or none: everything is
        rejected, or the server stops. A reduced draft vocabulary by itself is no fault, but
        without its map `d2t` its ids are taken for the target's.

    How to fix:
        Use a draft made for this target's tokenizer, with the token map it was trained with
        (`d2t` and `t2d` in its weights).

    Example:
        A draft with 32,000 tokens of its own for a target with 151,936.

    Source:
        SGLang and vLLM, loading of draft vocabularies (`d2t`, `draft_vocab_size`); llama.cpp
        b11434, `common_speculative_are_compatible`.
    """

    id, name = "DRF004", "vocab-incompatible"
    question = Question.CONFIG
    severity = Severity.CRITICAL

    def check(self, run: RunView, case: Case) -> Outcome:
        """What the engine says; then vocabularies against each other, the reduced one and its map against weights."""
        if any(run.record.events_of(kind) for kind in _SAID):
            yield from self._said(run)
            return
        speculating, draft, target = case.speculating, case.draft, case.target
        own, reduced = draft.number("vocab_size"), draft.number("draft_vocab_size")
        if own and reduced and reduced > own:
            yield self.finding(
                f"The reduced vocabulary ({reduced:,.0f}) is larger than the draft's own ({own:,.0f})",
                "A reduced vocabulary is a part of the full one, so one of the two figures is wrong.",
                values={"draft": int(reduced), "target": int(own)},
                evidence=[draft.evidence("draft_vocab_size"), draft.evidence("vocab_size")],
                fix=["Check draft_vocab_size and vocab_size of the draft's config.json against its weights."],
                verify=["Compare with the number of rows of the draft's lm_head and of its d2t map."],
            )
        yield from self._sizes(speculating, draft, target)
        yield from self._special_tokens(speculating, draft, target)
        if kind_of(draft) in READS_SEVERAL_LAYERS:
            yield from self._undeclared(speculating, draft)
            if draft.weights is not None and draft.weights.tensors:
                yield from self._map(draft, draft.weights, own, reduced)
                yield from self._rows(draft, draft.weights, own, reduced)
                yield from self._embedding(draft, target, draft.weights)

    def _said(self, run: RunView) -> Iterator[Finding]:
        """The engine compared both vocabularies itself."""
        said = [event for kind in _SAID for event in run.record.events_of(kind)]
        off = run.method is None
        yield self.finding(
            "The engine says that the draft's vocabulary does not fit the target's",
            "It drafts nothing and serves on."
            if off
            else "It goes by the text of each token, and hardly a draft fits.",
            values={key: value for event in said for key, value in event.values.items() if key != "message"},
            evidence=[event.evidence for event in said[:3]],
            fix=["Use a draft made for this target's tokenizer."],
            verify=["The line is gone after the start, and drafts are counted."],
        )

    def _sizes(self, run: RunView, draft: ModelConfig, target: ModelConfig) -> Iterator[Finding]:
        own, theirs = draft.number("vocab_size"), target.number("vocab_size")
        if not own or not theirs or own == theirs:
            return
        padded = abs(own - theirs) < PADDING
        why = (
            "The sizes are near enough to be one vocabulary padded in two ways."
            if padded
            else "They cannot be one vocabulary, so drafted ids name other tokens than the draft means."
        )
        if run.record.engine == "llamacpp" and kind_of(draft) is Kind.MODEL:
            if abs(own - theirs) > LLAMACPP_MOST:
                padded = False
                why = "llama.cpp then drafts nothing and serves on without a word at its default log level."
            elif own > theirs:
                why += " llama.cpp accepts that, and stops when an id beyond the target's is drafted."
        yield self.finding(
            f"The draft knows {own:,.0f} tokens, the target {theirs:,.0f}",
            why,
            values={"draft": int(own), "target": int(theirs)},
            evidence=[draft.evidence("vocab_size"), target.evidence("vocab_size")],
            fix=["Use a draft made for this target's tokenizer."],
            verify=["Compare tokenizer.json of both: the same text must give the same ids."],
            severity=Severity.WARNING if padded else Severity.CRITICAL,
            confidence=Confidence.LOW if padded else Confidence.HIGH,
        )

    def _special_tokens(self, run: RunView, draft: ModelConfig, target: ModelConfig) -> Iterator[Finding]:
        """Begin and end of a text under other ids, in a draft that has a tokenizer of its own."""
        if kind_of(draft) is not Kind.MODEL:
            return
        differing = [
            key
            for key in ("bos_token_id", "eos_token_id")
            if (mine := _ids(draft, key)) and (theirs := _ids(target, key)) and not mine & theirs
        ]
        if not differing:
            return
        off = run.record.engine == "llamacpp"
        yield self.finding(
            f"Draft and target differ in {words.listing(differing)}",
            "llama.cpp compares them, drafts nothing where they differ, and serves on."
            if off
            else "A draft that ends a text with another token than the target belongs to another tokenizer, or to another template.",
            values={key: sorted(_ids(draft, key)) for key in differing}
            | {"target": sorted(_ids(target, differing[0]))},
            evidence=[side.evidence(key) for key in differing for side in (draft, target)],
            fix=["Use a draft made for this target's tokenizer, or correct the ids in its config."],
            verify=["Compare special_tokens_map.json and tokenizer_config.json of both."],
            severity=Severity.CRITICAL if off else Severity.WARNING,
            confidence=Confidence.MEDIUM,
        )

    def _undeclared(self, run: RunView, draft: ModelConfig) -> Iterator[Finding]:
        """SGLang asks every EAGLE-3 draft for its reduced vocabulary."""
        unfit = run.record.engine != "sglang" or run.record.windows or "speculators_model_type" in draft.raw
        if unfit or "vocab_size" not in draft.text or "draft_vocab_size" in draft.text:
            return
        yield self.finding(
            "The draft's config has no draft_vocab_size",
            "SGLang reads it without asking whether it is there, so the draft fails to load. null takes the target's head.",
            values={"draft": None, "target": draft.number("vocab_size")},
            evidence=[draft.evidence("draft_vocab_size")],
            fix=[
                "Write draft_vocab_size into the draft's config.json: the rows of its lm_head, or the full vocab_size."
            ],
            verify=["The server starts, and 'Load weight end' names the draft."],
            confidence=Confidence.MEDIUM,
        )

    def _map(self, draft: ModelConfig, weights: Weights, own: float | None, reduced: float | None) -> Iterator[Finding]:
        """The map of a reduced vocabulary: there, and as long as the vocabulary."""
        if not own or not reduced or reduced >= own:
            return
        found = weights.named("d2t")
        if found is None:
            if weights.complete:
                yield self.finding(
                    "The draft's vocabulary is reduced and its weights hold no map d2t",
                    f"{reduced:,.0f} of {own:,.0f} tokens; without the map drafted ids are taken for the target's, and "
                    "nothing is accepted.",
                    values={"draft": int(reduced), "target": int(own)},
                    evidence=[weights.evidence("d2t"), draft.evidence("draft_vocab_size")],
                    fix=["Export d2t (and t2d) with the draft's weights; EAGLE's own trainer keeps them in cache.pt."],
                    verify=["Compare acceptance of the first position before and after."],
                )
            return
        name, tensor = found
        if tensor.shape and tensor.shape[0] != reduced:
            yield self.finding(
                f"The draft's map d2t has {tensor.shape[0]:,} entries for a vocabulary of {reduced:,.0f}",
                "The map belongs to another vocabulary than the config states.",
                values={"draft": tensor.shape[0], "target": int(reduced)},
                evidence=[weights.evidence(name), draft.evidence("draft_vocab_size")],
                fix=["Use the config.json and the map that were written with these weights."],
                verify=["Compare with the rows of the draft's lm_head."],
            )

    def _rows(
        self, draft: ModelConfig, weights: Weights, own: float | None, reduced: float | None
    ) -> Iterator[Finding]:
        """The rows of the draft's head."""
        expected = reduced or own
        found = weights.named("lm_head.weight")
        if found is None or not expected or not found[1].shape or draft.text.get("draft_vocab_size", 0) is None:
            return
        name, tensor = found
        if 0 <= tensor.shape[0] - expected < ROWS_PADDING:
            return
        yield self.finding(
            f"The draft's lm_head has {tensor.shape[0]:,} rows for a vocabulary of {expected:,.0f}",
            "The head belongs to another vocabulary than the config states, so it does not load, or drafts other tokens.",
            values={"draft": tensor.shape[0], "target": int(expected)},
            evidence=[weights.evidence(name), draft.evidence("draft_vocab_size", "vocab_size")],
            fix=["Write the number of rows into draft_vocab_size, or use the config.json of these weights."],
            verify=["Compare with the length of d2t."],
        )

    def _embedding(self, draft: ModelConfig, target: ModelConfig, weights: Weights) -> Iterator[Finding]:
        """A draft without an embedding of its own takes the target's, which must then be as wide."""
        own, theirs = draft.number("hidden_size"), target.number("hidden_size")
        if (
            weights.named("embed_tokens.weight") is not None
            or not weights.complete
            or not own
            or not theirs
            or own == theirs
        ):
            return
        yield self.finding(
            f"The draft has no embedding of its own, and the target's is {theirs:,.0f} wide instead of {own:,.0f}",
            "Engines share the target's embedding with a draft that has none; this one does not fit.",
            values={"draft": int(own), "target": int(theirs)},
            evidence=[
                weights.evidence("embed_tokens.weight"),
                draft.evidence("hidden_size"),
                target.evidence("hidden_size"),
            ],
            fix=["Export embed_tokens.weight with the draft."],
            verify=["The draft's weights list embed_tokens.weight with its own width."],
            confidence=Confidence.MEDIUM,
        )


def _ids(config: ModelConfig, key: str) -> set[int]:
    value = config.text.get(key)
    values = value if isinstance(value, list) else [value]
    return {item for item in values if isinstance(item, int) and not isinstance(item, bool)}
