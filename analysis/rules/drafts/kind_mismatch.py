"""DRF003: the states or the kind of draft do not fit what the engine feeds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from analysis import words
from analysis.base import Outcome, Rule
from analysis.capture import captures, expected_states
from analysis.capture.sglang import ONE_LAYER_BEFORE
from analysis.models import fed_width
from analysis.view import RunView
from collector.domain.drafts import ModelConfig, Weights
from collector.domain.findings import Confidence, Finding, Question, Severity
from collector.domain.layouts import READS_SEVERAL_LAYERS, Kind, kind_of
from collector.domain.runs import Event

RUNS_KINDS: Final = {
    "eagle": frozenset({Kind.EAGLE, Kind.MTP}),
    "eagle3": READS_SEVERAL_LAYERS,
    "mtp": frozenset({Kind.MTP}),
    "medusa": frozenset({Kind.MEDUSA}),
    "dflash": frozenset({Kind.DFLASH}),
    "dspark": frozenset({Kind.DSPARK}),
    "draft_model": frozenset({Kind.MODEL}),
}
"""The kinds of draft that a method runs."""
_DRAFT: Final = "speculative_draft_model_path"
_CALLED_EAGLE3: Final = re.compile(r"eagle[-_.]?3", re.IGNORECASE)
NEEDS_DRAFT: Final = frozenset({"eagle3", "draft_model"})
"""Methods of SGLang for which no target has what drafts."""
LAYER_NAMES: Final = ("midlayer.", "layers.")
"""How names of the layers in an EAGLE-3 draft begin, behind an optional ``model.``."""


class HiddenStateWidthMismatch(Rule):
    """Number, width or kind of the hidden states that the draft expects differ from what it is fed.

    Why it matters:
        An EAGLE-3 head started as EAGLE gets one state instead of three, skips its projection
        and runs without a word at about half the acceptance. A projection of another shape, or
        weights under names that the engine does not look for, stop the server or leave random
        weights in place.

    How to fix:
        Name the method that the draft was trained for (`--speculative-algorithm EAGLE3` for an
        EAGLE-3 head), and write `target_hidden_size` and the layer ids of the training run into
        its config.json.

    Example:
        `--speculative-algorithm EAGLE` while the log says `type=LlamaForCausalLMEagle3`: first
        drafts accepted 31% instead of 66% of the time.

    Source:
        SGLang 0.4.4 to 0.5.23, `models/llama_eagle3.py`, and a running server of 0.5.9; vLLM 0.8.5
        to 0.32, heads of EAGLE-3.
    """

    id, name = "DRF003", "hidden-state-width-mismatch"
    question = Question.CONFIG
    severity = Severity.CRITICAL

    def check(self, speculating: RunView) -> Outcome:
        """The method against the kind of draft; states, width and names against config and weights."""
        config, target = speculating.record.draft_config, speculating.record.target_config
        kind = self._kind(speculating, config)
        if kind is not None:
            yield kind
            return
        if config is None or kind_of(config) not in READS_SEVERAL_LAYERS:
            return
        if target is not None:
            yield from self._unreachable(speculating, config, target)
            yield from self._width(config, target)
        yield from self._count(speculating, config)
        yield from self._layers(speculating, config)
        if config.weights is not None and config.weights.tensors:
            yield from self._projection(speculating, config, config.weights)
            yield from self._names(config.weights)

    def _kind(self, run: RunView, config: ModelConfig | None) -> Finding | None:
        """The method that runs and a draft that was made for another."""
        loaded = next((event for event in run.record.events_of("weights-loaded") if _eagle3(event)), None)
        argument = run.arguments["speculative_algorithm"]
        evidence = [argument.effective_evidence or argument.requested_evidence]
        if run.method == "eagle" and (loaded is not None or (config is not None and _is_eagle3(config))):
            kind = str(loaded.values["type"]) if loaded is not None else _class_of(config)
            return self.finding(
                "An EAGLE-3 head runs as EAGLE",
                f"The draft is a {kind}, made for hidden states of three layers; method EAGLE feeds it one. It loads and runs "
                "without an error, and accepts about half as often.",
                values={"draft": kind, "target": "EAGLE", "flag": "speculative_algorithm"},
                evidence=[*evidence, loaded.evidence if loaded else None],
                fix=["Start with --speculative-algorithm EAGLE3."],
                verify=["Compare acceptance length after the restart: it should rise at the first window."],
            )
        if config is None and _lacks_draft(run):
            return self._missing(run)
        if run.record.engine == "sglang" and config is None and loaded is None and (named := _by_name(run)) is not None:
            return self._named(run, named)
        runs = RUNS_KINDS.get(run.method or "")
        if config is None or runs is None or run.record.engine == "vllm":  # vLLM takes the method from the draft
            return None
        kind_found = kind_of(config)
        if kind_found in runs or _may_be(kind_found, run.method or "", config):
            return None
        return self.finding(
            f"The draft is of kind {kind_found}, the method is {run.method}",
            f"Method {run.method} runs drafts of kind {words.listing(sorted(map(str, runs)))}. Another kind does not load, or "
            "loads with weights that were never trained for it.",
            values={"draft": str(kind_found), "target": run.method, "flag": "speculative_algorithm"},
            evidence=[*evidence, config.evidence("speculators_model_type", "architectures", "model_type")],
            fix=[f"Name the method of the draft: {kind_found}."],
            verify=[
                "Look for the class that is loaded: the line 'Load weight end' of SGLang, 'Resolved architecture' of vLLM."
            ],
            confidence=Confidence.MEDIUM,
        )

    def _missing(self, run: RunView) -> Finding:
        """Nothing is named to draft with."""
        argument = run.arguments["speculative_algorithm"]
        return self.finding(
            f"Method {run.method} is started without a draft",
            "It drafts with a model of its own, and --speculative-draft-model-path is not given: the target is loaded in its "
            "place, and the server ends, for the target has none of the draft's parts.",
            values={"draft": None, "target": run.method, "flag": _DRAFT},
            evidence=[argument.effective_evidence or argument.requested_evidence],
            fix=["Name the draft: --speculative-draft-model-path DRAFT."],
            verify=["The log shows a second 'Load weight end' with the class of the draft."],
            confidence=Confidence.MEDIUM,
        )

    def _named(self, run: RunView, draft: str) -> Finding:
        """What the draft's name says where nothing else says what it is."""
        argument = run.arguments[_DRAFT]
        return self.finding(
            "A draft that is called EAGLE-3 runs as EAGLE",
            f"The draft is {draft}. If it is what its name says, it was made for hidden states of three layers, and method EAGLE "
            "feeds it one: it loads and runs without an error, and accepts half as often or nothing.",
            values={"draft": draft, "target": "EAGLE", "flag": "speculative_algorithm"},
            evidence=[argument.effective_evidence or argument.requested_evidence],
            fix=["Start with --speculative-algorithm EAGLE3."],
            verify=["grep architectures DRAFT/config.json   # a class that ends in Eagle3 wants EAGLE3"],
            severity=Severity.WARNING,
            confidence=Confidence.MEDIUM,
        )

    def _unreachable(self, run: RunView, draft: ModelConfig, target: ModelConfig) -> Iterator[Finding]:
        """Every reading of the ids leaves the server without its states."""
        readings = captures(run.record.engine, target, draft, run.releases)
        if not readings or any(not reading.impossible for reading in readings):
            return
        yield self.finding(
            "The engine cannot capture the layers that the draft names",
            f"{readings[-1].impossible[0].upper()}{readings[-1].impossible[1:]}. The target has {target.layers} layers.",
            values={"draft": list(readings[-1].enters), "target": target.layers},
            evidence=[draft.evidence("eagle_aux_hidden_state_layer_ids"), target.evidence("num_hidden_layers")],
            fix=["Write ids into the draft's config.json that this release can capture, in its convention."],
            verify=[
                "The server starts, and prints the layers that it captures (vLLM) or no mismatch of states (SGLang)."
            ],
            confidence=Confidence.MEDIUM if run.record.windows else Confidence.HIGH,
        )

    def _width(self, draft: ModelConfig, target: ModelConfig) -> Iterator[Finding]:
        fed, given = fed_width(draft), target.number("hidden_size")
        if not fed or not given or fed == given:
            return
        stated = draft.number("target_hidden_size") is not None
        yield self.finding(
            f"The draft expects states of width {fed:,}, the target's are {given:,.0f} wide",
            "Its projection is built for other states than the target has."
            if stated
            else "The draft names no target_hidden_size, so its own width is taken for the target's.",
            values={"draft": fed, "target": int(given)},
            evidence=[draft.evidence("target_hidden_size", "hidden_size"), target.evidence("hidden_size")],
            fix=[
                f"Write target_hidden_size: {given:.0f} into the draft's config.json, if it was trained on this target.",
                "Else use a draft of this target.",
            ],
            verify=["The columns of fc.weight are the number of states times the target's width."],
        )

    def _count(self, run: RunView, draft: ModelConfig) -> Iterator[Finding]:
        """A draft of more or fewer states than the release builds."""
        expected = expected_states(run.record.engine, draft, run.releases)
        nested = draft.raw.get("eagle_config")
        ids = nested.get("eagle_aux_hidden_state_layer_ids") if isinstance(nested, dict) else None
        ids = ids if ids is not None else draft.raw.get("eagle_aux_hidden_state_layer_ids")
        named = len(ids) if isinstance(ids, list) and ids else None
        if not expected or named is None or named in expected:
            return
        yield self.finding(
            f"The draft names {words.plural(named, 'layer')}, the engine builds its projection for {words.listing(sorted(map(str, expected)))}",
            "The captured states do not fit the projection, so the draft fails to load or the first pass stops the server.",
            values={"draft": named, "target": max(expected)},
            evidence=[draft.evidence("eagle_aux_hidden_state_layer_ids"), draft.evidence("num_aux_hidden_states")],
            fix=[
                "Write num_aux_hidden_states into the draft's config.json, and use a release that reads it (SGLang 0.5.12, vLLM 0.22)."
            ],
            verify=["The columns of fc.weight are the number of states times the target's width."],
            confidence=Confidence.HIGH if len(expected) == 1 else Confidence.MEDIUM,
        )

    def _layers(self, run: RunView, draft: ModelConfig) -> Iterator[Finding]:
        """SGLang before 0.5.12 takes drafts of one layer alone."""
        layers = draft.layers
        last = run.releases.last
        if run.record.engine != "sglang" or layers is None or layers <= 1 or last is None or last >= ONE_LAYER_BEFORE:
            return
        yield self.finding(
            f"The draft has {words.plural(layers, 'layer')}, this release takes one",
            "It refuses to start: EAGLE3 currently only supports 1 layer.",
            values={"draft": layers, "target": 1},
            evidence=[draft.evidence("num_hidden_layers")],
            fix=[f"Use SGLang {ONE_LAYER_BEFORE} or later for this draft."],
            verify=["The server starts with the newer release."],
        )

    def _projection(self, run: RunView, draft: ModelConfig, weights: Weights) -> Iterator[Finding]:
        """The shape of ``fc`` against states times width."""
        found = weights.named("fc.weight")
        fed = fed_width(draft)
        if found is None or not fed or len(found[1].shape) != 2:
            return
        name, tensor = found
        rows, columns = tensor.shape
        states = expected_states(run.record.engine, draft, run.releases) or frozenset({3})
        own = draft.number("hidden_size")
        if columns not in {count * fed for count in states}:
            made_for = f"{columns / fed:g} states of width {fed:,}" if columns % fed == 0 else f"{columns:,} inputs"
            yield self.finding(
                f"The draft's projection takes {made_for}, the engine feeds {words.listing(sorted(map(str, states)))} states",
                f"{name} is {tensor}; {max(states)} states of width {fed:,} are {max(states) * fed:,} inputs.",
                values={"draft": columns, "target": max(states) * fed},
                evidence=[weights.evidence(name), draft.evidence("target_hidden_size", "hidden_size")],
                fix=[
                    "Use the config.json that was written with these weights: target_hidden_size and the layer ids belong to them."
                ],
                verify=["Compare with the training run's config.json."],
            )
        elif own and rows != own:
            yield self.finding(
                f"The draft's projection gives width {rows:,}, its config says {own:,.0f}",
                f"{name} is {tensor}.",
                values={"draft": rows, "target": int(own)},
                evidence=[weights.evidence(name), draft.evidence("hidden_size")],
                fix=["Use the config.json that was written with these weights."],
                verify=["Compare with the training run's config.json."],
            )

    def _names(self, weights: Weights) -> Iterator[Finding]:
        """Weights under names that nobody looks for load as random ones, without a word."""
        if not weights.complete:
            return
        missing = []
        if weights.named("fc.weight") is None:
            missing.append("fc.weight")
        short = [name.removeprefix("model.") for name in weights.tensors]
        if not any(name.startswith(LAYER_NAMES) for name in short):
            missing.append("a layer (midlayer. or layers.0.)")
        if not missing:
            return
        yield self.finding(
            f"The draft's weights hold no {words.listing(missing)}",
            "Names that the engine does not look for are skipped, and what it looks for and does not find keeps random values.",
            values={"draft": sorted(weights.tensors)[:8], "target": missing},
            evidence=[weights.evidence(missing[0])],
            fix=[
                "Export the draft with the names of the engine: fc.weight, norm.weight, lm_head.weight, midlayer.* or layers.0.*, d2t."
            ],
            verify=["Compare acceptance before and after: with random weights nothing is accepted."],
            confidence=Confidence.MEDIUM,
        )


def _eagle3(event: Event) -> bool:
    return "Eagle3" in str(event.values.get("type", ""))


def _is_eagle3(config: ModelConfig) -> bool:
    return kind_of(config) in READS_SEVERAL_LAYERS and (
        any("Eagle3" in name for name in config.architectures) or config.raw.get("speculators_model_type") == "eagle3"
    )


def _class_of(config: ModelConfig | None) -> str:
    names = config.architectures if config is not None else ()
    return next((name for name in names if "Eagle3" in name), names[0] if names else "EAGLE-3 draft")


def _may_be(kind: Kind, method: str, config: ModelConfig) -> bool:
    """Configs too plain to tell: a draft of one layer that names nothing else."""
    plain = kind in (Kind.EAGLE, Kind.MODEL) and not config.layers
    return plain or (kind is Kind.EAGLE and method in ("eagle3", "mtp")) or (kind is Kind.MODEL and method == "mtp")


def _by_name(run: RunView) -> str | None:
    """The name of a draft for EAGLE that says that it is one for EAGLE-3; ``None`` where the log shows both that were loaded."""
    path = run.arguments[_DRAFT].runs
    loaded = {event.values.get("type") for event in run.record.events_of("weights-loaded")}
    if run.method != "eagle" or not isinstance(path, str) or len(loaded) > 1:
        return None
    name = path.rstrip("/").rpartition("/")[2]
    return name if _CALLED_EAGLE3.search(name) else None


def _lacks_draft(run: RunView) -> bool:
    """Whether SGLang is asked to draft with a model that nobody names; a server that decodes has found one."""
    stated = run.record.engine == "sglang" and run.method in NEEDS_DRAFT and not run.drafting.has_draft_path
    return stated and not run.record.windows
