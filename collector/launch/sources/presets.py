"""Presets of a llama.cpp router (``--models-preset FILE``): options of each model, without their dashes.

Keys are long or short options or the variables that set them; ``[*]`` holds what all models have.

Source: llama.cpp, ``tools/server/README.md`` and ggml-org/llama.cpp#17859.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import ClassVar, Final, NamedTuple

from collector.launch.llamacpp import DIALECT
from collector.launch.shell import Word
from collector.launch.sources.base import LaunchSource, Snippet

_SECTION: Final = re.compile(r"\s*\[(?P<name>[^\]\n]+)\]\s*(?:[;#].*)?")
_PAIR: Final = re.compile(r"\s*(?P<key>[A-Za-z][\w.-]*)\s*=\s*(?P<value>.*?)\s*(?:\s[;#].*)?")
_VARIABLE: Final = "LLAMA_ARG_"
_TELLING: Final = frozenset({
    "c", "ctx-size", "fa", "flash-attn", "hf", "hf-repo", "jinja", "m", "md", "model-draft", "n-gpu-layers", "ngl",
    "spec-draft-model", "spec-draft-n-max", "spec-type",
})  # fmt: skip
"""Keys of which a file must have one, for many other programs keep sections of pairs."""
_OF_THE_ROUTER: Final = frozenset({"version", "load-on-startup", "stop-timeout"})
_ON: Final = frozenset({"true", "on", "1", "enabled", "yes"})
_OFF: Final = frozenset({"false", "off", "0", "disabled", "no"})
_ALL: Final = "*"


class PresetSource(LaunchSource):
    """One command for each model of the file."""

    kind: ClassVar[str] = "presets of a llama.cpp router"
    order: ClassVar[int] = 2

    def snippets(self, text: str, source: str) -> list[Snippet] | None:  # noqa: ARG002 - words have lines alone
        """The router starts ``llama-server`` with a model's options and those of all models."""
        sections = _sections(text)
        if sections is None:
            return None
        shared = sections.pop(_ALL, [])
        return [_snippet(name, _merged(shared, pairs)) for name, pairs in sections.items()]


SOURCE: Final = PresetSource()


class _Pair(NamedTuple):
    """One ``key = value`` and its line."""

    key: str
    value: str
    line: int


def _sections(text: str) -> dict[str, list[_Pair]] | None:
    """Pairs by section; ``None`` where the text is anything else."""
    sections: dict[str, list[_Pair]] = {}
    pairs: list[_Pair] = []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.lstrip().startswith((";", "#")):
            continue
        if section := _SECTION.fullmatch(line):
            pairs = sections.setdefault(section["name"].strip(), [])
        elif pair := _PAIR.fullmatch(line):
            pairs.append(_Pair(pair["key"], pair["value"], number))
        else:
            return None
    keys = {pair.key for found in sections.values() for pair in found}
    return sections if any(key in _TELLING or key.startswith(_VARIABLE) for key in keys) else None


def _merged(shared: list[_Pair], own: list[_Pair]) -> list[_Pair]:
    """What all models have and this one does not state itself, then its own."""
    stated = {_field(pair.key) for pair in own}
    return [*(pair for pair in shared if _field(pair.key) not in stated), *own]


def _snippet(name: str, pairs: list[_Pair]) -> Snippet:
    first = min((pair.line for pair in pairs), default=1)
    words = [Word("llama-server", first, 0, 0)]
    for pair in pairs:
        if pair.key not in _OF_THE_ROUTER and not pair.key.startswith(_VARIABLE):
            words += _option(pair)
    if "/" in name and not {_field(pair.key) for pair in pairs} & {"model", "hf_repo"}:
        words += [Word("--hf-repo", first, 0, 0), Word(name, first, 0, 0)]
    environment = {pair.key: pair.value for pair in pairs if pair.key.startswith(_VARIABLE)}
    return Snippet(words, verbatim=False, environment=environment, label=name)


def _option(pair: _Pair) -> Iterator[Word]:
    """The option with its value; a switch alone, and what turns it off where it is off."""
    table = DIALECT.options()
    short = f"-{pair.key}"
    name = short if f"-{short}" not in table and (short in table or len(pair.key) == 1) else f"-{short}"
    known = table.get(name)
    if known is None or not known.is_switch:
        yield from (Word(text, pair.line, 0, 0) for text in (name, pair.value) if text)
    elif pair.value.lower() in _ON:
        yield Word(name, pair.line, 0, 0)
    elif pair.value.lower() in _OFF:
        yield Word(f"--no-{known.field.replace('_', '-')}", pair.line, 0, 0)


def _field(key: str) -> str:
    """What a key sets, by whichever of its names."""
    table = DIALECT.options()
    known = table.get(f"--{key}") or table.get(f"-{key}")
    return known.field if known is not None else key
