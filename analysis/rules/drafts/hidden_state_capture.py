"""DRF001: which target layers feed the draft, and doubts about it."""

from __future__ import annotations

from analysis import words
from analysis.base import Outcome, Rule
from analysis.capture import (
    Capture,
    captures,
    declared_ids,
    default_enters,
    ignored_keys,
    misplaced_ids,
    trained_outputs,
)
from analysis.case import Case
from analysis.view import RunView
from collector.domain.drafts import ModelConfig
from collector.domain.findings import Confidence, Question, RivalExplanation, Severity
from collector.domain.layouts import READS_SEVERAL_LAYERS, kind_of

EAGLE3 = "eagle3"


def is_eagle3(draft: ModelConfig, method: str | None) -> bool:
    """Whether the draft reads hidden states of several target layers."""
    return method == EAGLE3 or kind_of(draft) in READS_SEVERAL_LAYERS


class HiddenStateCapture(Rule):
    """Says which layers of the target feed the draft on this release, and what is doubtful about it.

    Why it matters:
        An EAGLE-3 draft reads hidden states of three layers. The layers are named in the
        draft's config.json, and releases shift the ids differently: a wrong layer is no error,
        only lower acceptance.

    How to fix:
        Write into the draft's config.json the ids under which it was trained, in the
        convention of the release that serves it, and compare one run with the other.

    Example:
        Ids [-1, 2, 30] on a DeepSeek-like target: releases to 0.5.12 add one, so the embedding
        and the outputs of layers 2 and 30 feed the draft; later ones take the ids as given.

    Source:
        SGLang 0.4.9 to 0.5.23, `set_eagle3_layers_to_capture` of each model.
    """

    id, name = "DRF001", "hidden-state-capture"
    question = Question.CONFIG
    severity = Severity.INFO

    def check(self, speculating: RunView, draft: ModelConfig, target: ModelConfig, case: Case) -> Outcome:
        """State the layers; add what speaks for and against each reading of the ids."""
        layers, engine = target.layers, speculating.record.engine
        if not is_eagle3(draft, speculating.method) or layers is None:
            return
        ids = declared_ids(engine, draft)
        previous = case.earlier_draft
        earlier = declared_ids(engine, previous) if previous is not None else None
        default = list(default_enters(layers))
        readings = captures(engine, target, draft, speculating.releases)
        possible = [reading for reading in readings if not reading.impossible]
        doubts = _doubts(ids, earlier, default, possible, misplaced_ids(engine, draft))
        doubts += _further_doubts(speculating, draft)
        meant = trained_outputs(draft, layers)
        if meant is not None and possible and all(reading.outputs != meant[0] for reading in possible):
            doubts.append(f"No reading feeds the layers that {meant[1]} means by these ids.")
        served = " ".join(_sentence(reading) for reading in possible) or "How this release reads the ids is not known."
        trained = (
            "On which layers it was trained is not stated in these files."
            if meant is None
            else f"By the convention of {meant[1]} it was trained on the output of {_listed(meant[0])}."
        )
        yield self.finding(
            f"The draft names layers {ids}"
            if ids is not None
            else f"The draft names no layers; the engine takes {default}",
            " ".join([served, *doubts, trained]),
            values={
                "draft_ids": ids,
                "previous_ids": earlier,
                "engine_default_ids": default,
                "trained_outputs": list(meant[0]) if meant is not None else None,
                "layers": layers,
                "readings": [
                    {
                        "releases": str(reading.releases),
                        "how": reading.how,
                        "enters": list(reading.enters),
                        "outputs": list(reading.outputs),
                        "impossible": reading.impossible,
                    }
                    for reading in readings
                ],
            },
            evidence=[
                draft.evidence("eagle_aux_hidden_state_layer_ids"),
                target.evidence("num_hidden_layers"),
                previous.evidence("eagle_aux_hidden_state_layer_ids") if previous is not None else None,
            ],
            fix=[
                "Look up the layers in the draft's training settings.",
                f"Write them as eagle_config.eagle_aux_hidden_state_layer_ids; {_convention(possible)}",
            ],
            verify=[
                "Run the validation prompts at temperature 0 once with each set of ids: the right one matches training."
            ],
            confidence=Confidence.HIGH if len(possible) == 1 and not doubts else Confidence.MEDIUM,
            ruled_out=[
                RivalExplanation(f"Ids {reading.how} ({reading.releases})", reading.impossible)
                for reading in readings
                if reading.impossible
            ],
        )


def _sentence(reading: Capture) -> str:
    return f"{str(reading.releases).capitalize()} ({reading.how}): fed by the output of {_listed(reading.outputs)}."


def _listed(outputs: tuple[int, ...]) -> str:
    return words.listing(["the embedding" if layer < 0 else f"layer {layer}" for layer in outputs])


def _further_doubts(run: RunView, draft: ModelConfig) -> list[str]:
    """Settings the release does not read, and pipeline stages that capture only on the last rank."""
    doubts = []
    ignored = ignored_keys(run.record.engine, draft, run.releases)
    if ignored:
        named = words.listing(
            [f"{key.key} ({f'read since {key.since}' if key.since else 'never read'})" for key in ignored]
        )
        doubts.append(f"The draft was trained with {named}; releases that do not read it run the draft without.")
    stages = run.arguments.value("pp_size")
    if run.record.engine == "sglang" and isinstance(stages, int) and stages > 1:
        doubts.append("With pipeline stages only the last one captures, so layers of the others are lost.")
    return doubts


def _convention(possible: list[Capture]) -> str:
    shifted = {reading.how for reading in possible}
    if shifted == {"ids as given"}:
        return "this release takes them as the index of the layer that the state enters."
    if shifted == {"ids + 1"}:
        return "this release adds one, so name the layer whose output is meant."
    return "mind that releases to 0.5.12 add one where later ones may not."


def _doubts(
    ids: list[int] | None,
    earlier: list[int] | None,
    default: list[int],
    possible: list[Capture],
    misplaced: list[int] | None,
) -> list[str]:
    doubts = []
    if earlier is not None and ids is not None and earlier != ids:
        same = " (equal to the engine's default)" if earlier == default else ""
        doubts.append(f"The earlier run named {earlier}{same}: two configs of one draft disagree.")
    if ids is not None and any(i < 0 for i in ids):
        doubts.append("-1 can only mean the embedding, and only a release that adds one can feed it.")
    if len({reading.outputs for reading in possible}) > 1:
        doubts.append("The release is not known exactly, and the possible ones differ.")
    if ids is None and misplaced is not None:
        doubts.append(f"The config has ids {misplaced} in a place where the engine does not read them for capture.")
    return doubts
