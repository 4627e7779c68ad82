"""Draft: rotary settings differ from training."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, DECISIVE, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import LOW_ACCEPTANCE, Facts, Symptom


class RotaryMismatch(Cause):
    """The draft runs with other rotary settings than it was trained with."""

    id, title = "rotary-mismatch", "The draft runs with other rotary settings than it was trained with"
    kind = Kind.DRAFT
    reports = 2
    explains = frozenset(LOW_ACCEPTANCE | {Symptom.CONTEXT})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        yield from when(facts.ngram, "n-gram drafts have no positions", -DECISIVE, refutes=True)
        differs = facts.fired("DRF006")
        yield from when(differs, "rotary settings of draft and target differ (DRF006)", STRONG)
        yield from when(differs and facts.fired("ACC006"), "acceptance falls with the context (ACC006)", CLEAR)
        draft, target = facts.run.record.draft_config, facts.run.record.target_config
        yield from when(
            not differs and draft is not None and target is not None, "both sides state the same settings", -STRONG
        )
        yield from when(facts.near_zero, "short contexts would still work", -CLEAR)

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Write the training run's rope_theta and rope_scaling into the draft's config.json, restart and compare",
            {"acceptance rises, most at long context": "this was it", "no difference": "the settings were right"},
        )
