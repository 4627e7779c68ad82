"""SGLang's launch command.

Source of the options: ``srt/server_args.py`` and ``srt/arg_groups/fields`` of releases 0.4.4 to
0.5.23, read into ``sglang_flags.tsv``. Where a later release gave an option another field, the
first is kept, so that requested and effective values meet under the option's own name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import ClassVar, Final

from collector.launch.base import Dialect
from collector.launch.options import Kind, Option, load_options
from collector.launch.shell import Word

_PYTHON: Final = re.compile(r"(?:.*/)?(?:python|pypy)[\d.]*$|.*\$\{?\w*PYTHON\w*\}?$", re.IGNORECASE)
# Spellings that argparse completes to one option in every release.
_SHORT: Final = {"--tp": "tp_size", "--dp": "dp_size", "--pp": "pp_size", "--ep": "ep_size"}


class SglangDialect(Dialect):
    """``python -m sglang.launch_server``, ``sglang serve`` and the script itself."""

    engine: ClassVar[str] = "sglang"
    title: ClassVar[str] = "SGLang"
    program: ClassVar[tuple[str, ...]] = ("python", "-m", "sglang.launch_server")
    images: ClassVar[frozenset[str]] = frozenset({"sglang"})
    settings_field: ClassVar[str] = "config"

    def begins(self, words: list[Word]) -> int | None:
        """The index after ``sglang.launch_server``, ``launch_server.py`` or ``sglang serve``."""
        for index, word in enumerate(words):
            before = words[index - 1].text if index else ""
            if word.text == "sglang.launch_server" and before == "-m":
                return index + 1
            if word.text.endswith("launch_server.py") and (not index or _PYTHON.match(before) or "sglang" in word.text):
                return index + 1
            if word.text == "serve" and (before == "sglang" or before.endswith("/sglang")):
                return index + 1
        return None

    def options(self) -> Mapping[str, Option]:
        """Every option of the releases read."""
        return _options()

    def positional(self, words: tuple[str, ...]) -> Mapping[str, str]:
        """``sglang serve MODEL`` names the model without an option."""
        return {"model_path": words[0]} if words else {}


DIALECT: Final = SglangDialect()


@cache
def _options() -> Mapping[str, Option]:
    table = load_options("sglang_flags.tsv")
    for spelling, field in _SHORT.items():
        table[spelling] = Option(field, Kind.WHOLE)
    return table
