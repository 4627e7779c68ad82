"""``draftscope diagnose``: one-shot, without a database."""

from __future__ import annotations

import typer

from dashboard.cli.bundles import (
    Baseline,
    DraftConfig,
    Engine,
    EngineVersion,
    Launch,
    Metrics,
    MetricsBefore,
    Paths,
    Previous,
    Responses,
    TargetConfig,
    Temperature,
    Training,
    ValidationAccuracy,
    brought,
    bundle_options,
)
from dashboard.cli.console import EXIT_FAILED, errors
from dashboard.cli.reporting import FailOn, FailOnOption, FormatName, Output, console_for, exit_code, write_report
from dashboard.formats import find_format


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
    metrics: Metrics = None,
    metrics_before: MetricsBefore = None,
    responses: Responses = None,
    validation_accuracy: ValidationAccuracy = None,
    engine: Engine = None,
    engine_version: EngineVersion = None,
    temperature: Temperature = None,
    form: FormatName = "text",
    write_to: Output = None,
    fail_on: FailOnOption = FailOn.WARNING,
) -> None:
    """Judge a run from its files: is it running as asked, are drafts accepted, does it pay."""
    from collector.bundle import read_bundle

    report = find_format(form)
    options = bundle_options(
        launch=launch,
        baseline=baseline,
        previous=previous,
        draft_config=draft_config,
        target_config=target_config,
        training=training,
        metrics=metrics,
        metrics_before=metrics_before,
        responses=responses,
        validation_accuracy=validation_accuracy,
        engine=engine,
        engine_version=engine_version,
        temperature=temperature,
    )
    with brought(paths or [], options) as (here, given):
        bundle = read_bundle(here, given)
        for problem in bundle.problems:
            errors().print(f"note: {problem}", markup=False)
        from analysis import diagnose as judge  # pandas loads here, after unreadable input was told

        diagnosis = judge(bundle)
    write_report(report.diagnosis(diagnosis, console_for(write_to)), write_to)
    if not diagnosis.judged:
        raise typer.Exit(EXIT_FAILED)
    raise typer.Exit(exit_code(diagnosis.worst, fail_on))
