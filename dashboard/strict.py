"""Tables of settings into dataclasses: unknown keys and wrong types are errors, and no error shows a secret.

A secret may stand elsewhere: ``{ env = "NAME" }`` or ``{ file = "/run/secrets/name" }`` in its place.
"""

from __future__ import annotations

import dataclasses
import difflib
import math
import os
import types
import typing
from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any, Final, TypeVar

from collector.domain.errors import MalformedInput, UnknownName
from collector.domain.findings import Severity
from dashboard.masked import Secret, SecretUrl

T = TypeVar("T")

_WORDS: Final[Mapping[type, str]] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    Secret: "a text",
    SecretUrl: "an address as text",
    Severity: "info, warning or critical",
    tuple: "a list of texts",
    Mapping: "a table of texts",
}


def read_table(kind: type[T], table: Mapping[str, Any], where: str, **known: Any) -> T:
    """A dataclass from a table; its fields are the keys. ``known`` are fields that were read already.

    Raises:
        UnknownName: a key is none of them.
        MalformedInput: a value has another type, or a key without default is missing.
    """
    refuse_unknown(table, [field.name for field in dataclasses.fields(kind)], where)  # type: ignore[arg-type]
    hints = typing.get_type_hints(kind)
    values = {key: read_value(hints[key], value, key, where) for key, value in table.items()}
    for field in dataclasses.fields(kind):  # type: ignore[arg-type]
        required = field.default is dataclasses.MISSING and field.default_factory is dataclasses.MISSING
        if required and field.name not in values and field.name not in known:
            raise MalformedInput(
                f"{field.name} is missing", where=where, hint=f"add {field.name} = {_word(hints[field.name])}"
            )
    return kind(**values, **known)


def refuse_unknown(keys: Iterable[str], known: Iterable[str], where: str) -> None:
    """Every key must be a known one.

    Raises:
        UnknownName: one is not; the hint names the nearest.
    """
    known = list(known)
    for key in keys:
        if key not in known:
            raise UnknownName(f"no setting is named {key!r}", where=where, hint=nearest(key, known))


def nearest(name: str, known: Iterable[str]) -> str:
    """What may be meant by a name that does not exist."""
    known = list(known)
    near = difflib.get_close_matches(name, known, 1, 0.5)
    return f"did you mean {near[0]}?" if near else f"known here: {', '.join(known)}"


def read_value(hint: Any, value: Any, key: str, where: str) -> Any:
    """One value as the type says.

    Raises:
        MalformedInput: it is of another type.
    """
    kind = _plain_type(hint)
    if kind is Mapping and isinstance(value, dict):
        kind_of_values = typing.get_args(hint)[1]
        return {name: read_value(kind_of_values, item, f"{key}.{name}", where) for name, item in value.items()}
    if issubclass(kind, Secret) and isinstance(value, dict):
        value = _secret_from_elsewhere(value, key, where)
    converted = _convert(kind, value)
    if converted is None:
        raise MalformedInput(f"{key} is not {_word(hint)}", where=where, hint=f"for instance {key} = {_example(hint)}")
    return converted


def _secret_from_elsewhere(table: Mapping[str, Any], key: str, where: str) -> str:
    """The secret that an environment variable or the first line of a file holds."""
    places = [(name, text) for name, text in table.items() if name in ("env", "file") and isinstance(text, str)]
    if len(places) != 1 or len(table) != 1:
        hint = f'{key} = {{ env = "NAME" }} or {key} = {{ file = "/run/secrets/name" }}'
        raise MalformedInput(f"{key} names no place of a secret", where=where, hint=hint)
    (kind, place), *_ = places
    if kind == "env":
        found = os.environ.get(place, "")
        why = "" if found else f"the environment variable {place} is not set"
    else:
        try:
            found = Path(place).read_text(encoding="utf-8").strip()
            why = "" if found else f"the file {place} is empty"
        except (OSError, UnicodeDecodeError) as error:
            found, why = "", f"the file {place} cannot be read: {getattr(error, 'strerror', None) or 'it is not UTF-8'}"
    if not found:
        raise MalformedInput(f"there is no secret for {key}", why=why, where=where, hint="check the name")
    return found


def from_text(hint: Any, text: str) -> Any:
    """A value of an environment variable as a table would hold it; what is no number or switch stays text."""
    kind = _plain_type(hint)
    try:
        if kind is bool:
            return {"true": True, "false": False, "1": True, "0": False}[text.lower()]
        return kind(text) if kind in (int, float) else text
    except (KeyError, ValueError):
        return text


def _convert(kind: type, value: Any) -> Any:
    """``None`` where the value does not fit."""
    if kind in (Secret, SecretUrl):
        return kind(value) if isinstance(value, str) and value else None
    if kind is Severity:
        return next((level for level in Severity if level.word == value), None)
    if issubclass(kind, StrEnum):
        return next((choice for choice in kind if choice.value == value), None)
    if kind is tuple:
        return tuple(value) if isinstance(value, list) and all(isinstance(item, str) for item in value) else None
    if kind is Mapping:
        return None
    if kind is float:
        number = isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)
        return float(value) if number else None
    fits = isinstance(value, kind) and isinstance(value, bool) == (kind is bool)
    return value if fits else None


def _plain_type(hint: Any) -> type:
    """``X`` for ``X | None``, ``tuple`` for ``tuple[str, ...]``."""
    if isinstance(hint, types.UnionType):
        hint = next(part for part in typing.get_args(hint) if part is not type(None))
    plain: type = typing.get_origin(hint) or hint
    return plain


def _word(hint: Any) -> str:
    kind = _plain_type(hint)
    return f"one of {', '.join(kind)}" if issubclass(kind, StrEnum) else _WORDS[kind]


def _example(hint: Any) -> str:
    kind = _plain_type(hint)
    return f'"{next(iter(kind))}"' if issubclass(kind, StrEnum) else _EXAMPLES[kind]


_EXAMPLES: Final[Mapping[type, str]] = {
    str: '"text"',
    int: "8000",
    float: "0.5",
    bool: "true",
    Secret: '"text"',
    SecretUrl: '"https://host/path"',
    Severity: '"warning"',
    tuple: '["text"]',
    Mapping: '{ name = "text" }',
}
