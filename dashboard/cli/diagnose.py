"""``draftscope diagnose``: one-shot, without a database."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from collector.domain.errors import InputError
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


def accuracies(text: str | None) -> tuple[float, ...]:
    """``0.747`` or ``0.8,0.7,0.6``.

    Raises:
        InputError: a part is no number between 0 and 1.
    """
    figures = []
    for part in (text or "").replace(";", ",").split(","):
        if not part.strip():
            continue
        try:
            figure = float(part)
        except ValueError:
            raise InputError(
                f"--validation-accuracy {text!r} is not a number", hint="for instance 0.747 or 0.80,0.71,0.66"
            ) from None
        if not 0 <= figure <= 1:
            raise InputError(
                f"--validation-accuracy {part.strip()} lies outside 0 to 1",
                hint=f"write percent as a share: {figure / 100:g}" if 1 < figure <= 100 else "an accuracy is a share",
            )
        figures.append(figure)
    return tuple(figures)


def diagnose(
    paths: Annotated[
        list[Path] | None,
        typer.Argument(help="Log files, or a folder with logs and configs (a bundle); - is standard input."),
    ] = None,
    launch: Annotated[Path | None, typer.Option(help="How the server was started.")] = None,
    baseline: Annotated[Path | None, typer.Option(help="Log of a run without speculation.")] = None,
    previous: Annotated[Path | None, typer.Option(help="Log of an earlier run.")] = None,
    draft_config: Annotated[Path | None, typer.Option(help="The draft's config.json.")] = None,
    target_config: Annotated[Path | None, typer.Option(help="The target's config.json.")] = None,
    training: Annotated[Path | None, typer.Option(help="What the draft's validation printed.")] = None,
    validation_accuracy: Annotated[
        str | None, typer.Option(help="Validation accuracy, or one a position: 0.747 or 0.80,0.71.", metavar="X[,X...]")
    ] = None,
    engine: Annotated[str | None, typer.Option(help="Engine, where the content does not tell.")] = None,
    engine_version: Annotated[str | None, typer.Option(help="Release of the engine, for instance 0.5.10.")] = None,
    temperature: Annotated[float | None, typer.Option(help="Sampling temperature of the traffic.", min=0.0)] = None,
    form: Annotated[Format, typer.Option("--format", help="Form of the report.")] = Format.TEXT,
    write_to: Annotated[Path | None, typer.Option("--output", help="File to write instead of standard output.")] = None,
    fail_on: Annotated[FailOn, typer.Option(help="Severity from which the exit code is 1.")] = FailOn.WARNING,
) -> None:
    """Judge a run from its files: is it running as asked, are drafts accepted, does it pay."""
    from analysis.runner import diagnose as judge
    from collector.bundle import BundleOptions, read_bundle
    from collector.domain.findings import Severity
    from collector.domain.versions import Release

    try:
        version = Release.parse(engine_version) if engine_version else None
    except ValueError:
        raise InputError(
            f"--engine-version {engine_version!r} is not a release", hint="for instance 0.5.10 or 0.5.3.post2"
        ) from None
    options = BundleOptions(
        launch=launch,
        baseline=baseline,
        previous=previous,
        draft_config=draft_config,
        target_config=target_config,
        training=training,
        validation_accuracy=accuracies(validation_accuracy),
        engine=engine,
        engine_version=version,
        temperature=temperature,
    )
    bundle = read_bundle(paths or [], options)
    for problem in bundle.problems:
        errors().print(f"[bold]note:[/bold] {problem}")
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
