"""What is read of logs: engines, releases and kinds of lines, wrappings and compression, as the format modules state it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from collector.domain.versions import Release, ReleaseRange
from collector.formats import formats
from collector.formats.base import Line, LogFormat
from collector.formats.wrappers import wrappers
from collector.sources.file import PACKED_SUFFIXES

SCHEMA: Final = "draftscope.formats/1"
ALL_RELEASES: Final = "all"
INTRODUCTION: Final = """\
# Logs that are read

What `draftscope formats` lists. Engine and release are told by the content; lines of further releases are read where they
look alike. Every kind of line has a sample in its module, which a test reads. New fields of lines of the form `key: value, …`
do no harm; lines that are not understood are counted and listed by shape. A line longer than 4 MiB is dropped and counted."""


class Kind(NamedTuple):
    """One kind of line: its name, the releases that print it, how it begins, what it is kept as, and the values read from it."""

    name: str
    releases: str
    begins: str
    kept_as: str
    values: tuple[str, ...]


def kinds_of(log_format: LogFormat, release: Release | None = None) -> list[Kind]:
    """The kinds of lines of an engine's log in the order of its module, or those that one release prints."""
    return [
        Kind(
            line.name, _releases(line.versions), line.starts.decode("utf-8", "replace").strip(), _kept(line), line.names
        )
        for line in log_format.lines
        if release is None or release in ReleaseRange.parse(line.versions)
    ]


def document(chosen: Iterable[LogFormat], release: Release | None = None) -> dict[str, Any]:
    """All of it as plain values."""
    return {
        "schema": SCHEMA,
        "release": None if release is None else str(release),
        "engines": [
            {
                "engine": log_format.engine,
                "title": log_format.title,
                "releases": log_format.versions,
                "lines": [kind._asdict() for kind in kinds_of(log_format, release)],
            }
            for log_format in chosen
        ],
        "wrappings": [{"name": wrapper.name, "title": wrapper.title} for wrapper in wrappers()],
        "compression": list(PACKED_SUFFIXES),
    }


def range_in_words(versions: str) -> str:
    """``0.5.0-0.32.0`` as people write it."""
    return " to ".join(versions.split("-"))


def page() -> str:
    """The page of the documentation."""
    lines = [*INTRODUCTION.split("\n"), ""]
    for log_format in formats():
        lines += [f"## {log_format.title}", "", f"Read in full: {range_in_words(log_format.versions)}.", ""]
        lines += ["| line | releases | begins with | kept as | values |", "| --- | --- | --- | --- | --- |"]
        lines += [
            f"| {kind.name} | {kind.releases} | {_code(kind.begins)} | {kind.kept_as} | {', '.join(kind.values)} |"
            for kind in kinds_of(log_format)
        ]
        lines.append("")
    lines += ["## Around the lines", "", "Peeled off in any order and depth, told by the content:", ""]
    lines += [f"- {wrapper.title}" for wrapper in wrappers()]
    lines += [
        "",
        "Also terminal colours, carriage returns of progress bars, NUL bytes, a byte order mark, and bytes that are no UTF-8.",
        "",
        f"Compressed files are told by their content: {', '.join(PACKED_SUFFIXES)}.",
    ]
    return "\n".join(lines) + "\n"


def _releases(versions: str) -> str:
    first, dash, last = versions.partition("-")
    if versions == "*":
        return ALL_RELEASES
    if not dash or first == last:
        return first
    return f"{first} to {last}" if first and last else f"up to {last}" if last else f"since {first}"


def _kept(line: Line) -> str:
    if line.kind:
        return line.kind
    return "figures" if line.names else "understood, not kept"


def _code(text: str) -> str:
    """Text as code in a table."""
    return f"`{text.replace('|', chr(92) + '|').replace('`', chr(39))}`" if text else "-"
