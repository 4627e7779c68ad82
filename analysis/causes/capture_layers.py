"""Wiring: the wrong layers of the target feed the draft."""

from __future__ import annotations

from collections.abc import Iterator

from analysis import words
from analysis.capture import captures
from analysis.causes.base import CLEAR, HINT, STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.commands import compare, relaunch, replay
from analysis.causes.facts import LOW_ACCEPTANCE, Facts
from collector.domain.versions import ReleaseRange


class CaptureLayersWrong(Cause):
    """The draft is fed other layers than it was trained on.

    An id names the output of a layer on one engine and the layer that a state enters on another,
    and releases shift it differently, so a draft that works on one server may be fed neighbours
    of its layers on the next. Off by one costs little to much; layers that were guessed leave
    next to nothing. Shows from the first window and from the first position.
    """

    id = "capture-layers-wrong"
    kind = Kind.WIRING
    reports = (
        "public account of Kimi-K2.5 with an EAGLE-3 draft",
        "vllm-project/vllm#50170",
        "sgl-project/sglang#25454",
        "vllm-project/vllm#43671",
        "vllm-project/vllm#42764",
    )
    explains = LOW_ACCEPTANCE
    changes = (
        ("draft config eagle_config", STRONG),
        ("draft config eagle_aux_hidden_state_layer_ids", STRONG),
        ("release", HINT),
    )

    def applies(self, facts: Facts) -> bool:
        """Drafts that read layers by their ids."""
        return facts.reads_layers_by_id or facts.method == "unknown"

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What the configs say about the ids, and whether the first position fails."""
        yield from self._ids(facts)
        if facts.fired("DRF002"):
            yield favours(STRONG if facts.lost else CLEAR, "the draft names no layers, so the engine guesses", "DRF002")
        elif facts.lost:
            yield favours(CLEAR, "as little is accepted as with wrong layers in public reports")
        if facts.first_position_fails:
            yield favours(HINT, "already the first draft is accepted too rarely", "ACC005")
        if facts.later_positions_fail:
            yield opposes(STRONG, "the first draft is good, so the target's states arrive", "ACC005")
        if facts.works_in_part:
            yield opposes(STRONG, "it works in part of the traffic or of the units")

    def _ids(self, facts: Facts) -> Iterator[Reason]:
        capture = facts.finding("DRF001")
        if capture is None:
            return
        ids, earlier = capture.values["draft_ids"], capture.values["previous_ids"]
        possible = [item for item in capture.values["readings"] if not item["impossible"]]
        if earlier is not None and earlier != ids:
            yield favours(STRONG, f"two configs of one draft name different layers, {earlier} and {ids}", "DRF001")
        if len({tuple(item["outputs"]) for item in possible}) > 1:
            how = words.listing([f"{item['releases']} takes {item['how']}" for item in possible])
            yield favours(CLEAR, f"the release is not known, and {how}", "DRF001")
        if any(i < 0 for i in ids or []):
            yield favours(CLEAR, _negative_id(facts), "DRF001")

    def experiment(self, facts: Facts) -> Experiment:
        """Both sets of ids, or ids written out."""
        capture = facts.finding("DRF001")
        known = [capture.values[key] for key in ("draft_ids", "previous_ids", "engine_default_ids")] if capture else []
        sets = list(dict.fromkeys(str(ids) for ids in known if ids is not None))
        each = (
            f"each of the layer ids {words.listing(sets)}"
            if len(sets) > 1
            else "the layer ids of its training settings"
        )
        return Experiment(
            f"Replay the validation prompts at temperature 0 with {each} in the draft's config.json",
            (relaunch(facts), replay(facts), compare(facts, "REPLAY_LOG")),
            {
                "one set matches training": "these are the layers; keep them",
                "all stay low": "the layers are not the only fault: states lost on the path, or the checkpoint",
                "all match training": "the wiring is right, and the traffic differs from the validation data",
            },
        )


def _negative_id(facts: Facts) -> str:
    """What -1 comes to by release: the embedding where one is added to each id, nothing elsewhere."""
    text = f"-1 means the embedding only where the release adds one to each id (here: {facts.run.releases})"
    if facts.draft_config is None or facts.target_config is None:
        return text
    for item in captures(facts.engine, facts.target_config, facts.draft_config, ReleaseRange()):
        fed = words.listing(["the embedding" if layer < 0 else f"layer {layer}" for layer in item.outputs])
        how = f"{item.how}, " if item.how.startswith("ids") else ""
        text += f"; {item.releases}: {how}" + ("cannot run" if item.impossible else f"fed by {fed}")
    return text
