"""How people call engines, methods and models."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

ENGINES: Final[Mapping[str, str]] = {
    "sglang": "SGLang",
    "vllm": "vLLM",
    "llamacpp": "llama.cpp",
    "tensorrt-llm": "TensorRT-LLM",
}
METHODS: Final[Mapping[str, str]] = {
    "eagle": "EAGLE",
    "eagle3": "EAGLE-3",
    "mtp": "MTP",
    "ngram": "n-gram",
    "ngram_gpu": "n-gram on the GPU",
    "draft_model": "draft model",
    "medusa": "Medusa",
    "dflash": "DFlash",
}
SEVERITIES: Final[Mapping[str, str]] = {"critical": "Critical", "warning": "Warning", "info": "Note"}
ROLES: Final[Mapping[str, str]] = {"subject": "this run", "previous": "the run before", "baseline": "no speculation"}

_TARGET_ARGUMENTS: Final = ("served_model_name", "model_path", "model")
_DRAFT_ARGUMENTS: Final = ("speculative_draft_model_path", "speculative_model", "model_draft")


def engine(key: str) -> str:
    """``SGLang`` for ``sglang``; an unknown engine keeps its key."""
    return ENGINES.get(key, key) or "engine not stated"


def method(key: str | None, *, speculates: bool | None = None) -> str:
    """``EAGLE-3`` for ``eagle3``; without a method it depends on whether the run is known not to speculate."""
    if key is not None:
        return METHODS.get(key, key)
    return "no speculation" if speculates is False else "method not stated"


def model(value: Any) -> str:
    """The last part of a model's path or repository name; "" where it is not a text."""
    if isinstance(value, (list, tuple)) and value:
        value = value[0]
    return value.rstrip("/").rsplit("/", 1)[-1] if isinstance(value, str) else ""


def target(runs_with: Callable[[str], Any]) -> str:
    """The target's name from the arguments that engines use for it, "" where none is stated."""
    return next((name for argument in _TARGET_ARGUMENTS if (name := model(runs_with(argument)))), "")


def draft(runs_with: Callable[[str], Any]) -> str:
    """The draft's name likewise; "" where none is stated or the target drafts itself."""
    for argument in _DRAFT_ARGUMENTS:
        if name := model(runs_with(argument)):
            return name
    config = runs_with("speculative_config")
    return model(config.get("model")) if isinstance(config, Mapping) else ""
