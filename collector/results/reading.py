"""Benchmark results of whichever tool wrote them."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache

from collector.domain.results import BenchmarkRow
from collector.results import tools
from collector.results.content import Content
from collector.results.table import holds_markdown, parse_markdown, parse_table, said_of_speculation
from collector.results.tools.base import Tool


@dataclass(frozen=True, slots=True)
class Results:
    """Rows of a file, the tool that wrote it ("" for a plain table), the engine it measures, columns not understood."""

    rows: tuple[BenchmarkRow, ...]
    tool: str = ""
    engine: str = ""
    unknown: tuple[str, ...] = ()
    lines: int = 0


@cache
def known_tools() -> tuple[Tool, ...]:
    """The tools of the package ``tools``; the most particular first."""
    found: list[Tool] = []
    for info in pkgutil.iter_modules(tools.__path__, f"{tools.__name__}."):
        candidate = getattr(importlib.import_module(info.name), "TOOL", None)
        if isinstance(candidate, Tool):
            found.append(candidate)
    return tuple(sorted(found, key=lambda tool: (tool.order, tool.name)))


def tool_of(text: str) -> str:
    """The name of the tool that wrote a file; "" where it is none of those known."""
    content = Content(text, "")
    return next((tool.name for tool in known_tools() if tool.rows(content)), "")


def holds_results(text: str) -> bool:
    """Whether a text is surely one of results: a tool that is known wrote it, or it has a table of them in Markdown."""
    return bool(tool_of(text)) or holds_markdown(text)


def read_results(text: str, source: str) -> Results:
    """The rows of a benchmark's result file.

    Raises:
        MalformedInput: no tool that is known wrote it, and it is no table with a known column.
    """
    content = Content(text, source)
    for tool in known_tools():
        rows = tool.rows(content)
        if rows:
            named = [replace(row, tool=tool.name) for row in rows]
            return Results(tuple(_told_apart(named, source)), tool.name, tool.engine, lines=len(content.lines))
    table = parse_markdown(text, source) or parse_table(text, source)
    return Results(tuple(_told_apart(table.rows, source)), "", "", table.unknown_columns, table.lines)


def _told_apart(rows: Sequence[BenchmarkRow], source: str) -> list[BenchmarkRow]:
    """Rows that do not say whether drafts were used: by their own name or the file's, else by the others' figures.

    Where some rows of one file report drafts, those that do not ran without any.
    """
    some = any(row.speculating for row in rows)
    told = []
    for row in rows:
        speculating = row.speculating
        if speculating is None:
            speculating = said_of_speculation(row.label)
        if speculating is None:
            speculating = said_of_speculation(source.rpartition("/")[2].partition(".")[0])
        if speculating is None and some:
            speculating = False
        told.append(replace(row, speculating=speculating))
    return told
