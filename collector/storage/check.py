"""Whether the database is whole: its file, what its rows point to, and roll-ups against what they were made of."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import isclose
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Table, exists, select

from collector.storage import schema
from collector.storage.bulk import rows_of
from collector.storage.engine import Database
from collector.storage.packing import unpack_figures
from collector.storage.tables import (
    FLEET_HOUR_SAMPLES,
    FLEET_MINUTE_SAMPLES,
    HOUR_SAMPLES,
    LIVE_SAMPLES,
    LIVE_STREAMS,
    METADATA,
    MINUTE_SAMPLES,
    POINTS_TO,
)
from collector.storage.tiers import HOUR, MINUTE, rolled_up

_SUMS: Final = ("windows", "verify_steps", "accepted_tokens", "generated_tokens", "seconds", "prefills")
_TOLERANCE: Final = 1e-9
"""Relative: sums of the same numbers in another order."""
_SHOWN: Final = 3


class Result(NamedTuple):
    """One thing that was looked at, and what is wrong with it, "" where nothing is."""

    what: str
    problem: str


def check_database(database: Database) -> Iterator[Result]:
    """Look at everything; slow on large databases, and writers are not held up.

    Raises:
        StorageError: the database cannot be read at all.
    """
    with database.reading() as connection:
        looks: tuple[tuple[str, Callable[[Connection], list[str]]], ...] = (
            ("schema", _schema),
            *((("file and keys", _file),) if connection.dialect.name == "sqlite" else ()),  # a server sees to its own
            ("samples belong to something", orphans),
            ("minutes are the sums of raw windows", _minutes),
            ("hours are the sums of minutes", _hours),
            ("the fleet is the sum of its runs", _fleet),
        )
        for what, look in looks:
            problems = look(connection)
            more = f", and {len(problems) - _SHOWN} more" if len(problems) > _SHOWN else ""
            yield Result(what, "; ".join(problems[:_SHOWN]) + more)


def _schema(connection: Connection) -> list[str]:
    found = schema.revision(connection)
    return [] if found == schema.head() else [f"it is {found}, this release needs {schema.head()}"]


def _file(connection: Connection) -> list[str]:
    problems = [str(row[0]) for row in rows_of(connection, "PRAGMA integrity_check") if row[0] != "ok"]
    broken = rows_of(connection, "PRAGMA foreign_key_check")
    return problems + [f"row {row[1]} of {row[0]} points to a row of {row[2]} that is not there" for row in broken]


def orphans(connection: Connection) -> list[str]:
    """Ids without a foreign key that are not where they point to, each once."""
    problems = []
    for table in METADATA.sorted_tables:
        for column in (column for column in table.columns if POINTS_TO in column.info):
            owners = METADATA.tables[column.info[POINTS_TO]]
            there = exists().where(owners.c.id == column)
            lost = connection.execute(select(column).where(~there).distinct().order_by(column)).scalars()
            problems += [f"{table.name}: {column.name} {owner_id} is not in {owners.name}" for owner_id in lost]
    return problems


def _minutes(connection: Connection) -> list[str]:
    problems = []
    for stream_id in connection.execute(select(LIVE_STREAMS.c.id)).scalars().all():
        query = select(LIVE_SAMPLES).where(LIVE_SAMPLES.c.stream_id == stream_id).order_by(LIVE_SAMPLES.c.at)
        windows, prefills = [], []
        for _, at, _place, figures in connection.execute(query):
            window, prefill = unpack_figures(figures, 0, at, "")
            windows += [] if window is None else [(stream_id, window)]
            prefills += [] if prefill is None else [(stream_id, prefill)]
        made = rolled_up(windows, prefills, MINUTE)
        if not made:
            continue
        first = min(bucket for _, bucket, _ in made)
        stored = connection.execute(
            select(MINUTE_SAMPLES).where(MINUTE_SAMPLES.c.stream_id == stream_id, MINUTE_SAMPLES.c.bucket >= first)
        )
        expected = {key[1:]: tuple(values[:-1]) for key, values in made.items()}
        problems += _differences(
            f"minute_samples, stream {stream_id}", expected, {(row[1], row[2]): row[3:-1] for row in stored}
        )
    return problems


def _hours(connection: Connection) -> list[str]:
    problems = []
    for fine, coarse in ((MINUTE_SAMPLES, HOUR_SAMPLES), (FLEET_MINUTE_SAMPLES, FLEET_HOUR_SAMPLES)):
        owner = fine.columns.keys()[0]
        for (owner_id,) in rows_of(connection, f"SELECT DISTINCT {owner} FROM {fine.name}"):  # noqa: S608 - our names
            made = _summed(connection, fine, f"{owner} = {owner_id}", HOUR)
            first = min(bucket for bucket, _ in made)
            stored = _summed(connection, coarse, f"{owner} = {owner_id} AND bucket >= {first}", HOUR)
            problems += _differences(f"{coarse.name}, {owner} {owner_id}", made, stored)
    return problems


def _fleet(connection: Connection) -> list[str]:
    live = (
        "stream_id IN (SELECT live_streams.id FROM live_streams JOIN sources ON sources.id = live_streams.source_id "
        "WHERE sources.byte_offset = 0)"
    )
    problems = []
    for own, fleet, width in ((MINUTE_SAMPLES, FLEET_MINUTE_SAMPLES, MINUTE), (HOUR_SAMPLES, FLEET_HOUR_SAMPLES, HOUR)):
        problems += _differences(
            fleet.name, _summed(connection, own, live, width), _summed(connection, fleet, "1 = 1", width)
        )
    return problems


def _summed(connection: Connection, table: Table, where: str, width: int) -> dict[tuple[int, ...], tuple[Any, ...]]:
    sums = ", ".join(f"sum({name})" for name in _SUMS)
    rows = rows_of(
        connection,
        f"SELECT bucket / {width} * {width} AS stretch, shape, {sums}, min(acceptance_low), max(acceptance_high), "  # noqa: S608 - our names
        f"min(generation_throughput_low), max(generation_throughput_high) FROM {table.name} WHERE {where} GROUP BY stretch, shape",
    )
    return {(row[0], row[1]): row[2:] for row in rows}


def _differences(
    where: str, expected: dict[tuple[int, ...], tuple[Any, ...]], stored: dict[tuple[int, ...], Any]
) -> list[str]:
    problems = [f"{where}: nothing for {key[0]}" for key in expected.keys() - stored.keys()]
    problems += [f"{where}: too much for {key[0]}" for key in stored.keys() - expected.keys()]
    problems += [
        f"{where}: another sum for {key[0]}"
        for key in expected.keys() & stored.keys()
        if not all(map(_same, expected[key], stored[key]))
    ]
    return sorted(problems)


def _same(one: Any, other: Any) -> bool:
    if one is None or other is None:
        return one is None and other is None
    return isclose(one, other, rel_tol=_TOLERANCE)
