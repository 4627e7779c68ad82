"""``draftscope db``: care of the database."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from collector.domain.errors import InputError, StorageError
from dashboard.cli.console import EXIT_FINDINGS, errors, output
from dashboard.cli.serve import ConfigOption

if TYPE_CHECKING:
    from collector.storage.engine import Database
    from dashboard.settings import Settings


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(no_args_is_help=True, help="Care of the database.", rich_markup_mode=None)
    group.command()(upgrade)
    group.command()(current)
    group.command()(prune)
    group.command()(export)
    group.command(name="import")(import_)
    group.command()(check)
    app.add_typer(group, name="db")


def upgrade(config: ConfigOption = None) -> None:
    """Bring the database to the schema of this release; safe to repeat."""
    from collector.storage.schema import head
    from dashboard.database import open_configured
    from dashboard.settings import load_settings

    with open_configured(load_settings(config).service.database_url, migrate=True) as database:
        output().print(f"{database.name} has schema {head()}", markup=False, soft_wrap=True)


def current(config: ConfigOption = None) -> None:
    """Show the database and the release of its schema; it is not changed."""
    from collector.storage.engine import stored_schema
    from collector.storage.schema import head
    from dashboard.database import address_of_database
    from dashboard.settings import load_settings

    name, found = stored_schema(address_of_database(load_settings(config).service.database_url))
    state = "newest" if found == head() else f"this release needs {head()}: draftscope db upgrade"
    output().print(f"{name} has {f'schema {found}' if found else 'no schema'} ({state})", markup=False, soft_wrap=True)


def prune(
    config: ConfigOption = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Say what would be deleted, and delete nothing.")] = False,
    logs_before: Annotated[
        str,
        typer.Option(
            "--logs-before",
            metavar="AGE",
            help="Also add up the windows of logs whose run ended so long ago (90d) by minute and by hour.",
        ),
    ] = "",
) -> None:
    """Delete samples that are older than [retention] says; watched engines keep their roll-ups."""
    from collector.storage.retention import due_cuts, let_go, prune_logs
    from collector.storage.retention import logs_before as logs_that_ended
    from dashboard.settings import load_settings

    settings = load_settings(config)
    now = time.time()
    ended = _before(logs_before, now) if logs_before else None
    with _existing(settings) as database:
        runs: list[tuple[int, int]] = []
        if dry_run:
            with database.reading() as connection:
                runs = [] if ended is None else logs_that_ended(connection, ended)
                cuts = due_cuts(connection, settings.retention, now=now)
        else:
            runs = [] if ended is None else list(prune_logs(database, ended))
            cuts = let_go(database, settings.retention, now=now)
    console = output()
    verb = "would be" if dry_run else "were"
    for cut in cuts:
        until = time.strftime("%Y-%m-%d %H:%M", time.gmtime(cut.before))
        console.print(f"{cut.table:<22} {cut.rows:>12,} rows before {until} UTC", markup=False, soft_wrap=True)
    if ended is not None:
        windows = sum(count for _, count in runs)
        of_runs = "1 run" if len(runs) == 1 else f"{len(runs):,} runs"
        console.print(f"logs: {windows:,} windows of {of_runs} {verb} added up", markup=False, soft_wrap=True)
    total = sum(cut.rows for cut in cuts)
    console.print(f"{total:,} rows {verb} deleted", markup=False, soft_wrap=True)


def export(
    folder: Annotated[Path, typer.Argument(help="A new folder, for one Parquet file a table.")],
    config: ConfigOption = None,
) -> None:
    """Write the whole database as Parquet files, which pandas, DuckDB and others read."""
    from collector.storage.archive import export_database
    from dashboard.settings import load_settings

    with _existing(load_settings(config)) as database:
        rows = export_database(database, folder, _progress)
    _tell(rows, f"in {folder}")


def import_(
    folder: Annotated[Path, typer.Argument(help="The folder of an export.")], config: ConfigOption = None
) -> None:
    """Fill an empty database from an export: all of it or nothing."""
    from collector.storage.archive import import_database
    from dashboard.database import open_configured
    from dashboard.settings import load_settings

    with open_configured(load_settings(config).service.database_url) as database:
        rows = import_database(database, folder, _progress)
        _tell(rows, f"from {folder} in {database.name}")


def check(config: ConfigOption = None) -> None:
    """Look whether the database is whole: schema, file, keys, and roll-ups against what they were made of."""
    from collector.storage.check import check_database
    from dashboard.settings import load_settings

    console, whole = output(), True
    with _existing(load_settings(config)) as database:
        for result in check_database(database):
            whole = whole and not result.problem
            state = f"problem: {result.problem}" if result.problem else "fine"
            console.print(f"{result.what:<40} {state}", markup=False, soft_wrap=True)
    if not whole:
        raise typer.Exit(EXIT_FINDINGS)


def _existing(settings: Settings) -> Database:
    """The database that the settings name, where there is one: an empty one would look well kept, and export as nothing.

    Raises:
        StorageError: there is none, or it cannot be opened.
    """
    from collector.storage.engine import stored_schema
    from dashboard.database import address_of_database, open_configured

    url = settings.service.database_url
    name, found = stored_schema(address_of_database(url))
    if found is None and name.startswith("sqlite"):
        raise StorageError(
            "there is no database yet",
            where=name,
            hint="draftscope ingest PATH makes it; DRAFTSCOPE_DATABASE_URL names another",
        )
    return open_configured(url)


def _before(age: str, now: float) -> float:
    """The instant so long ago. A number alone would be seconds to one and days to another."""
    from dashboard.durations import duration

    if age.strip().replace(".", "", 1).isdecimal():
        raise InputError(f"--logs-before {age!r} has no unit", hint="for instance 90d or 12h")
    return max(now - duration(age, "--logs-before"), 0.0)


def _progress(table: str, rows: int) -> None:
    console = errors()
    if console.is_terminal:
        console.print(f"{table}: {rows:,} rows", markup=False, end="\r")


def _tell(rows: dict[str, int], where: str) -> None:
    console = output()
    console.print(f"{sum(rows.values()):,} rows of {len(rows)} tables {where}", markup=False, soft_wrap=True)
