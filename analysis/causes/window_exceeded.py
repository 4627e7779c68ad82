"""Draft: contexts exceed what it was trained for."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, DECISIVE, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import LOW_ACCEPTANCE, Facts, Symptom


class DraftWindowExceeded(Cause):
    """Contexts exceed what the draft was trained for."""

    id, title = "draft-window-exceeded", "Contexts exceed what the draft was trained for"
    kind = Kind.DRAFT
    reports = 5
    explains = frozenset(LOW_ACCEPTANCE | {Symptom.CONTEXT, Symptom.DRIFTED})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        yield from when(facts.ngram, "n-gram drafts have no window", -DECISIVE, refutes=True)
        window = facts.finding("DRF005")
        decay = facts.fired("ACC006")
        yield from when(
            window is not None and window.severity.word == "warning",
            "contexts beyond the draft's window are served (DRF005)",
            STRONG,
        )
        yield from when(decay, "acceptance falls with the context (ACC006)", DECISIVE)
        yield from when(
            window is not None and window.severity.word == "info" and not decay,
            "the contexts seen fit into its window",
            -STRONG,
        )
        draft = facts.run.record.draft_config
        yield from when(
            window is None and draft is not None and draft.number("max_position_embeddings") and not decay,
            "the draft's window covers what is served",
            -STRONG,
        )
        contexts = facts.run.frame["tokens_in_use"].dropna()
        yield from when(not decay and window is None and not contexts.empty, "no fall with the context is seen", -CLEAR)

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Send the same question with a short and with a long context and compare acceptance",
            {
                "only the long one is low": "the window or rotary settings end the draft's use",
                "both alike": "the context is not the reason",
            },
        )
