"""``draftscope diagnose``: one-shot, without a database."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from collector.domain.errors import InputError
from dashboard.cli.bundles import (
    Baseline,
    DraftConfig,
    Engine,
    EngineVersion,
    Launch,
    Paths,
    Previous,
    TargetConfig,
    Temperature,
    Training,
    ValidationAccuracy,
    bundle_options,
)
from dashboard.cli.console import EXIT_FAILED, EXIT_FINDINGS, EXIT_FINE, errors, output


class Format(StrEnum):
    """Forms of the report."""

    TEXT = "text"
    JSON = "json"


class FailOn(StrEnum):
    """Severities that make the exit code 1."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(diagnose)


def diagnose(
    paths: Paths = None,
    launch: Launch = None,
    baseline: Baseline = None,
    previous: Previous = None,
    draft_config: DraftConfig = None,
    target_config: TargetConfig = None,
    training: Training = None,
    validation_accuracy: ValidationAccuracy = None,
    engine: Engine = None,
    engine_version: EngineVersion = None,
    temperature: Temperature = None,
    form: Annotated[Format, typer.Option("--format", help="Form of the report.")] = Format.TEXT,
    write_to: Annotated[Path | None, typer.Option("--output", help="File to write instead of standard output.")] = None,
    fail_on: Annotated[FailOn, typer.Option(help="Severity from which the exit code is 1.")] = FailOn.WARNING,
) -> None:
    """Judge a run from its files: is it running as asked, are drafts accepted, does it pay."""
    from collector.bundle import read_bundle
    from collector.domain.findings import Severity

    options = bundle_options(
        launch=launch,
        baseline=baseline,
        previous=previous,
        draft_config=draft_config,
        target_config=target_config,
        training=training,
        validation_accuracy=validation_accuracy,
        engine=engine,
        engine_version=engine_version,
        temperature=temperature,
    )
    bundle = read_bundle(paths or [], options)
    for problem in bundle.problems:
        errors().print(f"note: {problem}", markup=False)
    from analysis import diagnose as judge  # pandas loads here, after unreadable input was told

    diagnosis = judge(bundle)
    text = _rendered(diagnosis, form, write_to)
    if text is not None:
        _write(text, write_to)
    if not diagnosis.judged:
        raise typer.Exit(EXIT_FAILED)
    worst = diagnosis.worst
    failing = worst is not None and worst >= Severity.parse(fail_on.value)
    raise typer.Exit(EXIT_FINDINGS if failing else EXIT_FINE)


def _rendered(diagnosis: Any, form: Format, write_to: Path | None) -> str | None:
    if form is Format.JSON:
        import json

        return json.dumps(diagnosis.document(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
    from dashboard.cli.report import print_report

    if write_to is None:
        print_report(output(), diagnosis)
        return None
    from rich.console import Console

    console = Console(record=True, file=sys.stderr, quiet=True, width=100, highlight=False)
    with console.capture() as captured:
        console.quiet = False
        print_report(console, diagnosis)
    return captured.get()


def _write(text: str, write_to: Path | None) -> None:
    if write_to is None:
        sys.stdout.write(text)
        return
    try:
        write_to.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(
            f"cannot write {write_to}", why=error.strerror or str(error), hint="choose another --output"
        ) from None
