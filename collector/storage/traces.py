"""Figures of watched engines over time, as a chart shows them: few points, with the lowest and highest of each.

Whatever the range, few rows are read: raw windows where they are few, else roll-ups by minute, else by hour.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from math import ceil, inf
from typing import Final

from sqlalchemy import Connection, Table, func, select

from collector.domain.errors import UnknownName
from collector.storage.bulk import rows_of
from collector.storage.live import streams_of
from collector.storage.packing import unpack_figures
from collector.storage.tables import (
    FLEET_HOUR_SAMPLES,
    FLEET_MINUTE_SAMPLES,
    GAUGES,
    GROUPS,
    HOUR_SAMPLES,
    LIVE_SAMPLES,
    MINUTE_SAMPLES,
)
from collector.storage.tiers import HOUR, MINUTE

ACCEPTANCE: Final = "acceptance_length"
TRACED: Final = (ACCEPTANCE, *GAUGES)
"""Quantities that there are traces of."""
MOST_POINTS: Final = 2000
"""Of a trace: twice what a wide screen can tell apart."""
MOST_ROWS: Final = 20_500
MOST_RAW_ROWS: Final = 3_000
"""Rows that are read for a trace: more, and a coarser tier is taken."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One quantity over time; all lists are of one length.

    ``at`` is the beginning of each stretch of ``width`` seconds (since 1970). ``value`` is a ratio of sums, or
    a gauge's mean over windows; ``low`` and ``high`` are those of the stretch's lowest and highest window. ``tier`` is
    what was read: ``raw``, ``minute`` or ``hour``, "" where there is nothing.
    """

    quantity: str
    tier: str
    width: int
    at: list[float]
    value: list[float]
    low: list[float]
    high: list[float]


def trace_of_run(
    connection: Connection,
    run_id: int,
    quantity: str,
    *,
    since: float | None = None,
    until: float | None = None,
    points: int = MOST_POINTS,
) -> Trace:
    """A quantity of all units of a watched run; empty where it was not watched or does not tell.

    Raises:
        UnknownName: there are no traces of this quantity.
    """
    streams = list(streams_of(connection, [run_id]))
    return _trace(connection, (MINUTE_SAMPLES, HOUR_SAMPLES), streams, quantity, since, until, points, raw=True)


def trace_of_group(
    connection: Connection,
    name: str,
    quantity: str,
    *,
    since: float | None = None,
    until: float | None = None,
    points: int = MOST_POINTS,
) -> Trace:
    """A quantity of all watched runs of a group; gauges are the mean of a unit, lowest and highest those of any.

    Raises:
        UnknownName: no group has this name, or there are no traces of this quantity.
    """
    found = connection.execute(select(GROUPS.c.id).where(GROUPS.c.name == name)).scalar_one_or_none()
    if found is None:
        raise UnknownName(f"no group of watched runs is named {name!r}", hint="GET /api/v1/groups lists them")
    tables = FLEET_MINUTE_SAMPLES, FLEET_HOUR_SAMPLES
    return _trace(connection, tables, [found], quantity, since, until, points, raw=False)


def list_groups(connection: Connection) -> list[str]:
    """The names of all groups of watched runs."""
    return list(connection.execute(select(GROUPS.c.name).order_by(GROUPS.c.name)).scalars())


def _trace(
    connection: Connection,
    tables: tuple[Table, Table],
    owners: Sequence[int],
    quantity: str,
    since: float | None,
    until: float | None,
    points: int,
    *,
    raw: bool,
) -> Trace:
    if quantity not in TRACED:
        raise UnknownName(f"there are no traces of {quantity!r}", hint=f"one of: {', '.join(TRACED)}")
    minutes, hours = tables
    begin, end = _bounds(connection, hours, owners)
    begin, end = max(begin, -inf if since is None else since), min(end, inf if until is None else until)
    if not owners or not begin <= end:
        return Trace(quantity, "", 0, [], [], [], [])
    points = max(1, min(points, MOST_POINTS))
    if raw and _suits(connection, LIVE_SAMPLES, "at", owners, begin, end, MOST_RAW_ROWS):
        return _of_windows(connection, owners, quantity, begin, end, points)
    if _suits(connection, minutes, "bucket", owners, begin, end, MOST_ROWS):
        return _of_rollups(connection, minutes, "minute", MINUTE, owners, quantity, begin, end, points)
    return _of_rollups(connection, hours, "hour", HOUR, owners, quantity, begin, end, points)


def _bounds(connection: Connection, hours: Table, owners: Sequence[int]) -> tuple[float, float]:
    owner = hours.columns.values()[0]
    found = connection.execute(
        select(func.min(hours.c.bucket), func.max(hours.c.bucket)).where(owner.in_(owners))
    ).one()
    return (inf, -inf) if found[0] is None else (found[0], found[1] + HOUR)


def _suits(
    connection: Connection, table: Table, time: str, owners: Sequence[int], begin: float, end: float, most: int
) -> bool:
    """Whether a tier reaches back to the beginning of a range and has not too many rows in it."""
    where = _where(table, time, owners, begin, end)
    counted = rows_of(connection, f"SELECT count(*) FROM (SELECT 1 FROM {table.name} {where} LIMIT {most + 1}) AS few")  # noqa: S608
    if not 0 < counted[0][0] <= most:
        return False
    first = rows_of(connection, f"SELECT min({time}) FROM {table.name} {where}")[0][0]  # noqa: S608 - our names and numbers
    earlier = _where(table, time, owners, -inf, begin)
    return bool(first < begin + HOUR or rows_of(connection, f"SELECT 1 FROM {table.name} {earlier} LIMIT 1"))  # noqa: S608


def _where(table: Table, time: str, owners: Sequence[int], begin: float, end: float) -> str:
    owner = table.columns.keys()[0]
    after = "" if begin == -inf else f"AND {time} >= {begin!r} "
    return f"WHERE {owner} IN ({', '.join(map(str, owners))}) {after}AND {time} < {end!r}"


def _of_rollups(
    connection: Connection,
    table: Table,
    tier: str,
    width: int,
    owners: Sequence[int],
    quantity: str,
    begin: float,
    end: float,
    points: int,
) -> Trace:
    width *= max(1, ceil((end - begin) / width / points))
    if quantity == ACCEPTANCE:
        value, known, ends = "1 + sum(accepted_tokens) / sum(verify_steps)", "verify_steps > 0", "acceptance"
    else:
        value, known, ends = f"sum({quantity}) / sum(windows)", f"{quantity} IS NOT NULL", quantity
    rows = rows_of(
        connection,
        f"SELECT bucket / {width} * {width} AS stretch, {value}, min({ends}_low), max({ends}_high) "  # noqa: S608 - our names
        f"FROM {table.name} {_where(table, 'bucket', owners, begin, end)} AND {known} GROUP BY stretch ORDER BY stretch",
    )
    return _in_columns(quantity, tier, width, rows)


def _of_windows(
    connection: Connection, owners: Sequence[int], quantity: str, begin: float, end: float, points: int
) -> Trace:
    width = max(1, ceil((end - begin) / points))
    where = _where(LIVE_SAMPLES, "at", owners, begin, end)
    stretches: dict[int, list[float]] = {}
    for at, figures in rows_of(connection, f"SELECT at, figures FROM live_samples {where} ORDER BY at"):  # noqa: S608
        window, _ = unpack_figures(figures, 0, at, "")
        if window is None:
            continue
        if quantity == ACCEPTANCE:
            over, under = window.accepted_tokens, window.verify_steps
            if over is None or not under:
                continue
            value = 1 + over / under
        else:
            over, under = getattr(window, quantity), 1.0
            if over is None or over != over:  # noqa: PLR0124 - NaN
                continue
            value = over
        known = stretches.setdefault(int(at // width) * width, [0.0, 0.0, inf, -inf])
        known[:] = known[0] + over, known[1] + under, min(known[2], value), max(known[3], value)
    own = 1 if quantity == ACCEPTANCE else 0
    rows = [(at, own + over / under, low, high) for at, (over, under, low, high) in stretches.items()]
    return _in_columns(quantity, "raw", width, rows)


def _in_columns(quantity: str, tier: str, width: int, rows: Iterable[tuple[float, ...]]) -> Trace:
    columns = [list(column) for column in zip(*rows, strict=True)] or [[], [], [], []]
    return Trace(quantity, tier, width, *columns)
