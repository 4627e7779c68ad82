"""Tails of the form ``key: value, key: value`` read by their shape.

A shape is parsed strictly once (:mod:`collector.formats.learned`). So one path serves every release: keys in
another order, missing or new ones are found instead of lost, and a tail cut by another writer never passes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from collector.domain.arguments import Value
from collector.formats.figures import LONGEST_FIGURE
from collector.formats.learned import LearnedForms

LONGEST_TAIL: Final = 2_000

_ITERATION = re.compile(rb"\s*\[\d+\](?=[.,])")
_ITEM = re.compile(
    rb"(?P<key>[#A-Za-z][A-Za-z0-9 ./()_#&-]{0,60}?): "
    rb"(?P<value>-?[\d.]+(?:e[+-]?\d+)?%?|-?nan|-?inf|True|False|[\d.]+ \[[\d.]+)"
)
_RANGE_END = re.compile(rb"[\d.]+\]")
_BEHIND_VALUE = b" ,\r"
_SPECIAL: Mapping[bytes, Value] = {b"True": True, b"False": False}


class Pairs(NamedTuple):
    """A tail that was read: values under our names, the engine's keys, and how it was punctuated."""

    values: dict[str, Value]
    form: Form


@dataclass(frozen=True, slots=True)
class Form:
    """What all tails of one shape share.

    ``keys`` are the engine's in their order, ``stop`` the character after the literal
    (``.`` or ``,``), ``trailing_comma`` whether the tail ends in one, ``names`` ours by item.
    """

    keys: tuple[bytes, ...]
    stop: bytes
    trailing_comma: bool
    names: tuple[str | None, ...]

    @property
    def first_item(self) -> int:
        """Which of the parts between commas holds the first value.

        With ``Decode batch, `` the first part is what precedes the first comma; with a full stop it
        starts the first key.
        """
        return 1 if self.stop == b"," else 0


class Span(NamedTuple):
    """Where a value stands in a text, our name for it, and its digits before the point where their number is fixed."""

    start: int
    end: int
    name: str
    whole: int = 0


class PairTail:
    """Reads the tails of one kind of line."""

    def __init__(self, names: Mapping[bytes, str], required: tuple[bytes, ...]) -> None:
        self._names = names
        self._required = required
        self._forms = LearnedForms(self._learn)

    def read(self, tail: bytes) -> Pairs | None:
        """The values of a tail, or ``None`` if it is torn."""
        if len(tail) > LONGEST_TAIL:
            return None
        form = self._forms.of(tail)
        if form is None:
            return None
        values: dict[str, Value] = {}
        items = tail.split(b", ")
        try:
            for item, name in zip(items[form.first_item :], form.names, strict=False):
                if name is not None:
                    values[name] = _value(item[item.rindex(b": ") + 2 :])
        except ValueError:
            return None
        return Pairs(values, form)

    def spans(self, tail: bytes, form: Form) -> list[Span]:
        """Where the values stand in a tail that was read to this form."""
        found: list[Span] = []
        position = 0
        items = tail.split(b", ")
        names = [None] * form.first_item + list(form.names)
        for item, name in zip(items, names, strict=False):
            if name is not None:
                start = position + item.rindex(b": ") + 2
                found.append(Span(start, position + len(item.rstrip(_BEHIND_VALUE)), name))
            position += len(item) + 2
        return found

    def _learn(self, tail: bytes) -> Form | None:
        rest = tail
        iteration = _ITERATION.match(rest)
        if iteration is not None:
            rest = rest[iteration.end() :]
        stop, rest = rest[:1], rest[1:].rstrip(b"\r")
        if stop not in (b".", b",") or not rest.startswith(b" "):
            return None
        trailing = rest.rstrip(b" ").endswith(b",")
        rest = rest.strip(b" ").removesuffix(b",")
        keys: list[bytes] = []
        names: list[str | None] = []
        for item in rest.split(b", "):
            match = _ITEM.fullmatch(item)
            if match is None and keys and _RANGE_END.fullmatch(item):
                names.append(None)  # ``est: 2.3 [2.1, 2.5]`` holds a comma of its own
                continue
            if match is None or match["key"] in keys:
                return None
            name = self._names.get(match["key"])
            names.append(None if name in names else name)
            keys.append(match["key"])
        if any(key not in keys for key in self._required):
            return None
        return Form(tuple(keys), stop, trailing, tuple(names))


def _value(text: bytes) -> Value:
    text = text.rstrip(_BEHIND_VALUE)
    special = _SPECIAL.get(text)
    if special is not None:
        return special
    if len(text) > LONGEST_FIGURE:
        raise ValueError("no engine prints so many digits")
    if text.endswith(b"%"):
        return float(text[:-1]) / 100
    return float(text)
