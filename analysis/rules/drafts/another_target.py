"""DRF009: the draft was trained for another target than the one served."""

from __future__ import annotations

from collections.abc import Mapping

from analysis.base import Outcome, Rule, cannot_look
from analysis.view import RunView
from collector.domain.arguments import Arguments
from collector.domain.drafts import ModelConfig
from collector.domain.findings import Confidence, Question, Severity
from collector.domain.layouts import trained_for

MODEL_FLAGS = ("model_path", "model", "hf_repo")
"""How engines call the target they serve."""


class DraftOfAnotherTarget(Rule):
    """The draft's config names another target than the one that is served.

    Why it matters:
        A draft learned one target's hidden states and choices. A sibling of the same width loads
        without an error and accepts little.

    How to fix:
        Serve the target that the draft was trained for, or use a draft of this one. A quantised
        or renamed copy of the same model is fine.

    Example:
        A draft with the verifier `meta-llama/Llama-3.1-8B-Instruct` beside a served `Llama-3.1-8B`.

    Source:
        speculators `speculators_config.verifier`; Medusa `base_model_name_or_path`.
    """

    id, name = "DRF009", "draft-of-another-target"
    question = Question.CONFIG
    severity = Severity.INFO
    confidence = Confidence.LOW

    def check(self, speculating: RunView, args: Arguments, draft: ModelConfig) -> Outcome:
        """Names without owner and folder, and the class of the target where both are known."""
        stated = trained_for(draft)
        if stated is None:
            raise cannot_look("the draft's config does not name its target")
        flag = next((name for name in MODEL_FLAGS if isinstance(args.value(name), str)), None)
        if flag is None:
            raise cannot_look("the served target's name is not known", "--launch FILE")
        meant, key = stated
        served = str(args.value(flag))
        if _same_model(meant, served):
            return
        wanted, own = _verifier_classes(draft), speculating.record.target_config
        other_class = bool(
            wanted and own is not None and own.architectures and not set(wanted) & set(own.architectures)
        )
        yield self.finding(
            f"The draft was trained for {_short(meant)}, {_short(served)} is served",
            f"The target is a {own.architectures[0]}, the draft was made for a {wanted[0]}."
            if other_class and own is not None
            else "If one is a copy of the other under another name, all is well.",
            values={"draft": meant, "target": served},
            evidence=[draft.evidence(key), args[flag].effective_evidence or args[flag].requested_evidence],
            fix=["Serve the target that the draft names, or use a draft of this one."],
            verify=["Compare acceptance of the first position with validation: it is far lower on another target."],
            severity=Severity.WARNING if other_class else Severity.INFO,
            confidence=Confidence.HIGH if other_class else Confidence.LOW,
        )


def _short(path: str) -> str:
    return path.rstrip("/").rpartition("/")[2]


def _same_model(one: str, other: str) -> bool:
    """Whether one name is the other, or the other with a suffix: a quantised copy is called after its model."""
    mine, theirs = _short(one).lower(), _short(other).lower()
    return mine in theirs or mine.replace("_", "-") == theirs.replace("_", "-")


def _verifier_classes(draft: ModelConfig) -> list[str]:
    stated = draft.raw.get("speculators_config")
    verifier = stated.get("verifier") if isinstance(stated, Mapping) else None
    listed = verifier.get("architectures") if isinstance(verifier, Mapping) else None
    return [str(name) for name in listed] if isinstance(listed, list) else []
