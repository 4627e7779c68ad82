"""Parts of the tables that are cut by time, on PostgreSQL: a part a day or a month, made when it is needed.

SQLite has no such thing; there these functions do nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Final, NamedTuple

from sqlalchemy import Connection, Table, text

from collector.storage.tables import (
    FLEET_HOUR_SAMPLES,
    FLEET_MINUTE_SAMPLES,
    HOUR_SAMPLES,
    LIVE_SAMPLES,
    MINUTE_SAMPLES,
)

DAY: Final = 86_400
MONTH: Final = 30 * DAY
SPANS: Final = {
    LIVE_SAMPLES.name: DAY,
    MINUTE_SAMPLES.name: DAY,
    FLEET_MINUTE_SAMPLES.name: DAY,
    HOUR_SAMPLES.name: MONTH,
    FLEET_HOUR_SAMPLES.name: MONTH,
}
"""Seconds of one part of each table."""


class Part(NamedTuple):
    """A part of a table: rows from ``begin`` to before ``end``, seconds since 1970."""

    name: str
    begin: int
    end: int


def part_at(table: str, at: float) -> Part:
    """The part that holds an instant."""
    span = SPANS[table]
    begin = int(at // span) * span
    return Part(f"{table}_{datetime.fromtimestamp(begin, UTC):%Y%m%d}", begin, begin + span)


def make_room(connection: Connection, tables: Sequence[Table], instants: Iterable[float]) -> None:
    """Make the parts that rows of these instants go to."""
    if connection.dialect.name != "postgresql":
        return
    wanted = {part_at(table.name, at): table.name for at in instants for table in tables}
    there = text("SELECT " + ", ".join(f"to_regclass('{part.name}') IS NOT NULL" for part in wanted))
    for (part, table), known in zip(wanted.items(), connection.execute(there).one(), strict=True):
        if not known:
            # Attached, not made as a partition: that would keep readers out.
            connection.exec_driver_sql(f"CREATE TABLE {part.name} (LIKE {table} INCLUDING ALL)")
            connection.exec_driver_sql(
                f"ALTER TABLE {table} ATTACH PARTITION {part.name} FOR VALUES FROM ({part.begin}) TO ({part.end})"
            )


def parts_before(connection: Connection, table: str, at: float) -> list[str]:
    """The parts of a table that end at or before an instant, the oldest first."""
    query = text("SELECT inhrelid::regclass::text FROM pg_inherits WHERE inhparent = to_regclass(:table)")
    found = connection.execute(query, {"table": table}).scalars().all()
    names = sorted(name.rpartition(".")[2] for name in found)
    return [name for name in names if _end_of(table, name) <= at]


def _end_of(table: str, name: str) -> int:
    begin = datetime.strptime(name.rpartition("_")[2], "%Y%m%d").replace(tzinfo=UTC)
    return int(begin.timestamp()) + SPANS[table]
