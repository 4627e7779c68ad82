"""The engine: releases read, stations of a launch, flags with their defaults, what steps ask often."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import IntEnum, auto
from functools import cache
from pathlib import Path
from typing import Any, Final

from analysis.resolve.base import Engine, Launch, Unsettled, with_names_of_their_own
from collector.domain.arguments import Value
from collector.domain.drafts import ModelConfig
from collector.domain.versions import Release

_READ: Final = """
0.8.5 0.9.0.1 0.9.1 0.9.2 0.10.0 0.10.1.1 0.10.2 0.11.0 0.11.1 0.11.2 0.12.0 0.13.0 0.14.1 0.15.1 0.16.0 0.17.1
0.18.1 0.19.1 0.20.2 0.21.0 0.22.1 0.23.0 0.24.0 0.25.1 0.26.0 0.27.1 0.28.0 0.29.0 0.30.0 0.31.0 0.32.0
"""
READ: Final = tuple(Release.parse(text) for text in _READ.split())
"""The releases whose argument processing was read."""

SPECULATIVE: Final = "vllm/config/speculative.py (vllm/config.py, vllm/config/__init__.py before 0.11)"
WHOLE: Final = "vllm/config/vllm.py (vllm/config.py, vllm/config/__init__.py before 0.11.1)"
ARGUMENTS: Final = "vllm/engine/arg_utils.py"

SPECULATION: Final = "speculative_config"
NESTED: Final = (SPECULATION, "compilation_config")
"""The flags that take settings of their own."""


class Stage(IntEnum):
    """The stations of a launch, in the order every release keeps."""

    PARSE = auto()
    HEAD = auto()
    CONFIGURED = auto()
    GENERATION = auto()
    BATCH = auto()
    GIVEN = auto()
    LOOKUP = auto()
    DETECT = auto()
    DEPTH = auto()
    PARALLEL = auto()
    VERIFY = auto()
    ADAPTERS = auto()
    RUNNER = auto()
    SCHEDULE = auto()
    GRAPHS = auto()
    BUDGET = auto()
    CACHE = auto()
    RUNNER_CHECK = auto()
    LOAD = auto()
    REQUEST = auto()


@cache
def _data() -> Mapping[str, Any]:
    data: Mapping[str, Any] = json.loads(Path(__file__).with_name("fields.json").read_text("utf-8"))
    return data


def field_of(name: str) -> str:
    """The full name of a setting of ``speculative_config``."""
    return f"{SPECULATION}.{name}"


FIELDS: Final = tuple(field_of(name) for name in _data()["fields"])
"""Every setting of ``speculative_config`` in any release."""


@cache
def defaults(release: Release) -> Mapping[str, Value]:
    """The flags that steps decide or ask, with their defaults; others have none here.

    ``fields.json`` has for each a list of ``[first release, default]``; an entry without a
    default says from when on it is gone. A release older than all is taken for the oldest.
    """
    data = _data()
    histories = {**data["flags"], **{field_of(name): history for name, history in data["fields"].items()}}
    asked = max(release, READ[0])
    found: dict[str, Value] = {}
    for flag, history in histories.items():
        current = [entry for entry in history if Release.parse(entry[0]) <= asked]
        if current and len(current[-1]) == 2:
            found[flag] = current[-1][1]
    return found


def known_methods(launch: Launch) -> tuple[str, ...]:
    """The values that ``method`` may have in this release."""
    return _since(launch, "methods")


def module_methods(launch: Launch) -> tuple[str, ...]:
    """The names of multi-token-prediction modules in this release, ``mtp`` among them."""
    return _since(launch, "mtp")


def _since(launch: Launch, part: str) -> tuple[str, ...]:
    return tuple(name for name, first in _data()[part].items() if launch.since(first))


def spelled(requested: Mapping[str, Value]) -> Mapping[str, Value]:
    """What was asked for, with nested settings under names of their own."""
    return with_names_of_their_own(requested, NESTED)


ENGINE: Final = Engine("vllm", "vLLM", releases=READ, defaults=defaults, spelled=spelled)
step = ENGINE.step

METHOD: Final = field_of("method")
DRAFT: Final = field_of("model")
TOKENS: Final = field_of("num_speculative_tokens")
LOOKUP_MIN: Final = field_of("prompt_lookup_min")
LOOKUP_MAX: Final = field_of("prompt_lookup_max")
DRAFT_LENGTH: Final = field_of("max_model_len")
DRAFT_RANKS: Final = field_of("draft_tensor_parallel_size")
DRAFT_QUANTIZATION: Final = field_of("quantization")
PARALLEL_DRAFTING: Final = field_of("parallel_drafting")
UNPADDED: Final = field_of("disable_padded_drafter_batch")
BATCH_LIMIT: Final = field_of("disable_by_batch_size")
BY_BATCH: Final = field_of("num_speculative_tokens_per_batch_size")
ASYNC: Final = "async_scheduling"
BATCHED: Final = "max_num_batched_tokens"
SEQUENCES: Final = "max_num_seqs"
SCHEDULED: Final = "max_num_scheduled_tokens"
GRAPH_MODE: Final = "compilation_config.cudagraph_mode"
GRAPH_SIZE: Final = "compilation_config.max_cudagraph_capture_size"
V1: Final = "VLLM_USE_V1"
RUNNER: Final = "VLLM_USE_V2_MODEL_RUNNER"

WITHOUT_DRAFT: Final = ("ngram", "ngram_gpu", "suffix", "custom_class", "extract_hidden_states")
"""Methods that load no draft model."""

HIDDEN_STATES: Final = ("eagle", "eagle3", "mtp", "dflash", "dspark", "deepseek_mtp", "ernie_mtp", "qwen3_next_mtp")
"""Methods that draft from the target's hidden states, under every name they had."""

MODEL_IS_TARGET: Final = "the draft is the target's own"
"""Note of a launch: the draft is read from the target's checkpoint."""


def speculates(launch: Launch) -> bool:
    """Whether speculation is configured; known once the launch is parsed."""
    return METHOD in launch.values


def drafts_with(launch: Launch, *names: str) -> bool:
    """Whether one of these methods drafts."""
    return speculates(launch) and launch[METHOD] in names


def loads_draft(launch: Launch) -> bool:
    """Whether a draft model is loaded."""
    return speculates(launch) and launch[METHOD] not in WITHOUT_DRAFT and launch[DRAFT] is not None


def draft_config(launch: Launch) -> ModelConfig:
    """The draft's ``config.json``, which is the target's where that one drafts for itself.

    Raises:
        Unsettled: it was not given.
    """
    return launch.target if launch.notes.get(MODEL_IS_TARGET) else launch.draft


def target_type(launch: Launch) -> str:
    """``model_type`` of the target's language model.

    Raises:
        Unsettled: the target's config is not given.
    """
    return str(launch.target.text.get("model_type", ""))


_LENGTHS: Final = (
    "max_position_embeddings",
    "n_positions",
    "max_seq_len",
    "seq_length",
    "model_max_length",
    "max_target_positions",
    "max_sequence_length",
    "max_seq_length",
    "seq_len",
)


def stated_context(config: ModelConfig, whose: str) -> tuple[int, str] | None:
    """The longest context a model's config allows, in tokens, and the key that says so; ``None`` where none does.

    Raises:
        Unsettled: its rotary embedding is scaled in a way that is not followed here.
    """
    stated = [(int(length), key) for key in _LENGTHS if (length := config.number(key)) is not None]
    if not stated:
        return None
    scaling = config.text.get("rope_scaling") or config.text.get("rope_parameters") or {}
    kind = scaling.get("rope_type", scaling.get("type", "default")) if isinstance(scaling, Mapping) else "default"
    if kind not in ("default", "llama3", "mrope"):
        raise Unsettled(f"how the {whose}'s rotary embedding is scaled ({kind})")
    return min(stated)


_UNSTATED: Final = 2048


def target_length(launch: Launch) -> int:
    """``max_model_len`` of the target: the one given, else what its config allows.

    Raises:
        Unsettled: neither is known.
    """
    given = launch["max_model_len"]
    if given is None:
        stated = stated_context(launch.target, "target")
        return stated[0] if stated is not None else _UNSTATED
    if isinstance(given, bool) or not isinstance(given, int) or given < 1:
        raise Unsettled(f"what max_model_len {given} comes to on this machine")
    return given


def refuse_long(launch: Launch, asked: int, allowed: tuple[int, str] | None) -> None:
    """Refuse a context longer than a config allows, unless the environment permits it."""
    if allowed is None or asked <= allowed[0] or launch.environment.get("VLLM_ALLOW_LONG_MAX_MODEL_LEN") == "1":
        return
    launch.reject(
        f"User-specified max_model_len ({asked}) is greater than the derived max_model_len "
        f"({allowed[1]}={allowed[0]} or model_max_length=None in model's config.json)."
    )


def on_cpu(launch: Launch) -> bool:
    """Whether the engine runs without a GPU; where nobody said, it is taken to have one."""
    return launch.vendor_is("none")
