"""A result file as its tools look at it: JSON documents with their lines, or a table, or printed text."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from collector.domain.evidence import Evidence
from collector.domain.redaction import redact_text
from collector.domain.results import Latency

LARGEST: Final = 1e15
"""No figure of a benchmark is larger."""
SHOWN: Final = 300
"""Characters of a document that evidence shows where it is one line."""


@dataclass(frozen=True, slots=True)
class Record:
    """One JSON object of a file, or one row of its table, and the line it begins on."""

    line: int
    values: Mapping[str, Any]
    text: str


@dataclass(frozen=True)
class Content:
    """A file's text in the forms that results are written in."""

    text: str
    source: str

    @cached_property
    def lines(self) -> Sequence[str]:
        """Its lines."""
        return self.text.splitlines()

    @cached_property
    def records(self) -> tuple[Record, ...]:
        """The objects of one JSON document (or of its top list), else of JSON lines, else the rows of a table."""
        stripped = self.text.lstrip("\ufeff \t\r\n")
        if stripped.startswith(("{", "[")):
            return tuple(self._of_json())
        return tuple(self._of_table())

    def _of_json(self) -> Iterator[Record]:
        try:
            document = json.loads(self.text.lstrip("\ufeff"))
        except RecursionError:
            return
        except ValueError:
            yield from self._of_json_lines()
            return
        for entry in document if isinstance(document, list) else [document]:
            if isinstance(entry, dict):
                yield Record(1, entry, self.text[:SHOWN])

    def _of_json_lines(self) -> Iterator[Record]:
        for number, line in enumerate(self.lines, 1):
            try:
                document = json.loads(line) if line.lstrip().startswith("{") else None
            except (ValueError, RecursionError):
                continue
            if isinstance(document, dict):
                yield Record(number, document, line[:SHOWN])

    def _of_table(self) -> Iterator[Record]:
        reader = csv.reader(io.StringIO(self.text.lstrip("\ufeff")))
        try:
            header = [cell.strip() for cell in next(reader, [])]
            if len(header) < 2:
                return
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    values = {name: cell.strip() for name, cell in zip(header, cells, strict=False) if cell.strip()}
                    yield Record(reader.line_num, values, ",".join(cells)[:SHOWN])
        except csv.Error:
            return

    def line_of(self, key: str, after: int = 0) -> int | None:
        """The first line behind ``after`` on which a key stands, counted from 1."""
        mark = f'"{key}"'
        return next((n for n, line in enumerate(self.lines, 1) if n > after and mark in line), None)

    def evidence(self, record: Record, *keys: str) -> Evidence:
        """Where the first of these keys stands that the record has; its own line where it has no line of its own."""
        for key in keys:
            if key in record.values:
                line = self.line_of(key) if len(self.lines) > len(self.records) else None
                return Evidence(self.source, line or record.line, redact_text(f"{key}: {record.values[key]}"[:SHOWN]))
        return Evidence(self.source, record.line, redact_text(record.text))


def number(value: Any) -> float | None:
    """A finite figure of a plausible size, from a number or its text; ``None`` for anything else."""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        return None
    try:
        figure = float(value)
    except (ValueError, OverflowError):
        return None
    return figure if math.isfinite(figure) and abs(figure) <= LARGEST else None


def positive(value: Any) -> float | None:
    """The same, ``None`` where it is not above 0."""
    figure = number(value)
    return figure if figure is not None and figure > 0 else None


def whole(value: Any) -> int | None:
    """A whole number, ``None`` for anything else."""
    figure = number(value)
    return int(figure) if figure is not None and figure == int(figure) else None


def shares(value: Any) -> tuple[float, ...]:
    """A list of shares, empty where one of them is none."""
    if isinstance(value, str):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return ()
    found = [number(item) for item in value] if isinstance(value, list) else []
    known = [item for item in found if item is not None and 0 <= item <= 1]
    return tuple(known) if len(known) == len(found) else ()


def at(values: Mapping[str, Any], *path: str) -> Any:
    """A value some levels down, ``None`` where a level is missing."""
    found: Any = values
    for key in path:
        found = found.get(key) if isinstance(found, Mapping) else None
    return found


def latency(values: Mapping[str, Any], names: Sequence[str], unit: float) -> Latency | None:
    """A latency from the keys of its mean and its 50th, 90th and 99th percentile; ``unit`` is one of it in seconds."""
    figures = [None if (figure := number(values.get(name))) is None else figure * unit for name in names]
    return Latency(*figures) if any(figure is not None for figure in figures) else None
