"""The launch command of llama.cpp's server.

Source of the options: ``common/arg.cpp`` of a build of October 2026, and those that earlier builds
had (``--draft-max``, ``--ctx-size-draft``), read into ``llamacpp_flags.tsv``. An option with several
names goes under the one with ``--spec-``, else under that of its environment variable. Values of
environment variables count where no option is given.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar, Final

from collector.launch.base import Dialect
from collector.launch.options import Option, load_options, read_options
from collector.launch.shell import Word

_SERVER: Final = re.compile(r"(?:.*[/\\])?llama-server(?:\.exe)?")
_IMAGE: Final = re.compile(r"(?:[\w.:-]+/)*llama\.cpp:(?P<tag>server[\w.-]*)(?:@.*)?")
_BUILD: Final = re.compile(r"(?:^|-)(b\d{3,})(?:-|$)")


class LlamacppDialect(Dialect):
    """``llama-server``."""

    engine: ClassVar[str] = "llamacpp"
    title: ClassVar[str] = "llama.cpp"
    program: ClassVar[tuple[str, ...]] = ("llama-server",)

    def begins(self, words: list[Word]) -> int | None:
        """The index after ``llama-server``, wherever it lies."""
        return next((index + 1 for index, word in enumerate(words) if _SERVER.fullmatch(word.text)), None)

    def options(self) -> Mapping[str, Option]:
        """Every option of the builds read."""
        return _options()

    def from_environment(self, environment: Mapping[str, str]) -> Mapping[str, Any]:
        """Options that variables set, such as ``LLAMA_ARG_SPEC_TYPE``."""
        table = _variables()
        words = [
            Word(f"{table[name]}={value}", 1, 0, 0) for name, value in environment.items() if name in table and value
        ]
        return read_options(words, _options(), "environment").values

    def settled(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Switches that are turned off under the name of the switch."""
        fields = {option.field for option in _options().values() if option.is_switch}
        return {
            **{name: value for name, value in values.items() if not (name.startswith("no_") and name[3:] in fields)},
            **{
                name[3:]: False
                for name, value in values.items()
                if name.startswith("no_") and name[3:] in fields and value is True
            },
        }

    def starts_in(self, image: str) -> tuple[str, ...]:
        """Images whose tag begins with ``server`` start it."""
        return self.program if _IMAGE.fullmatch(image) else ()

    def release_in(self, image: str) -> str:
        """The build that a tag such as ``server-cuda-b9093`` names."""
        match = _IMAGE.fullmatch(image)
        build = _BUILD.search(match["tag"]) if match is not None else None
        return build[1] if build is not None else ""

    def named_in(self, text: str) -> bool:
        """Whether a text may hold the command."""
        return "llama-server" in text


DIALECT: Final = LlamacppDialect()


@cache
def _options() -> Mapping[str, Option]:
    return load_options("llamacpp_flags.tsv")


@cache
def _variables() -> Mapping[str, str]:
    """Options by the variable that sets them."""
    lines = files(__package__).joinpath("llamacpp_environment.tsv").read_text("utf-8").splitlines()
    pairs = (line.partition("\t") for line in lines if not line.startswith("#"))
    return {variable: option for variable, _, option in pairs}
