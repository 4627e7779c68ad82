"""``draftscope runs``: the stored runs and how they were judged."""

from __future__ import annotations

import json
import sys
from contextlib import contextmanager
from dataclasses import asdict
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dashboard.cli.console import EXIT_FAILED, output
from dashboard.cli.reporting import FailOn, FailOnOption, FormatName, Output, console_for, exit_code, write_report
from dashboard.cli.serve import ConfigOption
from dashboard.formats import find_format

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dashboard.diagnoses import Diagnoses
    from dashboard.store import RunRow

RunId = Annotated[str, typer.Argument(help="Number of a stored run.", metavar="RUN")]


class Form(StrEnum):
    """Forms of the list."""

    TEXT = "text"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(no_args_is_help=True, help="Stored runs.", rich_markup_mode=None)
    group.command("list")(list_)
    group.command()(show)
    app.add_typer(group, name="runs")


def list_(
    form: Annotated[Form, typer.Option("--format", help="Form of the list.")] = Form.TEXT, config: ConfigOption = None
) -> None:
    """List stored runs, the latest first, as they were judged last."""
    from dashboard.database_store import DatabaseStore

    with _diagnoses(config) as diagnoses:
        rows = DatabaseStore(diagnoses).list_runs()
    if form is Form.JSON:
        document = {"runs": [asdict(row) for row in rows]}
        sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n")
    else:
        _print(rows)


def show(
    run: RunId,
    form: FormatName = "text",
    write_to: Output = None,
    fail_on: FailOnOption = FailOn.WARNING,
    config: ConfigOption = None,
) -> None:
    """Judge a stored run with all that is stored about it; exit codes as of diagnose."""
    from dashboard.database_store import run_number

    report = find_format(form)
    with _diagnoses(config) as diagnoses:
        diagnosis = diagnoses.of(run_number(run)).diagnosis
        write_report(report.diagnosis(diagnosis, console_for(write_to)), write_to)
    raise typer.Exit(exit_code(diagnosis.worst, fail_on) if diagnosis.judged else EXIT_FAILED)


@contextmanager
def _diagnoses(config: Path | None) -> Iterator[Diagnoses]:
    from dashboard.database import open_configured
    from dashboard.diagnoses import Diagnoses
    from dashboard.settings import load_settings

    settings = load_settings(config)
    with open_configured(settings.service.database_url) as database:
        yield Diagnoses(database, settings.thresholds)


def _print(rows: Sequence[RunRow]) -> None:
    from rich.table import Table

    from dashboard import names
    from dashboard.pages.figures import instant

    console = output()
    if not rows:
        console.print("No run is stored. draftscope ingest PATH stores the runs of logs.", markup=False)
        return
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, pad_edge=False)
    for column in ("run", "started", "engine", "target", "what was found"):
        table.add_column(column, overflow="fold", justify="right" if column == "run" else "left")
    for row in rows:
        engine = f"{names.engine(row.engine)} {row.engine_version or ''}".strip()
        table.add_row(
            row.id,
            "" if row.started_at is None else instant(row.started_at),
            engine,
            row.target,
            row.headline or "not judged yet",
        )
    console.print(table)
