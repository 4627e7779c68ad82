"""What vLLM tells of itself: its release, the served model, and in development mode how it runs.

Source: vLLM, ``vllm/entrypoints/openai/api_server.py`` and ``vllm/entrypoints/serve/instrumentator``,
releases 0.8.5 to 0.32.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from collector.domain.arguments import Argument, Arguments, Value
from collector.domain.evidence import Evidence
from collector.domain.redaction import redact_text, redact_value
from collector.domain.versions import Release
from collector.metrics.base import Document, EngineInfo

VERSION: Final = "/version"
SERVER_INFO: Final = "/server_info?config_format=json"

# Fields of the whole configuration, by section, that are kept; they carry the names of options.
_SECTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "model_config": (
        "model", "tokenizer", "dtype", "max_model_len", "quantization", "enforce_eager", "seed", "served_model_name",
    ),
    "parallel_config": (
        "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "decode_context_parallel_size",
        "enable_expert_parallel", "enable_dbo",
    ),
    "scheduler_config": (
        "max_num_batched_tokens", "max_num_scheduled_tokens", "max_num_seqs", "enable_chunked_prefill",
        "async_scheduling", "disable_hybrid_kv_cache_manager",
    ),
    "cache_config": ("block_size", "cache_dtype", "enable_prefix_caching", "gpu_memory_utilization", "num_gpu_blocks"),
    "device_config": ("device",),
    "load_config": ("load_format",),
}  # fmt: skip
_OPTIONS: Final = {"cache_dtype": "kv_cache_dtype"}
_SPECULATION: Final = "speculative_config"
_COMPILATION: Final = "compilation_config"
_GRAPH_MODES: Final = {
    "0": "NONE",
    "1": "PIECEWISE",
    "2": "FULL",
    "[2, 0]": "FULL_DECODE_ONLY",
    "[2, 1]": "FULL_AND_PIECEWISE",
}
_DTYPE: Final = "torch."
_SHOWN_CHARACTERS: Final = 400


def read_documents(documents: Sequence[Document]) -> EngineInfo:
    """Release and effective arguments, as far as the server tells."""
    version: Release | None = None
    found: dict[str, Argument] = {}
    for document in documents:
        if document.path == VERSION:
            version = _release(document.content.get("version"))
        elif document.path == SERVER_INFO:
            found |= _arguments(document, dict(_running(document.content.get("vllm_config"))))
        else:
            found = _arguments(document, dict(_served(document.content.get("data")))) | found
    return EngineInfo(engine_version=version, arguments=Arguments(found))


def cache_arguments(labels: Mapping[str, str]) -> dict[str, Value]:
    """The cache's settings from the labels of ``vllm:cache_config_info``, which are printed Python values."""
    return {_OPTIONS.get(name, name): _value(labels[name]) for name in _SECTIONS["cache_config"] if name in labels}


def _served(models: Any) -> Iterator[tuple[str, Value]]:
    """The first model of the list: the name it is served by, where it came from, its window."""
    first = models[0] if isinstance(models, list) and models and isinstance(models[0], dict) else {}
    for key, name in (("id", "served_model_name"), ("root", "model"), ("max_model_len", "max_model_len")):
        if first.get(key) is not None:
            yield name, first[key]


def _running(config: Any) -> Iterator[tuple[str, Value]]:
    """The whole configuration under the names of options; before 0.11 it is one long text, which tells too little."""
    if not isinstance(config, dict):
        return
    for section, kept in _SECTIONS.items():
        yield from ((_OPTIONS.get(name, name), value) for name, value in _fields(config.get(section)) if name in kept)
    if _SPECULATION in config and config[_SPECULATION] is None:
        yield _SPECULATION, None
    yield from ((f"{_SPECULATION}.{name}", value) for name, value in _fields(config.get(_SPECULATION)))
    compilation = config.get(_COMPILATION)
    if isinstance(compilation, dict):
        mode = compilation.get("cudagraph_mode")
        yield f"{_COMPILATION}.cudagraph_mode", _GRAPH_MODES.get(str(mode), str(mode))
        yield f"{_COMPILATION}.max_cudagraph_capture_size", compilation.get("max_cudagraph_capture_size")


def _fields(section: Any) -> Iterator[tuple[str, Value]]:
    """Fields that hold one value each."""
    for name, value in section.items() if isinstance(section, dict) else ():
        if isinstance(value, str):
            yield name, value.removeprefix(_DTYPE)
        elif value is None or isinstance(value, (bool, int, float)):
            yield name, value


def _arguments(document: Document, values: Mapping[str, Value]) -> dict[str, Argument]:
    redacted = {name: redact_value(name, value) for name, value in values.items()}
    return {
        name: Argument(name, effective=value, effective_evidence=Evidence(document.url, None, _fragment(name, value)))
        for name, value in redacted.items()
    }


def _fragment(name: str, value: Value) -> str:
    return redact_text(f"{json.dumps(name)}: {json.dumps(value, ensure_ascii=False, default=str)}"[:_SHOWN_CHARACTERS])


def _value(text: str) -> Value:
    known: dict[str, Value] = {"True": True, "False": False, "None": None}
    if text in known:
        return known[text]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text


def _release(text: Any) -> Release | None:
    try:
        return Release.parse(str(text))
    except ValueError:
        return None
