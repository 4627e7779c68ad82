"""``draftscope formats``: which logs are read, by engine and release."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from collector.domain.versions import ReleaseRange
from dashboard.cli.bundles import release_of
from dashboard.cli.console import errors, output

if TYPE_CHECKING:
    from collector.domain.versions import Release
    from collector.formats.base import LogFormat


class Form(StrEnum):
    """Forms of the list."""

    TEXT = "text"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(formats)


def formats(
    engine: Annotated[str | None, typer.Argument(help="Engine whose lines are listed, for instance sglang.")] = None,
    release: Annotated[str | None, typer.Argument(help="Only what this release prints, for instance 0.5.9.")] = None,
    form: Annotated[Form, typer.Option("--format", help="Form of the list.")] = Form.TEXT,
) -> None:
    """List which logs are understood: engines, releases and kinds of lines, wrappings, compression."""
    from collector.formats import format_of
    from collector.formats import formats as all_formats
    from dashboard.understood import range_in_words

    version = release_of(release, "RELEASE")
    chosen = all_formats() if engine is None else (format_of(engine),)
    for log_format in chosen:
        if version is not None and version not in ReleaseRange.parse(log_format.versions):
            read = range_in_words(log_format.versions)
            errors().print(f"note: {log_format.title} {version} lies outside the releases read, {read}", markup=False)
    if form is Form.JSON:
        import json

        from dashboard.understood import document

        sys.stdout.write(json.dumps(document(chosen, version), indent=2, ensure_ascii=False) + "\n")
    elif engine is None:
        _print_engines(chosen)
    else:
        _print_lines(chosen[0], version)


def _print_engines(chosen: Sequence[LogFormat]) -> None:
    from rich.table import Table

    from collector.formats.wrappers import wrappers
    from collector.sources.file import PACKED_SUFFIXES
    from dashboard.understood import range_in_words

    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, pad_edge=False)
    for column in ("engine", "log of", "releases read in full"):
        table.add_column(column)
    table.add_column("kinds of lines", justify="right")
    for log_format in chosen:
        releases = range_in_words(log_format.versions)
        table.add_row(log_format.engine, log_format.title, releases, str(len(log_format.lines)))
    console = output()
    console.print(table)
    console.print("\nWrapped, in any order and depth, by", style="bold")
    for wrapper in wrappers():
        console.print(f"  {wrapper.title}", markup=False)
    console.print("\nCompressed", style="bold")
    console.print(f"  {' '.join(PACKED_SUFFIXES)}, told by content", markup=False)
    console.print("\nThe lines of one engine: draftscope formats ENGINE [RELEASE]", style="dim")


def _print_lines(log_format: LogFormat, release: Release | None) -> None:
    """A paragraph a line: wide tables wrap badly on a terminal."""
    from rich.table import Column, Table
    from rich.text import Text

    from dashboard.understood import kinds_of, range_in_words

    console = output()
    found = kinds_of(log_format, release)
    which = f"release {release}" if release is not None else f"releases {range_in_words(log_format.versions)}"
    console.print(f"{log_format.title}, {which}: {len(found)} kinds of lines", style="bold")
    for kind in found:
        console.print(Text.assemble((f"\n{kind.name}", "bold"), (f"  {kind.releases}", "dim")))
        facts = Table.grid(Column(style="dim"), Column(overflow="fold"), padding=(0, 1))
        for label, text in (
            ("begins", kind.begins),
            ("kept as", kind.kept_as),
            ("values", ", ".join(kind.values)),
        ):
            if text:
                facts.add_row(f"  {label}", Text(text))
        console.print(facts)
