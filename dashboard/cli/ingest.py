"""``draftscope ingest``: files into the database, and what is to be said about their runs."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from collector.domain.errors import InputError
from collector.sources.remote import address_of
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
from dashboard.cli.console import errors, output
from dashboard.cli.process import prepare_for_bulk
from dashboard.cli.serve import ConfigOption
from dashboard.cli.stores import ApiKey, Header, Loki, Prometheus, Select, Since, StoreOptions, Tenant, read_store

if TYPE_CHECKING:
    from collector.bundle import BundleOptions
    from collector.domain.runs import Reading
    from collector.ingest import IngestReport, Progress
    from collector.log_writer import Owner
    from dashboard.diagnoses import Diagnosed
    from dashboard.feeds.base import Source

FOLLOW_SECONDS: Final = 1.0
"""How long is waited for a followed log to grow."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(ingest)


def ingest(
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
    deployment: Annotated[str | None, typer.Option(help="Name of the deployment the runs belong to.")] = None,
    label: Annotated[
        list[str] | None, typer.Option(help="Label to put on the runs; may be repeated.", metavar="NAME=TEXT")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read and say what would be stored; store nothing.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on storing what is appended to the logs, until interrupted.")
    ] = False,
    prometheus: Prometheus = None,
    loki: Loki = None,
    select: Select = None,
    since: Since = "1h",
    tenant: Tenant = None,
    header: Header = None,
    api_key: ApiKey = None,
    config: ConfigOption = None,
) -> None:
    """Store the runs of log files, bundles and stores and judge them; safe to repeat and to interrupt."""
    prepare_for_bulk()
    labels = named_texts("--label", label or [])
    store = StoreOptions(prometheus, loki, select, since, tenant, named_texts("--header", header or []), api_key)
    source = store.source(deployment, labels)
    if source is not None:
        if paths or dry_run:
            raise InputError("a store is read by itself", hint="leave out the paths and --dry-run")
        _read_store(source, config, follow=follow)
        return
    if not (paths or responses):
        raise InputError(
            "nothing was given to read", hint="draftscope ingest PATH, for instance server.log; - is standard input"
        )
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
    if follow and any(map(address_of, paths or [])):
        raise InputError(
            "a file of another machine cannot be followed",
            hint="let the other machine send its lines (docs/sources.md), or repeat the command: it goes on where it ended",
        )
    with brought(paths or [], options) as (here, given):
        if dry_run:
            _dry_run(here, given)
        else:
            _store(here, given, config, deployment=deployment, labels=labels, follow=follow)


def _store(
    paths: list[Path],
    options: BundleOptions,
    config: Path | None,
    *,
    deployment: str | None,
    labels: dict[str, str],
    follow: bool,
) -> None:
    """Store the runs of files, and judge them."""
    from collector.ingest import ingest as ingest_files
    from collector.log_writer import Owner
    from collector.storage.windows import count_windows
    from dashboard.alerts import Alerting
    from dashboard.database import open_configured
    from dashboard.diagnoses import Diagnoses
    from dashboard.judging import MOST_JUDGED_WINDOWS, judge_runs
    from dashboard.settings import load_settings

    settings = load_settings(config)
    alerting = Alerting(settings.channels, settings.public_url)
    with open_configured(settings.service.database_url) as database:
        if follow:
            _follow(Owner(database, time.time, deployment, labels), paths, options)
            return
        with _progress() as progress:
            report = ingest_files(database, paths, options, deployment=deployment, labels=labels, progress=progress)
        with database.reading() as connection:
            windows = count_windows(connection, report.run_ids)
        judged: dict[int, Diagnosed] | None = None
        if windows <= MOST_JUDGED_WINDOWS:
            judged = judge_runs(Diagnoses(database, settings.thresholds), report.run_ids, alerting)
        _print(report, judged, settings.public_url)


def _read_store(source: Source, config: Path | None, *, follow: bool) -> None:
    from dashboard.database import open_configured
    from dashboard.settings import load_settings

    settings = load_settings(config)
    with open_configured(settings.service.database_url) as database:
        read_store(database, source, settings, follow=follow)


def _dry_run(paths: list[Path], options: BundleOptions) -> None:
    """Say what would be stored."""
    from analysis import words
    from collector.dry_run import dry_run

    with _progress() as progress:
        counted = dry_run(paths, options, progress=progress)
    for log in counted.logs:
        found = f"{words.plural(log.runs, 'run')}, {words.plural(log.windows + log.prefills, 'row')}"
        output().print(f"{_read_line(log.reading)}; {found}", markup=False)
    _print_responses(counted.responses)
    _print_problems(counted.problems)


def _follow(owner: Owner, paths: list[Path], options: BundleOptions) -> None:
    """Store what is appended to logs until the user or the system says stop."""
    from analysis import words
    from collector.following import Followed, follow

    stopped = threading.Event()
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: stopped.set())

    def tell(log: Followed) -> None:
        if log.runs:
            text = f"{log.path}: {words.plural(log.rows, 'row')}, run {log.runs[-1].id}"
            output().print(text, markup=False, soft_wrap=True)

    follow(owner, paths, options, stop=stopped.is_set, pause=lambda: stopped.wait(FOLLOW_SECONDS), news=tell)


def named_texts(option: str, texts: list[str]) -> dict[str, str]:
    """``team=search`` and the like.

    Raises:
        InputError: one has no name or no ``=``.
    """
    found = {}
    for text in texts:
        name, separator, value = text.partition("=")
        if not name.strip() or not separator:
            shown = repr(text) if option == "--label" else "a text"
            raise InputError(f"{option} {shown} is not NAME=TEXT", hint=f"for instance {option} team=search")
        found[name.strip()] = value.strip()
    return found


@contextmanager
def _progress() -> Iterator[Progress]:
    """A bar a file on standard error, where that is a terminal."""
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn, TransferSpeedColumn

    columns: tuple[Any, ...] = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        DownloadColumn(),
        TransferSpeedColumn(),
        TimeRemainingColumn(),
    )
    console = errors()
    with Progress(*columns, console=console, disable=not console.is_terminal) as bars:
        tasks: dict[str, Any] = {}

        def show(source: str, done: int, size: int | None) -> None:
            if source not in tasks:
                tasks[source] = bars.add_task(source, total=size)
            bars.update(tasks[source], completed=done, total=size)

        yield show


def _print(report: IngestReport, judged: dict[int, Diagnosed] | None, address: str) -> None:
    """What was read, then each run in a sentence, and with its verdicts those the files are about."""
    from rich.text import Text

    from analysis import words
    from dashboard.report.diagnosis import verdict_table

    console = output()
    for file in report.files:
        rows = words.plural(file.windows + file.prefills, "new row")
        news = "known already, nothing new" if file.unchanged else f"{rows}, {words.plural(len(file.run_ids), 'run')}"
        console.print(f"{_read_line(file.reading)}; {news}", markup=False)
    _print_responses(report.responses)
    _print_problems(report.problems)
    if judged is None:
        runs = ", ".join(map(str, report.run_ids))
        advice = "the service judges them, or draftscope runs show RUN one of them"
        console.print(f"\nruns {runs} are stored; so many windows are not judged here: {advice}", markup=False)
        return
    for run_id in report.run_ids:
        console.print()
        found = judged.get(run_id)
        if found is None:
            console.print(f"run {run_id} is still being written; the service will judge it", markup=False)
            continue
        console.print(Text.assemble((f"run {run_id}  ", "bold"), found.diagnosis.headline))
        if run_id in report.subjects:
            console.print(verdict_table(found.diagnosis))
        if address:
            console.print(f"{address}/runs/{run_id}", markup=False, style="dim", soft_wrap=True)


def _read_line(reading: Reading) -> str:
    from analysis import words

    return f"{reading.source}: {words.lines_read(reading)}"


def _print_responses(readings: list[Reading]) -> None:
    for reading in readings:
        output().print(f"{_read_line(reading)}; {'; '.join(reading.notes)}", markup=False)


def _print_problems(problems: list[str]) -> None:
    for problem in problems:
        errors().print("[bold]note:[/bold] ", end="")
        errors().print(problem, markup=False)
