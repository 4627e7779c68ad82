"""Fields of Python objects as engines print them: ``name=value, …`` or ``'name': value, …``.

Values are Python reprs with strings that hold commas and brackets, nested objects, callables and
``nan``; so the text is scanned with an eye on quotes and brackets, and only single values are
evaluated.
"""

from __future__ import annotations

import ast
import math
import re
from typing import Any, Final, NamedTuple

FIELDS_KEPT: Final = 4_096
LONGEST_LITERAL: Final = 20_000
"""Longer values stay text: evaluating them could take more memory than the whole log."""

NAME: Final = re.compile(r"\s*([A-Za-z_]\w{0,100})=")
KEY: Final = re.compile(r"""\s*(['"])([A-Za-z_]\w{0,100})\1:\s?""")

_PLAIN = re.compile(r"""[^'"()\[\]{},]+""")
_STRING = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", re.DOTALL)
_OPEN, _CLOSE = "([{", ")]}"


class Fields(NamedTuple):
    """The fields of a text in their order, and whether the text was complete."""

    values: dict[str, Any]
    complete: bool


def read_fields(text: str, position: int, name: re.Pattern[str], closing: str) -> Fields:
    """Read fields from a position up to the closing bracket; what a cut-off text has before the cut.

    ``name`` is :data:`NAME` or :data:`KEY`.
    """
    values: dict[str, Any] = {}
    while len(values) < FIELDS_KEPT:
        match = name.match(text, position)
        if match is None:
            return Fields(values, text[position : position + 1] == closing)
        end = _value_end(text, match.end())
        if end is None:
            return Fields(values, complete=False)
        values[match[match.lastindex or 1]] = evaluate(text[match.end() : end].strip())
        if text[end] == closing:
            return Fields(values, complete=True)
        position = end + 1
    return Fields(values, complete=False)


def _value_end(text: str, position: int) -> int | None:
    """Where a value ends: at the comma or closing bracket of its own level, ``None`` if it is cut off."""
    depth = 0
    object_depth = 1 if text.startswith("<", position) else 0
    while position < len(text):
        character = text[position]
        if character in "'\"":
            string = _STRING.match(text, position)
            if string is None:
                if object_depth:  # ``<bound method X's …>`` is no string
                    position += 1
                    continue
                return None
            position = string.end()
        elif character in _OPEN:
            depth += 1
            position += 1
        elif character in _CLOSE:
            if depth == 0:
                return position
            depth -= 1
            position += 1
        elif character == ",":
            if depth == 0 and (not object_depth or text[position - 1] == ">"):
                return position
            position += 1
        else:
            plain = _PLAIN.match(text, position)
            position = plain.end() if plain is not None else position + 1
    return None


def evaluate(text: str) -> Any:
    """A value from its repr; what is no literal stays text."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) > LONGEST_LITERAL:
        return text
    try:
        return _plain(ast.literal_eval(text))
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text


_WORDS: Final[dict[str, Any]] = {
    "None": None,
    "True": True,
    "False": False,
    "nan": math.nan,
    "inf": math.inf,
    "-inf": -math.inf,
}


def _plain(value: Any) -> Any:
    if isinstance(value, (tuple, list)):
        return [_plain(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted((_plain(item) for item in value), key=repr)
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (bytes, complex)):
        return repr(value)
    return value
