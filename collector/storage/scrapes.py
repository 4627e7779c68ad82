"""What earlier scrapes of an endpoint left: where to go on."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from sqlalchemy import Connection, and_, func, select

from collector.domain.arguments import Value
from collector.domain.series import SeriesSample
from collector.domain.windows import Origin
from collector.storage.sources import find_sources, runs_of_source
from collector.storage.tables import ARGUMENTS, DECODE_SAMPLES, RUN_SOURCES, RUNS, SERIES, SERIES_SAMPLES, SOURCES
from collector.storage.windows import counted_steps


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
    windows = DECODE_SAMPLES.c
    query = select(func.max(windows.at)).where(windows.run_id == run_id, windows.source_id == sources[0].id)
    at = connection.execute(query).scalar_one()
    if at is None:
        return None
    counted = counted_steps(connection, run_id, sources[0].id, Origin.COUNTERS)
    return LastScrape(run_id, at, _last_series(connection, run_id), counted)


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
