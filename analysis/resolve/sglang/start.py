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

_TAKEN_IN_VAIN: Final = {
    "enable_piecewise_cuda_graph": "0.5.10-0.5.13",
    "hybrid_kvcache_ratio": "0.5.8-0.5.13",
    "prefill_round_robin_balance": "0.5.8-0.5.19",
    "collect_tokens_histogram": "0.5.11-0.5.19",
}
"""Options that are no flags any more, with the releases whose parser still takes them."""

_FILE_OF_FLAGS: Final = ("config", ReleaseRange.parse("0.5.3-"))
"""The option that names a file of further flags: read before the parser runs, no flag itself."""

_NUMBERS: Final = (
    "speculative_num_steps",
    "speculative_eagle_topk",
    "speculative_num_draft_tokens",
    "speculative_accept_threshold_single",
    "speculative_accept_threshold_acc",
    "speculative_dflash_block_size",
    "speculative_dspark_block_size",
    "speculative_draft_window_size",
    "speculative_ngram_max_bfs_breadth",
    "speculative_ngram_max_match_window_size",
    "tp_size",
    "dp_size",
    "pp_size",
    "ep_size",
    "attn_dp_size",
    "attn_cp_size",
    "nnodes",
    "max_running_requests",
    "max_total_tokens",
    "max_prefill_tokens",
    "chunked_prefill_size",
    "page_size",
    "context_length",
    "mem_fraction_static",
    "schedule_conservativeness",
    "cpu_offload_gb",
    "cuda_graph_max_bs",
    "cuda_graph_max_bs_decode",
    "cuda_graph_max_bs_prefill",
    "piecewise_cuda_graph_max_tokens",
    "disaggregation_decode_extra_slots",
    "dcp_size",
)
"""Flags whose value the steps count with."""
_WORDS: Final = ("model_path", "speculative_algorithm", "speculative_draft_model_path", "device")
"""Flags whose value is a word, beside those with choices."""


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
    """The parser knows the flags of its own release only, and a few that it takes and nothing reads."""
    for flag in launch.requested:
        if launch.has(flag) or (flag == _FILE_OF_FLAGS[0] and launch.release in _FILE_OF_FLAGS[1]):
            continue
        if launch.release in ReleaseRange.parse(_TAKEN_IN_VAIN.get(flag, "0-0")):
            launch.ignore(flag, "the parser still takes it, and nothing reads it")
        else:
            launch.reject(f"unrecognized arguments: {_option(flag)}", "SystemExit")


@step(
    "sglang-159",
    "Value of the wrong kind",
    when="a flag that counts is given a word, a switch a value, a name a number",
    then="refused by the parser",
    source=ARGUMENTS,
    stage=Stage.PARSE,
)
def wrong_kind(launch: Launch) -> None:
    """Steps, sizes and shares are numbers; backends and algorithms are words."""
    for flag, value in launch.requested.items():
        default = launch.defaults.get(flag)
        kind: type | tuple[type, ...] = object
        if flag in _NUMBERS:
            kind = (int, float)
        elif flag in _choices() or flag in _WORDS:
            kind = str
        elif isinstance(default, bool):
            kind = bool
        elif flag == "cuda_graph_config":
            kind = dict
        fits = isinstance(value, kind) and not (flag in _NUMBERS and isinstance(value, bool))
        if not fits and flag not in launch.depends:
            launch.reject(f"argument {_option(flag)}: invalid value: {value!r}", "SystemExit")


def _option(flag: str) -> str:
    return f"--{flag.replace('_', '-')}"


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
        if ranges is None or value is None or flag in launch.depends:
            continue
        allowed = [choice for choice, text in ranges.items() if launch.release in ReleaseRange.parse(text)]
        if allowed and value not in allowed:
            listed = ", ".join(map(repr, allowed))
            launch.reject(f"argument {_option(flag)}: invalid choice: {value!r} (choose from {listed})", "SystemExit")


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
