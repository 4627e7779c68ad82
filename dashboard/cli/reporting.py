"""What the commands that print a report share: its form, where it goes, and the exit code."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from collector.domain.errors import InputError
from dashboard.cli.console import EXIT_FINDINGS, EXIT_FINE, output
from dashboard.formats import formats

if TYPE_CHECKING:
    from rich.console import Console

    from collector.domain.findings import Severity

WIDTH_OF_FILES = 100
"""Columns of a text report that is written to a file."""


class FailOn(StrEnum):
    """Severities that make the exit code 1."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


FormatName: TypeAlias = Annotated[
    str, typer.Option("--format", help=f"Form of the report: {', '.join(formats())}.", metavar="FORM")
]
Output: TypeAlias = Annotated[
    Path | None, typer.Option("--output", help="File to write instead of standard output.", metavar="FILE")
]
FailOnOption: TypeAlias = Annotated[FailOn, typer.Option("--fail-on", help="Severity from which the exit code is 1.")]


def console_for(write_to: Path | None) -> Console:
    """The console whose width and colours the report has."""
    if write_to is None:
        return output()
    from io import StringIO

    from rich.console import Console

    return Console(file=StringIO(), width=WIDTH_OF_FILES, highlight=False)


def write_report(text: str, write_to: Path | None) -> None:
    """Print the report, or write it to its file.

    Raises:
        InputError: the file cannot be written.
    """
    if write_to is None:
        sys.stdout.write(text)
        return
    try:
        write_to.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot write {write_to}", why=error.strerror or str(error), hint="choose another --output"
        ) from None


def exit_code(worst: Severity | None, fail_on: FailOn) -> int:
    """1 if the worst finding reaches the severity that was chosen, else 0."""
    from collector.domain.findings import Severity

    return EXIT_FINDINGS if worst is not None and worst >= Severity.parse(fail_on.value) else EXIT_FINE
