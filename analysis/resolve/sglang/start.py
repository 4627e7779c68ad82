"""The parser, and what stands in for flags that were not given."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Final

from analysis.resolve.base import Launch, Unsettled
from analysis.resolve.sglang.engine import ARGUMENTS, Stage, step
from collector.domain.versions import ReleaseRange

_MODEL_FROM: Final = ("tokenizer_path", "served_model_name")


@cache
def _choices() -> Mapping[str, Mapping[str, str]]:
    choices: Mapping[str, Mapping[str, str]] = json.loads(Path(__file__).with_name("choices.json").read_text("utf-8"))
    return choices


@step(
    "sglang-106",
    "Unknown flag",
    when="the release has no such flag",
    then="refused by the parser",
    source=ARGUMENTS,
    stage=Stage.PARSE,
)
def unknown_flag(launch: Launch) -> None:
    """The parser knows the flags of its own release only."""
    for flag in launch.requested:
        if not launch.has(flag):
            launch.reject(f"unrecognized arguments: --{flag.replace('_', '-')}", "SystemExit")


@step(
    "sglang-107",
    "Value that is no choice",
    when="the flag takes one of a list, and the value is not on it",
    then="refused by the parser",
    source=ARGUMENTS,
    stage=Stage.PARSE,
)
def unknown_choice(launch: Launch) -> None:
    """``choices.json`` has for each flag the values it takes, and in which releases."""
    for flag, value in launch.requested.items():
        ranges = _choices().get(flag)
        if ranges is None or value is None:
            continue
        allowed = [choice for choice, text in ranges.items() if launch.release in ReleaseRange.parse(text)]
        if allowed and value not in allowed:
            option = f"--{flag.replace('_', '-')}"
            listed = ", ".join(map(repr, allowed))
            launch.reject(f"argument {option}: invalid choice: {value!r} (choose from {listed})", "SystemExit")


@step(
    "sglang-108",
    "Names follow the model",
    when="tokenizer_path or served_model_name is not set",
    then="they become model_path",
    source=ARGUMENTS,
    stage=Stage.DEFAULTS,
    sets=_MODEL_FROM,
)
def names_follow_model(launch: Launch) -> None:
    """Tokenizer and served name are the model's."""
    for flag in _MODEL_FROM:
        if launch[flag] is None:
            launch[flag] = launch["model_path"]


@step(
    "sglang-109",
    "Device found",
    when="device is not set",
    then="it becomes what the machine has",
    source=ARGUMENTS,
    stage=Stage.DEFAULTS,
    sets=("device",),
)
def device_found(launch: Launch) -> None:
    """The engine looks for a GPU."""
    if launch["device"] is None:
        launch["device"] = "cuda" if launch.gpu.memory else "cpu"


@step(
    "sglang-110",
    "Seed drawn",
    when="random_seed is not set",
    then="it is drawn anew at each start",
    source=ARGUMENTS,
    stage=Stage.DEFAULTS,
    sets=("random_seed",),
)
def seed_drawn(launch: Launch) -> None:
    """Nobody can know it before."""
    if launch["random_seed"] is None:
        raise Unsettled("chance: it is drawn anew at each start")


@step(
    "sglang-10",
    "Draft quantization follows the target",
    when="speculative_draft_model_quantization is not set",
    then="it becomes quantization",
    releases="0.5.7-",
    source=ARGUMENTS,
    stage=Stage.DEFAULTS,
    sets=("speculative_draft_model_quantization",),
)
def draft_quantization(launch: Launch) -> None:
    """The draft is quantized as the target unless told otherwise."""
    if launch["speculative_draft_model_quantization"] is None:
        launch["speculative_draft_model_quantization"] = launch["quantization"]


@step(
    "sglang-11",
    "Draft not quantized",
    when="speculative_draft_model_quantization is unquant",
    then="the draft is not quantized",
    releases="0.5.7-",
    source=ARGUMENTS,
    stage=Stage.DEFAULTS,
    sets=("speculative_draft_model_quantization",),
)
def draft_unquantized(launch: Launch) -> None:
    """The word that keeps a draft unquantized."""
    if launch["speculative_draft_model_quantization"] == "unquant":
        launch["speculative_draft_model_quantization"] = None


@step(
    "sglang-111",
    "Kernels for sampling and grammar",
    when="sampling_backend or grammar_backend is not set",
    then="flashinfer samples (pytorch on a CPU), xgrammar guides",
    source=ARGUMENTS,
    stage=Stage.MODEL,
    sets=("sampling_backend", "grammar_backend"),
)
def kernels(launch: Launch) -> None:
    """As installed by the release's own requirements."""
    if launch["grammar_backend"] is None:
        launch["grammar_backend"] = "xgrammar"
    if launch["sampling_backend"] is None:
        launch["sampling_backend"] = "pytorch" if launch["device"] == "cpu" else "flashinfer"
