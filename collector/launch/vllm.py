"""vLLM's launch command.

Source of the options: ``vllm/engine/arg_utils.py`` and ``vllm/entrypoints`` of releases 0.8.5 to
0.32.0, and the options of 0.5 to 0.8 that are gone since, read into ``vllm_flags.tsv``. Settings of
``--speculative-config`` are named with a dot, whether they were given as JSON or one by one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import Any, ClassVar, Final

from collector.launch.base import Dialect
from collector.launch.nested import flattened
from collector.launch.options import Kind, Option, load_options
from collector.launch.shell import Word

_MODULE: Final = re.compile(r"vllm\.entrypoints\.(?:openai\.)?api_server$|vllm\.entrypoints\.cli\.main$")
_SCRIPT: Final = re.compile(r".*vllm/entrypoints/(?:openai/)?api_server\.py$")
_SCALED: Final = re.compile(r"(\d+(?:\.\d+)?)([kKmMgGtT])")
_SCALE: Final = {
    "k": 1_000, "m": 1_000_000, "g": 1_000_000_000, "t": 1_000_000_000_000,
    "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40,
}  # fmt: skip


class VllmDialect(Dialect):
    """``vllm serve``, and the server's module or script."""

    engine: ClassVar[str] = "vllm"
    title: ClassVar[str] = "vLLM"
    program: ClassVar[tuple[str, ...]] = ("vllm", "serve")
    images: ClassVar[frozenset[str]] = frozenset({"vllm-openai", "vllm-openai-rocm", "vllm-openai-cpu"})
    image_serves: ClassVar[bool] = True
    settings_field: ClassVar[str] = "config"

    def begins(self, words: list[Word]) -> int | None:
        """The index after ``vllm serve`` or ``vllm.entrypoints.openai.api_server``."""
        for index, word in enumerate(words):
            before = words[index - 1].text if index else ""
            if word.text == "serve" and (before in {"vllm", "vllm.exe"} or before.endswith(("/vllm", ".cli.main"))):
                return index + 1
            if _SCRIPT.match(word.text) or (before == "-m" and _MODULE.match(word.text) and "cli" not in word.text):
                return index + 1
        return None

    def options(self) -> Mapping[str, Option]:
        """Every option of the releases read."""
        return _options()

    def positional(self, words: tuple[str, ...]) -> Mapping[str, str]:
        """``vllm serve MODEL`` names the model without an option."""
        model = next((word for word in words if not word.startswith("-")), None)
        return {"model": model} if model is not None else {}

    def settled(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Settings of nested options under names of their own; ``32k`` as the number it stands for."""
        whole = {option.field for option in _options().values() if option.kind is Kind.WHOLE}
        return {name: _whole(value) if name in whole else value for name, value in flattened(values).items()}


DIALECT: Final = VllmDialect()


@cache
def _options() -> Mapping[str, Option]:
    return load_options("vllm_flags.tsv")


def _whole(value: Any) -> Any:
    """A number with a suffix: ``k`` is 1000, ``K`` is 1024."""
    match = _SCALED.fullmatch(value) if isinstance(value, str) else None
    return value if match is None else int(float(match[1]) * _SCALE[match[2]])
