"""Named figures in what a training tool wrote: JSON, Python dictionaries, ``key=value`` pairs, tables, event files."""

from __future__ import annotations

import ast
import csv
import io
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

LONGEST_LINE: Final = 65_536
"""Characters of a line in which figures are looked for."""
MOST_FIGURES: Final = 4_096
"""Figures that one place may hold."""
_INTERESTING: Final = re.compile(r"acc|top1|_len|eal\b|_ar\b|accept", re.IGNORECASE)
_DICTIONARY: Final = re.compile(r"\{['\"].*\}")
_PAIR: Final = re.compile(
    r"(?P<key>[A-Za-z][\w/.-]*)=(?P<value>-?\d+(?:\.\d+)?(?:e[-+]?\d+)?)(?=[,\s]|$)", re.IGNORECASE
)
_STEP_COLUMN: Final = frozenset({"step", "_step", "global_step", "train/global_step", "epoch", "_runtime"})
_BOUND_COLUMN: Final = re.compile(r"__(?:MIN|MAX)$")


@dataclass(frozen=True, slots=True)
class Scalars:
    """Figures that were written together; ``line`` counts from 1 and is 0 where the source has no lines."""

    line: int
    values: Mapping[str, float]
    text: str = field(default="", compare=False)

    def numbered(self, name: str, first: int = 0) -> list[float]:
        """The figures ``name`` with 0, 1, 2, … in place of ``{}``, up to the first that is missing."""
        found: list[float] = []
        while (key := name.format(first + len(found))) in self.values:
            found.append(self.values[key])
        return found


@dataclass(frozen=True)
class Output:
    """What a tool wrote: its lines, and the figures in them."""

    lines: Sequence[str]
    extra: tuple[Scalars, ...] = ()

    @cached_property
    def rows(self) -> tuple[Scalars, ...]:
        """Places with named figures, in the order they were written."""
        return self.extra or tuple(_rows(self.lines))

    def last(self, *keys: str) -> Scalars | None:
        """The last place that has all of these figures."""
        return next((row for row in reversed(self.rows) if all(key in row.values for key in keys)), None)


def _rows(lines: Sequence[str]) -> Iterator[Scalars]:
    whole = _document(lines)
    if whole is not None:
        yield from whole
        return
    table = list(_table(lines))
    if table:
        yield from table
        return
    for number, line in enumerate(lines, 1):
        if not _INTERESTING.search(line[:LONGEST_LINE]):
            continue
        values = _of_line(line[:LONGEST_LINE])
        if values:
            yield Scalars(number, values, line)


def _of_line(line: str) -> dict[str, float]:
    stripped = line.strip()
    if stripped.startswith("{") and stripped.endswith("}"):
        try:
            return flat(json.loads(stripped))
        except (ValueError, RecursionError):
            pass  # a Python dictionary, perhaps
    match = _DICTIONARY.search(stripped)
    if match is not None:
        try:
            return flat(ast.literal_eval(match[0]))
        except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
            return {}
    pairs = {found["key"]: float(found["value"]) for found in _PAIR.finditer(stripped)}
    return pairs if len(pairs) > 1 else {}


def flat(document: Any, prefix: str = "", levels: int = 6) -> dict[str, float]:
    """The numbers of a nested document under keys joined by ``/``; of lists, ``key/0``, ``key/1`` and so on."""
    found: dict[str, float] = {}
    items: Any = ()
    if isinstance(document, Mapping):
        items = document.items()
    elif isinstance(document, (list, tuple)):
        items = enumerate(document)
    for key, value in items:
        name = f"{prefix}{key}"
        if isinstance(value, bool) or len(found) >= MOST_FIGURES:
            continue
        if isinstance(value, (int, float)):
            figure = _finite(value)
            if figure is not None:
                found[name] = figure
        elif levels > 1:
            found |= flat(value, f"{name}/", levels - 1)
    return found


def _finite(value: float) -> float | None:
    try:
        figure = float(value)
    except OverflowError:
        return None
    return figure if math.isfinite(figure) else None


def _document(lines: Sequence[str]) -> list[Scalars] | None:
    """One JSON document over all lines: a file of figures, or a trainer's state with its history."""
    first = next((line.lstrip() for line in lines if line.strip()), "")
    if not first.startswith(("{", "[")):
        return None
    try:
        document = json.loads("\n".join(lines))
    except (ValueError, RecursionError):
        return None
    history = document.get("log_history") if isinstance(document, dict) else document
    if isinstance(history, list) and any(isinstance(entry, dict) for entry in history):
        return [row for entry in history if (row := _row(lines, flat(entry))).values]
    return [_row(lines, flat(document))]


def _row(lines: Sequence[str], values: dict[str, float]) -> Scalars:
    """Figures with the line on which the first of interest stands."""
    for key in values:
        if _INTERESTING.search(key):
            mark = f'"{key.split("/")[0] if "/" in key and not key.startswith(("eval/", "train/", "val/")) else key}"'
            for number, line in enumerate(lines, 1):
                if mark in line:
                    return Scalars(number, values, line.strip())
    return Scalars(1 if lines else 0, values, lines[0].strip() if lines else "")


def _table(lines: Sequence[str]) -> Iterator[Scalars]:
    """A table with a step in one column and figures in others, as tracking services export a run's history."""
    header = next(csv.reader([lines[0]]), []) if lines and "," in lines[0] else []
    names = [name.rpartition(" - ")[2].strip() for name in header]
    if not names or not any(name.lower() in _STEP_COLUMN for name in names):
        return
    try:
        for number, cells in enumerate(csv.reader(io.StringIO("\n".join(lines[1:]))), 2):
            values: dict[str, float] = {}
            for name, cell in zip(names, cells, strict=False):
                if not _BOUND_COLUMN.search(name) and (figure := _number(cell)) is not None:
                    values[name] = figure
            if values:
                yield Scalars(number, values, ",".join(cells))
    except csv.Error:
        return


def _number(cell: str) -> float | None:
    try:
        return _finite(float(cell))
    except ValueError:
        return None
