"""What earlier scrapes of an endpoint left: where to go on, and storing the next one after just that."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, func, select, update

from collector.domain.arguments import Value
from collector.domain.runs import RunRecord
from collector.domain.series import SeriesSample
from collector.domain.windows import Origin
from collector.storage.live import append_live, counted_steps, last_live_window
from collector.storage.runs import run_of_source, save_run
from collector.storage.sources import find_sources, ordinal_in_source, runs_of_source, source_at
from collector.storage.tables import ARGUMENTS, RUN_SOURCES, RUNS, SERIES, SERIES_SAMPLES, SOURCES
from collector.storage.windows import append_series


class Overtaken(Exception):  # noqa: N818 - named for what is wrong
    """Another program stored a scrape of the same endpoint meanwhile."""


class LastScrape(NamedTuple):
    """The last scrape of an endpoint: its run, its instant, and where everything stood.

    ``series`` has the last value of every series of the run, ``counted`` the verify steps and accepted
    tokens that were stored of each unit.
    """

    run_id: int
    at: float
    series: tuple[SeriesSample, ...]
    counted: Mapping[str, tuple[float, float]]


def last_scrape(connection: Connection, address: str) -> LastScrape | None:
    """The last scrape that was stored of an endpoint."""
    sources = find_sources(connection, address)
    runs = runs_of_source(connection, sources[0].id) if sources else []
    if not runs:
        return None
    _, run_id = runs[-1]
    at = last_live_window(connection, run_id, sources[0].id)
    if at is None:
        return None
    counted = counted_steps(connection, run_id, sources[0].id, Origin.COUNTERS)
    return LastScrape(run_id, at, _last_series(connection, run_id), counted)


def scraped_at(connection: Connection, address: str) -> float | None:
    """When the last scrape of an endpoint was stored, by whatever program; ``None`` where none was."""
    columns = SOURCES.c
    query = select(columns.read_at).where(columns.path == address).order_by(columns.id.desc()).limit(1)
    return connection.execute(query).scalar_one_or_none()


def note_read(connection: Connection, address: str, at: float) -> int:
    """Note up to which instant a source that is no file was read; gives its id."""
    source_id = source_at(connection, address, at=at)
    connection.execute(update(SOURCES).where(SOURCES.c.id == source_id).values(read_at=at))
    return source_id


def save_scrape(
    connection: Connection,
    record: RunRecord,
    series: Iterable[SeriesSample] = (),
    *,
    address: str,
    after: float | None,
    run_id: int | None = None,
    deployment: str | None = None,
    at: float,
) -> int:
    """Store what one scrape of an engine gave; returns the run's id.

    ``record`` says which run it is (engine, host, port, start) and holds the windows and arguments
    that were read, ``address`` names the endpoint. Where the host names no machine, a run is the
    same as long as its start is. ``run_id`` is the run where the caller knows it. ``after`` is what
    :func:`scraped_at` told when the windows were made: they begin where that scrape ended.

    Raises:
        Overtaken: a later scrape was stored since; nothing is stored of this one.
    """
    if scraped_at(connection, address) != after:
        raise Overtaken
    source_id = note_read(connection, address, at)
    ordinal = (
        run_of_source(connection, source_id, record.started_at)
        if run_id is None
        else ordinal_in_source(connection, source_id, run_id)
    )
    facts = replace(record, windows=[], prefills=[])
    run_id = save_run(
        connection, facts, source_id=source_id, ordinal=ordinal, run_id=run_id, deployment=deployment, at=at
    )
    append_live(connection, run_id, source_id, record.windows, record.prefills)
    append_series(connection, run_id, series)
    return run_id


def run_that_states(
    connection: Connection, engine: str, port: int, name: str, value: Value, *, other_than: str
) -> int | None:
    """The latest run on a port whose engine stated this value, and of which the endpoint ``other_than`` did not tell."""
    runs, arguments = RUNS.c, ARGUMENTS.c
    told = select(RUN_SOURCES.c.run_id).join(SOURCES).where(SOURCES.c.path == other_than)
    query = (
        select(runs.id, arguments.effective)
        .join_from(RUNS, ARGUMENTS, and_(arguments.run_id == runs.id, arguments.name == name))
        .where(runs.engine == engine, runs.port == port, runs.sample.is_(False), runs.id.not_in(told))
        .order_by(runs.listed_at.desc(), runs.id.desc())
    )
    return next((row.id for row in connection.execute(query) if row.effective == value), None)


def _last_series(connection: Connection, run_id: int) -> tuple[SeriesSample, ...]:
    samples = SERIES_SAMPLES.c
    last = (
        select(samples.series_id, func.max(samples.at).label("at"))
        .join(SERIES, SERIES.c.id == samples.series_id)
        .where(SERIES.c.run_id == run_id)
        .group_by(samples.series_id)
        .subquery()
    )
    query = (
        select(SERIES.c.name, SERIES.c.labels, samples.at, samples.value)
        .join_from(SERIES_SAMPLES, last, and_(last.c.series_id == samples.series_id, last.c.at == samples.at))
        .join(SERIES, SERIES.c.id == samples.series_id)
    )
    return tuple(SeriesSample(row.name, row.labels, row.at, _number(row.value)) for row in connection.execute(query))


def _number(value: Any) -> float:
    """A value; SQLite holds NaN as text."""
    return float(value)
