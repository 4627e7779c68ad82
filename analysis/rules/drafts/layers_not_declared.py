"""DRF002: the draft names no layers and the engine guesses."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.base import Outcome, Rule, cannot_look
from analysis.capture import captures, declared_ids, default_enters, misplaced_ids, trained_outputs
from analysis.case import Case
from analysis.rules.drafts.hidden_state_capture import is_eagle3
from analysis.rules.flags.two_batch_overlap import ACCEPTANCE_LOSS
from analysis.view import RunView
from collector.domain.drafts import ModelConfig
from collector.domain.findings import Confidence, Finding, Question, Severity


class AuxLayersNotDeclared(Rule):
    """The draft's config names no layers, so the engine takes its own default.

    Why it matters:
        A draft trained on other layers than the default runs without an error and accepts
        almost nothing. Nothing in the log says that the default was used.

    How to fix:
        Write the layers the draft was trained on into its config.json, in the convention of the
        engine that serves it.

    Example:
        A Llama-3.3-70B draft without `eagle_aux_hidden_state_layer_ids`: 1.2% of the drafts
        accepted with the default layers, 58.9% with the right ones.

    Source:
        vLLM pull request 50170; SGLang and vLLM, reading of the draft's config.
    """

    id, name = "DRF002", "aux-layers-not-declared"
    question = Question.CONFIG
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM
    needs = ("ACC001", "ACC002", "ACC003")

    def check(self, speculating: RunView, draft: ModelConfig, case: Case, findings: Sequence[Finding]) -> Outcome:
        """A note by itself, since many official drafts name none; a warning where acceptance is lost as well."""
        engine = speculating.record.engine
        if not is_eagle3(draft, speculating.method):
            return
        if declared_ids(engine, draft) is not None:
            return
        target = speculating.record.target_config
        if target is None or target.layers is None:
            raise cannot_look("the target's config.json was not given", "--target-config FILE")
        lost = {finding.rule for finding in findings} & ACCEPTANCE_LOSS
        default = list(default_enters(target.layers))
        readings = captures(engine, target, draft, speculating.releases)
        outputs = [reading.outputs for reading in readings if not reading.impossible]
        meant = trained_outputs(draft, target.layers)
        elsewhere = misplaced_ids(engine, draft)
        differs = elsewhere is not None or (meant is not None and bool(outputs) and meant[0] not in outputs)
        fed = f" These are the outputs of layers {', '.join(map(str, outputs[0]))}." if outputs else ""
        earlier = case.earlier_draft
        yield self.finding(
            f"The draft names no layers; the engine takes {default}",
            f"Many drafts are trained on just these.{fed} "
            + (
                "Acceptance is low here, so it may be trained on others."
                if lost
                else _trained_elsewhere(meant, elsewhere)
                if differs
                else f"They are what {meant[1]} trains on where nothing else is set."
                if meant is not None and outputs
                else "Whether this one is cannot be seen from its config."
            ),
            values={
                "draft_ids": None,
                "previous_ids": declared_ids(engine, earlier) if earlier is not None else None,
                "engine_default_ids": default,
            },
            evidence=[draft.evidence("eagle_aux_hidden_state_layer_ids"), target.evidence("num_hidden_layers")],
            fix=[
                "Look up the layers in the draft's training settings.",
                "Write them into its config.json as eagle_aux_hidden_state_layer_ids (inside eagle_config for SGLang).",
                "vLLM names the layer that a state enters, SGLang the one whose output it is: shift ids copied between them by one.",
            ],
            verify=[
                "Run the validation prompts at temperature 0 with the ids written out, and compare the first position."
            ],
            severity=Severity.WARNING if lost or differs else Severity.INFO,
        )


def _trained_elsewhere(meant: tuple[tuple[int, ...], str] | None, elsewhere: list[int] | None) -> str:
    if elsewhere is not None:
        return f"The config does name {elsewhere}, in a place where this engine does not look for them."
    return "" if meant is None else f"{meant[1]} trains on the outputs of layers {', '.join(map(str, meant[0]))}."
