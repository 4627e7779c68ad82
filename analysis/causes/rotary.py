"""Draft: rotary settings differ from training."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, HINT, STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.commands import compare, relaunch
from analysis.causes.facts import LOW_ACCEPTANCE, Facts, Symptom


class RotaryMismatch(Cause):
    """The draft runs with other rotary settings than it was trained with.

    Engines do not copy the target's `rope_theta` and `rope_scaling` to the draft. A missing
    entry means the default, and attention is wrong by more the further it looks back.
    """

    id = "rotary-mismatch"
    kind = Kind.DRAFT
    reports = ("AEON-7/Qwen3.6-27B-AEON-Ultimate-Uncensored-DFlash#6", "vllm-project/vllm#48894")
    explains = LOW_ACCEPTANCE | {Symptom.CONTEXT}
    changes = (
        ("draft config rope_theta", STRONG),
        ("draft config rope_scaling", STRONG),
        ("draft config rope_parameters", STRONG),
    )

    def applies(self, facts: Facts) -> bool:
        """Where both configs are known, or acceptance falls with the context."""
        known = facts.draft_config is not None and facts.target_config is not None
        return not facts.copies and (known or facts.fired("ACC006"))

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """The settings of both sides, and the context."""
        if facts.fired("DRF006"):
            yield favours(CLEAR, "rotary settings of draft and target differ", "DRF006")
        elif facts.draft_config is not None and facts.target_config is not None:
            yield opposes(STRONG, "both sides state the same settings")
        if facts.fired("ACC006"):
            yield favours(CLEAR, "acceptance falls with the context", "ACC006")
        elif facts.serious("DRF005"):
            yield opposes(HINT, "the window is the simpler explanation", "DRF005")
        if facts.near_zero:
            yield opposes(CLEAR, "short contexts would still work", "ACC002")

    def experiment(self, facts: Facts) -> Experiment:
        """The settings of training."""
        return Experiment(
            "Write rope_theta and rope_scaling of the training run into the draft's config.json and restart",
            (relaunch(facts), compare(facts, "NEW_ROTARY_LOG")),
            {"acceptance rises, most at long context": "this was it", "no difference": "the settings were right"},
        )
