"""DRF006: rotary settings of draft and target differ."""

from __future__ import annotations

from analysis.base import Outcome, Rule, cannot_look
from analysis.models import rotary
from analysis.view import RunView
from collector.domain.drafts import ModelConfig
from collector.domain.findings import Confidence, Question, Severity


class RopeDiffers(Rule):
    """Rotary base or scaling of draft and target differ, defaults filled in.

    Why it matters:
        The engine does not copy the target's settings. A draft trained with scaling and served
        without it loses acceptance with every position; one that was trained so is fine.

    How to fix:
        Compare with the settings under which the draft was trained, and write these into its
        config.json.

    Example:
        Target with llama3 scaling, draft with none.

    Source:
        SGLang and vLLM: the draft's own config decides; Hugging Face defaults where it is silent.
    """

    id, name = "DRF006", "rope-differs"
    question = Question.CONFIG
    severity = Severity.INFO
    confidence = Confidence.MEDIUM

    def check(self, speculating: RunView, draft: ModelConfig, target: ModelConfig) -> Outcome:
        """Both sides after defaults."""
        del speculating
        own, theirs = rotary(draft), rotary(target)
        if own is None or theirs is None:
            raise cannot_look("one of the configs states no rotary settings, or several by layer")
        if own == theirs:
            return
        yield self.finding(
            f"Rotary settings differ: draft {own}, target {theirs}",
            "The engine does not copy the target's. It is a fault only if the draft was trained with the target's.",
            values={"draft": str(own), "target": str(theirs)},
            evidence=[side.evidence("rope_scaling", "rope_parameters", "rope_theta") for side in (draft, target)],
            fix=["Write rope_theta and rope_scaling of the training run into the draft's config.json."],
            verify=["Compare acceptance at short and at long context: a wrong setting decays with the position."],
        )
