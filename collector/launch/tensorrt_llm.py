"""TensorRT-LLM's launch command.

Source of the options: ``docs/source/commands/trtllm-serve`` and ``llmapi/llm_args.py`` of 2025 and
2026, read into ``tensorrt_llm_flags.tsv``; most settings stand in the file that ``--config`` (before:
``--extra_llm_api_options``) names. What the command line says wins over the file.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Final

from collector.launch.base import Dialect
from collector.launch.nested import flattened
from collector.launch.options import Option, guessed, load_options
from collector.launch.shell import Word


class TensorrtLlmDialect(Dialect):
    """``trtllm-serve``, with or without its ``serve`` subcommand."""

    engine: ClassVar[str] = "tensorrt-llm"
    title: ClassVar[str] = "TensorRT-LLM"
    program: ClassVar[tuple[str, ...]] = ("trtllm-serve",)
    settings_field: ClassVar[str] = "config"

    def begins(self, words: list[Word]) -> int | None:
        """The index after ``trtllm-serve`` or ``trtllm-serve serve``."""
        for index, word in enumerate(words):
            if word.text == "trtllm-serve" or word.text.endswith("/trtllm-serve"):
                following = words[index + 1].text if index + 1 < len(words) else ""
                return index + 2 if following == "serve" else index + 1
        return None

    def options(self) -> Mapping[str, Option]:
        """Every option of the releases read, and the settings of the options file."""
        return _options()

    def positional(self, words: tuple[str, ...]) -> Mapping[str, str]:
        """``trtllm-serve MODEL`` names the model without an option."""
        return {"model": words[0]} if words else {}

    def settled(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Settings of nested options under names of their own, those of ``--set PATH=VALUE`` included."""
        named = flattened({name: value for name, value in values.items() if name != "set"})
        for assignment in str(values.get("set") or "").split(","):
            path, given, value = assignment.partition("=")
            if given and path.strip():
                named[path.strip()] = _value(value)
        return named

    def named_in(self, text: str) -> bool:
        """Whether a text may hold the command."""
        return "trtllm-serve" in text


DIALECT: Final = TensorrtLlmDialect()


@cache
def _options() -> Mapping[str, Option]:
    """Options with underscores, as the command has them, and with dashes, as settings files are read."""
    table = load_options("tensorrt_llm_flags.tsv")
    return {**table, **{spelling.replace("_", "-"): option for spelling, option in table.items()}}


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return guessed(text)
