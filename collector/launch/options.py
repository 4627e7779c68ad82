"""Reads options as argparse does: both spellings of values, lists, switches, abbreviations."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from importlib.resources import files
from typing import Any, Final, NamedTuple

from collector.domain.errors import MalformedInput
from collector.launch.shell import Word

_NEGATIVE_NUMBER: Final = re.compile(r"-\d+$|-\d*\.\d+$")
_NUMBER: Final = re.compile(r"[+-]?\d+$|[+-]?(?:\d+\.\d*|\.\d+|\d+(?=[eE]))(?:[eE][+-]?\d+)?$")


class Kind(StrEnum):
    """What an option's value is."""

    TEXT = "s"
    WHOLE = "i"
    NUMBER = "f"
    JSON = "j"
    SWITCH = "b"
    SWITCH_WITH_NEGATION = "B"


class Option(NamedTuple):
    """One option: the engine's field it sets, the kind of its value, and how many it takes.

    ``arity`` is ``""``, ``+``, ``*`` or ``?`` as argparse has them, or ``a``: the values of a repeated option add up.
    """

    field: str
    kind: Kind
    arity: str = ""

    @property
    def is_switch(self) -> bool:
        """Whether it takes no value."""
        return self.kind in (Kind.SWITCH, Kind.SWITCH_WITH_NEGATION)


@dataclass(frozen=True, slots=True)
class Read:
    """What a command asks for: values by field, options that are not known, words that belong to none.

    ``lines`` has the line at which each field was given.
    """

    values: dict[str, Any]
    unknown: tuple[str, ...]
    positional: tuple[str, ...]
    lines: dict[str, int]


def read_options(words: list[Word], table: Mapping[str, Option], source: str) -> Read:
    """Read a command's options; the last of a repeated one wins.

    Raises:
        MalformedInput: an option that needs a value has none, or one in JSON that is broken.
    """
    values: dict[str, Any] = {}
    lines: dict[str, int] = {}
    unknown: list[str] = []
    positional: list[str] = []
    index = 0
    while index < len(words):
        word = words[index]
        index += 1
        name, has_value, inline = word.text.partition("=")
        short = word.text.startswith("-") and name.partition(".")[0] in table
        if not (word.text.startswith("--") or short) or word.text == "--":
            positional.append(word.text)
            continue
        following = _values_after(words, index)
        inside = _setting_inside(name, table)
        if inside is not None:
            text = inline if has_value else following[0].text if following else "true"
            index += 0 if has_value else len(following[:1])
            values[inside] = _json_or_text(text)
            lines[inside] = word.line
            continue
        found = _find(name, table)
        if found is None:
            unknown.append(name)
            taken = following[:1] if not has_value else []
            index += len(taken)
            values[field_of(name)] = guessed(inline) if has_value else guessed(taken[0].text) if taken else True
            lines[field_of(name)] = word.line
            continue
        option, on = found
        lines[option.field] = word.line
        if option.is_switch:
            values[option.field] = guessed(inline) if has_value else on
            continue
        texts = [inline] if has_value else [item.text for item in _counted(option, following)]
        index += 0 if has_value else len(texts)
        if not texts:
            if option.arity not in ("*", "?"):
                raise MalformedInput(
                    f"{name} has no value",
                    why="the command ends or the next option begins where its value should stand",
                    where=f"{source}:{word.line}",
                    hint=f"give a value after {name}",
                )
            values[option.field] = [] if option.arity == "*" else True
            continue
        _check_json(name, option.kind, texts, f"{source}:{word.line}")
        converted = [_converted(option.kind, text) for text in texts]
        if option.arity == "a" and option.field in values:
            values[option.field] = f"{values[option.field]},{converted[0]}"
            continue
        values[option.field] = converted if option.arity in ("+", "*") else converted[0]
    return Read(values, tuple(unknown), tuple(positional), lines)


def load_options(file: str) -> dict[str, Option]:
    """The options listed in a file of this package: spelling, kind and arity, and the field where it has another name."""
    table: dict[str, Option] = {}
    for line in files(__package__).joinpath(file).read_text("utf-8").splitlines():
        if not line.startswith("#"):
            spelling, kind, *renamed = line.split("\t")
            table[spelling] = Option(renamed[0] if renamed else field_of(spelling), Kind(kind[0]), kind[1:])
    return table


def field_of(name: str) -> str:
    """An option's name as a field: ``--top-k`` is ``top_k``."""
    return name.lstrip("-").replace("-", "_")


def guessed(text: str) -> Any:
    """The value of an option whose kind is not known: a number where it looks like one."""
    if text.lower() in ("true", "false"):
        return text.lower() == "true"
    if _NUMBER.match(text):
        return int(text) if re.fullmatch(r"[+-]?\d+", text) else float(text)
    return text


def _find(name: str, table: Mapping[str, Option]) -> tuple[Option, bool] | None:
    """An option by its name, its negation, another spelling with underscores, or an unambiguous abbreviation."""
    dashed = "--" + name[2:].replace("_", "-")
    for candidate in (name, dashed):
        if candidate in table:
            return table[candidate], True
    positive = table.get("--" + dashed[5:]) if dashed.startswith("--no-") else None
    if positive is not None and positive.is_switch:
        return positive, False
    if len(name) < 3:
        return None
    longer = {option for spelling, option in table.items() if spelling.startswith(dashed)}
    fields = {option.field for option in longer}
    return (next(iter(longer)), True) if len(fields) == 1 else None


def _setting_inside(name: str, table: Mapping[str, Option]) -> str | None:
    """The field of one setting inside an option's JSON: ``--speculative-config.method``."""
    base, dot, path = name.partition(".")
    found = _find(base, table) if dot else None
    return None if found is None or found[0].kind is not Kind.JSON else f"{found[0].field}.{path.replace('-', '_')}"


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return guessed(text)


def _values_after(words: list[Word], index: int) -> list[Word]:
    found: list[Word] = []
    for word in words[index:]:
        if (
            word.text.startswith("-")
            and len(word.text) > 1
            and not _NEGATIVE_NUMBER.match(word.text)
            and " " not in word.text
        ):
            break
        found.append(word)
    return found


def _counted(option: Option, following: list[Word]) -> list[Word]:
    return following if option.arity in ("+", "*") else following[:1]


def _check_json(name: str, kind: Kind, texts: list[str], where: str) -> None:
    for text in texts:
        if kind is Kind.JSON and text.lstrip().startswith(("{", "[")) and "$" not in text:
            try:
                json.loads(text)
            except ValueError as error:
                raise MalformedInput(
                    f"the value of {name} is no valid JSON",
                    why=str(error),
                    where=where,
                    hint=f"it reads {text if len(text) <= 80 else text[:77] + '...'}; quote it as one word",
                ) from None


def _converted(kind: Kind, text: str) -> Any:
    """A value of the kind its option takes; what does not convert (``$TP``) stays as it was written."""
    try:
        if kind is Kind.WHOLE:
            return int(text)
        if kind is Kind.NUMBER:
            return float(text)
        if kind is Kind.JSON:
            return json.loads(text)
    except (ValueError, RecursionError):
        return text
    return text
