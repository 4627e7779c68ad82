"""How long samples are kept: raw windows of watched engines for days, roll-ups by minute for weeks, by hour for years.

On PostgreSQL a part of a table is dropped at once; on SQLite rows are deleted in slices, so that writers wait
only for moments. What was cut is cut at the edge of a coarser roll-up, so that nothing is counted twice or lost.
Windows of logs stay until :func:`prune_logs` adds them up.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Table, delete, func, select

from collector.storage.bulk import insert_or_keep, rows_of
from collector.storage.engine import Database
from collector.storage.limits import Retention
from collector.storage.live import streams_of
from collector.storage.partitions import DAY, make_room, parts_before
from collector.storage.tables import (
    DECODE_SAMPLES,
    FLEET_HOUR_SAMPLES,
    FLEET_MINUTE_SAMPLES,
    GROUPS,
    HOUR_SAMPLES,
    LIVE_SAMPLES,
    LIVE_STREAMS,
    MINUTE_SAMPLES,
    PREFILL_SAMPLES,
    RUNS,
    SERIES,
    SERIES_SAMPLES,
)
from collector.storage.tiers import HOUR, MINUTE, bucket_of, replace_rollups
from collector.storage.windows import log_prefills, log_windows

SLICE: Final = 50_000
"""Rows that one transaction deletes at most."""

_PATIENCE: Final = "2s"
"""How long a part that is read (by an export, say) is waited for: others wait behind. It goes the next time."""


class Cut(NamedTuple):
    """What of a table is let go: rows before ``before`` (seconds since 1970). ``rows`` says how many there are."""

    table: str
    before: int
    rows: int


class _Tier(NamedTuple):
    table: Table
    time: str
    owners: Table
    before: int


def _tiers(limits: Retention, now: float) -> list[_Tier]:
    raw = bucket_of(max(now - limits.raw_hours * HOUR, 0.0), MINUTE)  # who keeps all gives any large number
    minutes = bucket_of(max(now - limits.minute_days * 24 * HOUR, 0.0), HOUR)
    hours = bucket_of(max(now - limits.hour_days * 24 * HOUR, 0.0), HOUR)
    return [
        _Tier(LIVE_SAMPLES, "at", LIVE_STREAMS, raw),
        _Tier(MINUTE_SAMPLES, "bucket", LIVE_STREAMS, minutes),
        _Tier(FLEET_MINUTE_SAMPLES, "bucket", GROUPS, minutes),
        _Tier(HOUR_SAMPLES, "bucket", LIVE_STREAMS, hours),
        _Tier(FLEET_HOUR_SAMPLES, "bucket", GROUPS, hours),
    ]


def due_cuts(connection: Connection, limits: Retention, *, now: float) -> list[Cut]:
    """What :func:`let_go` would delete. On PostgreSQL whole parts only: a day or a month that has passed."""
    cuts = []
    for tier in _tiers(limits, now):
        if connection.dialect.name == "postgresql":
            parts = parts_before(connection, tier.table.name, tier.before)
            rows = sum(rows_of(connection, f"SELECT count(*) FROM {part}")[0][0] for part in parts)  # noqa: S608
        else:
            before = tier.table.c[tier.time] < tier.before
            rows = connection.execute(select(func.count()).select_from(tier.table).where(before)).scalar_one()
        cuts.append(Cut(tier.table.name, tier.before, rows))
    raw = cuts[0].before
    old = sum(
        connection.execute(
            select(func.count()).select_from(SERIES_SAMPLES).where(*_old_series(run_id, raw))
        ).scalar_one()
        for run_id in _watched(connection)
    )
    return [*cuts, Cut(SERIES_SAMPLES.name, raw, old)]


def let_go(database: Database, limits: Retention, *, now: float) -> list[Cut]:
    """Delete what is older than it is kept; returns what was. Safe to repeat and to interrupt.

    Raises:
        StorageError: the database refused; what was deleted before stays deleted.
    """
    with database.reading() as connection:
        cuts = due_cuts(connection, limits, now=now)
    for tier, cut in zip(_tiers(limits, now), cuts, strict=False):
        if cut.rows or database.engine.dialect.name == "postgresql":
            _cut(database, tier)
    if cuts[-1].rows:
        with database.reading() as connection:
            runs = _watched(connection)
        for run_id in runs:
            with database.transaction() as connection:
                connection.execute(delete(SERIES_SAMPLES).where(*_old_series(run_id, cuts[-1].before)))
    if database.engine.dialect.name == "sqlite" and any(cut.rows for cut in cuts):
        _give_back(database)
    return cuts


def _cut(database: Database, tier: _Tier) -> None:
    if database.engine.dialect.name == "postgresql":
        with database.reading() as connection:
            parts = parts_before(connection, tier.table.name, tier.before)
        for part in parts:  # a transaction each: a reader of several tables is never waited for in a circle
            with database.transaction() as connection:
                connection.exec_driver_sql(f"SET LOCAL lock_timeout = '{_PATIENCE}'")
                connection.exec_driver_sql(f"DROP TABLE IF EXISTS {part}")
        return
    with database.reading() as connection:
        owners = list(connection.execute(select(tier.owners.c.id)).scalars())
    time, owner = tier.table.c[tier.time], tier.table.columns.values()[0]
    for owner_id in owners:
        old = owner == owner_id, time < tier.before
        while True:
            with database.transaction() as connection:
                last = connection.execute(
                    select(time).where(*old).order_by(time).limit(1).offset(SLICE)
                ).scalar_one_or_none()
                connection.execute(delete(tier.table).where(*old, *(() if last is None else (time < last,))))
            if last is None:
                break


def _watched(connection: Connection) -> list[int]:
    return list(connection.execute(select(LIVE_STREAMS.c.run_id).distinct()).scalars())


def _old_series(run_id: int, before: float) -> list[Any]:
    """Old values of a run's series; the last of each stays: the next scrape goes on from there."""
    samples, later = SERIES_SAMPLES.c, SERIES_SAMPLES.alias("later").c
    last = select(func.max(later.at)).where(later.series_id == samples.series_id).correlate(SERIES_SAMPLES)
    of_run = select(SERIES.c.id).where(SERIES.c.run_id == run_id)
    return [samples.series_id.in_(of_run), samples.at < before, samples.at < last.scalar_subquery()]


def _give_back(database: Database) -> None:
    """Shrink a SQLite file by what is free in it."""
    with database.engine.connect() as connection:
        cursor = connection.connection.cursor()
        cursor.execute("PRAGMA incremental_vacuum").fetchall()
        cursor.close()


# ---- logs


def logs_before(connection: Connection, before: float) -> list[tuple[int, int]]:
    """Runs that ended before an instant and have raw windows of logs: their ids, and how many windows."""
    windows = DECODE_SAMPLES.c
    query = (
        select(windows.run_id, func.count())
        .join_from(DECODE_SAMPLES, RUNS, RUNS.c.id == windows.run_id)
        .where(RUNS.c.ended_at < before, RUNS.c.sample.is_(False))
        .group_by(windows.run_id)
    )
    return [(run_id, count) for run_id, count in connection.execute(query)]


def prune_logs(database: Database, before: float) -> Iterator[tuple[int, int]]:
    """Add up the windows of logs whose run ended before an instant, by minute and by hour, and delete the raw ones.

    Yields each run and how many windows it had. Judgements, findings and their evidence stay.
    """
    with database.reading() as connection:
        runs = logs_before(connection, before)
    for run_id, count in runs:
        with database.transaction() as connection:
            _add_up(connection, run_id)
        yield run_id, count


def _add_up(connection: Connection, run_id: int) -> None:
    windows, prefills = log_windows(connection, [run_id]), log_prefills(connection, run_id)
    units = sorted({(placed.source_id, placed.unit_id) for placed in (*windows, *prefills)})
    rows = [{"run_id": run_id, "source_id": source_id, "unit_id": unit_id} for source_id, unit_id in units]
    connection.execute(insert_or_keep(connection, LIVE_STREAMS), rows)
    streams = {(stream.source_id, stream.unit_id): stream.id for stream in streams_of(connection, [run_id]).values()}
    make_room(connection, (MINUTE_SAMPLES, HOUR_SAMPLES), {placed.at // DAY * DAY for placed in (*windows, *prefills)})
    replace_rollups(
        connection,
        [(streams[placed.source_id, placed.unit_id], placed.what) for placed in windows],
        [(streams[placed.source_id, placed.unit_id], placed.what) for placed in prefills],
    )
    for table in (DECODE_SAMPLES, PREFILL_SAMPLES):
        connection.execute(delete(table).where(table.c.run_id == run_id))
