"""Draft: contexts exceed its window."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, DECISIVE, HINT, STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.commands import compare
from analysis.causes.facts import LOW_ACCEPTANCE, Facts, Symptom


class DraftWindowExceeded(Cause):
    """Contexts exceed what the draft was trained for.

    Drafts are often trained on 2,048 or 4,096 tokens. Beyond that their positions were never
    seen, or the rotary table ends; acceptance is good at first and falls with the length of the
    context, so that an average hides it.
    """

    id = "draft-window-exceeded"
    kind = Kind.DRAFT
    reports = (
        "sgl-project/sglang#6783",
        "vllm-project/vllm#48894",
        "sgl-project/sglang#10787",
        "vllm-project/speculators#684",
        "AEON-7/Qwen3.6-27B-AEON-Ultimate-Uncensored-DFlash#6",
    )
    explains = LOW_ACCEPTANCE | {Symptom.CONTEXT, Symptom.DRIFTED, Symptom.SLOW}
    changes = (("context_length", STRONG), ("max_model_len", STRONG))

    def applies(self, facts: Facts) -> bool:
        """Drafts that were trained on some length, where acceptance is at stake."""
        return not facts.copies and (facts.low_acceptance or facts.fired("ACC006", "DRF005"))

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """Whether acceptance falls with the context, and the window."""
        decays = facts.fired("ACC006")
        if decays:
            yield favours(DECISIVE, "acceptance falls with the context", "ACC006")
        if facts.serious("DRF005"):
            yield favours(STRONG, "contexts beyond the draft's window are served", "DRF005")
        elif facts.fired("DRF005") and not decays:
            yield opposes(STRONG, "the contexts seen fit into its window", "DRF005")
        elif not decays and facts.draft_config is not None and facts.draft_config.number("max_position_embeddings"):
            yield opposes(STRONG, "the draft's window covers what is served")
        if not decays and self._contexts_seen(facts):
            yield opposes(CLEAR, "no fall with the context is seen")
        if facts.later_positions_fail and facts.serious("DRF005"):
            yield favours(HINT, "long drafts end early", "ACC005")

    @staticmethod
    def _contexts_seen(facts: Facts) -> bool:
        return bool(facts.run.record.windows) and bool(facts.run.frame["tokens_in_use"].notna().any())

    def experiment(self, facts: Facts) -> Experiment:
        """A short and a long context."""
        return Experiment(
            "Send the same question once with a short and once with a long context",
            (compare(facts, "SHORT_CONTEXT_LOG"),),
            {
                "only the long one is low": "the window or rotary settings end the draft's use",
                "both alike": "the context is not the reason",
            },
        )
