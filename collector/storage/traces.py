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
from collector.domain.windows import Window
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
STEP: Final = "step_seconds"
TRACED: Final = (ACCEPTANCE, STEP, *GAUGES)
"""Quantities that there are traces of."""
MOST_POINTS: Final = 2000
"""Of a trace: twice what a wide screen can tell apart."""
DAY: Final = 86_400
_MINUTES: Final = (1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30)
_WIDTHS: Final = (
    *_MINUTES,
    *(MINUTE * part for part in _MINUTES),
    *(HOUR * part for part in (1, 2, 3, 4, 6, 8, 12, 24)),
)
"""Seconds that a stretch may last."""
MOST_ROWS: Final = 20_500
MOST_RAW_ROWS: Final = 3_000
"""Rows that are read for a trace: more, and a coarser tier is taken."""


@dataclass(frozen=True, slots=True)
class Trace:
    """One quantity over time; all lists are of one length.

    ``at`` is the beginning of each stretch of ``width`` seconds (since 1970). ``value`` is a ratio of sums, or
    a gauge's mean over windows; ``low`` and ``high`` are those of the stretch's lowest and highest window, ``None`` for
    step times by minute or hour. ``tier`` is what was read: ``raw``, ``minute`` or ``hour``, "" where there is nothing.
    A step takes the running requests times acceptance length over throughput (docs/theory.md), all of the whole stretch.
    """

    quantity: str
    tier: str
    width: int
    at: list[float]
    value: list[float]
    low: list[float | None]
    high: list[float | None]


def traces_of_run(
    connection: Connection,
    run_id: int,
    quantities: Sequence[str],
    *,
    since: float | None = None,
    until: float | None = None,
    points: int = MOST_POINTS,
) -> list[Trace]:
    """Quantities of all units of a watched run, read together; empty where it was not watched or does not tell.

    Raises:
        UnknownName: there are no traces of one of them.
    """
    streams = list(streams_of(connection, [run_id]))
    return _traces(connection, (MINUTE_SAMPLES, HOUR_SAMPLES), streams, quantities, since, until, points, raw=True)


def traces_of_group(
    connection: Connection,
    name: str,
    quantities: Sequence[str],
    *,
    since: float | None = None,
    until: float | None = None,
    points: int = MOST_POINTS,
) -> list[Trace]:
    """The same of all watched runs of a group; gauges are the mean of a unit, lowest and highest those of any.

    Raises:
        UnknownName: no group has this name, or there are no traces of one of the quantities.
    """
    found = connection.execute(select(GROUPS.c.id).where(GROUPS.c.name == name)).scalar_one_or_none()
    if found is None:
        raise UnknownName(f"no group of watched runs is named {name!r}", hint="GET /api/v1/groups lists them")
    tables = FLEET_MINUTE_SAMPLES, FLEET_HOUR_SAMPLES
    return _traces(connection, tables, [found], quantities, since, until, points, raw=False)


def last_window(connection: Connection, run_id: int) -> float | None:
    """The instant of a watched run's last window, seconds since 1970; ``None`` where it has none."""
    return _last(connection, HOUR_SAMPLES, list(streams_of(connection, [run_id])))


def last_window_of_group(connection: Connection, name: str) -> float | None:
    """The same of a group of watched runs."""
    found = connection.execute(select(GROUPS.c.id).where(GROUPS.c.name == name)).scalars().all()
    return _last(connection, FLEET_HOUR_SAMPLES, found)


def _last(connection: Connection, hours: Table, owners: Sequence[int]) -> float | None:
    owner = hours.columns.values()[0]
    found: float | None = connection.execute(select(func.max(hours.c.last_at)).where(owner.in_(owners))).scalar_one()
    return found


def list_groups(connection: Connection) -> list[str]:
    """The names of all groups of watched runs."""
    return list(connection.execute(select(GROUPS.c.name).order_by(GROUPS.c.name)).scalars())


def _traces(
    connection: Connection,
    tables: tuple[Table, Table],
    owners: Sequence[int],
    quantities: Sequence[str],
    since: float | None,
    until: float | None,
    points: int,
    *,
    raw: bool,
) -> list[Trace]:
    for quantity in quantities:
        if quantity not in TRACED:
            raise UnknownName(f"there are no traces of {quantity!r}", hint=f"one of: {', '.join(TRACED)}")
    minutes, hours = tables
    begin, end = _bounds(connection, hours, owners)
    begin, end = max(begin, -inf if since is None else since), min(end, inf if until is None else until)
    if not owners or not begin <= end:
        return [Trace(quantity, "", 0, [], [], [], []) for quantity in quantities]
    points = max(1, min(points, MOST_POINTS))
    if raw and _suits(connection, LIVE_SAMPLES, "at", owners, begin, end, MOST_RAW_ROWS):
        return _of_windows(connection, owners, quantities, begin, end, points)
    if _suits(connection, minutes, "bucket", owners, begin, end, MOST_ROWS):
        return _of_rollups(connection, minutes, "minute", MINUTE, owners, quantities, begin, end, points)
    return _of_rollups(connection, hours, "hour", HOUR, owners, quantities, begin, end, points)


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
    quantities: Sequence[str],
    begin: float,
    end: float,
    points: int,
) -> list[Trace]:
    width = _round_width((end - begin) / points, width)
    figures = ", ".join(part for quantity in quantities for part in _columns_of(quantity))
    rows = rows_of(
        connection,
        f"SELECT bucket / {width} * {width} AS stretch, {figures} "  # noqa: S608 - our names
        f"FROM {table.name} {_where(table, 'bucket', owners, begin, end)} GROUP BY stretch ORDER BY stretch",
    )
    return [
        _in_columns(quantity, tier, width, [(row[0], *row[first : first + 3]) for row in rows])
        for first, quantity in zip(range(1, 3 * len(quantities), 3), quantities, strict=True)
    ]


def _round_width(least: float, unit: int) -> int:
    """The narrowest stretch of at least so many seconds that people can say: a whole part or multiple of a minute, hour or day."""
    for width in _WIDTHS:
        if width >= least and width % unit == 0:
            return width
    return DAY * ceil(least / DAY)


def _columns_of(quantity: str) -> tuple[str, str, str]:
    """What a stretch of roll-ups says of a quantity: its value, lowest and highest. A sum skips what is not known."""
    if quantity == ACCEPTANCE:
        steps = "sum(CASE WHEN verify_steps > 0 THEN verify_steps END)"
        return f"1 + sum(accepted_tokens) / {steps}", "min(acceptance_low)", "max(acceptance_high)"
    if quantity == STEP:
        known = "running_requests > 0 AND generated_tokens > 0 AND seconds > 0"

        def total(expression: str) -> str:
            return f"sum(CASE WHEN {known} THEN {expression} END)"

        steps, accepted = total("coalesce(verify_steps, 0)"), total("coalesce(accepted_tokens, 0)")
        length = f"(1 + {accepted} / nullif({steps}, 0))"
        value = (
            f"{total('running_requests')} / {total('windows')} * coalesce({length}, 1) "
            f"* {total('seconds')} / {total('generated_tokens')}"
        )
        return value, "NULL", "NULL"
    windows = f"sum(CASE WHEN {quantity} IS NOT NULL THEN windows END)"
    return f"sum({quantity}) / {windows}", f"min({quantity}_low)", f"max({quantity}_high)"


def _of_windows(
    connection: Connection, owners: Sequence[int], quantities: Sequence[str], begin: float, end: float, points: int
) -> list[Trace]:
    width = _round_width((end - begin) / points, 1)
    where = _where(LIVE_SAMPLES, "at", owners, begin, end)
    stretches: list[dict[int, list[float]]] = [{} for _ in quantities]
    for at, figures in rows_of(connection, f"SELECT at, figures FROM live_samples {where} ORDER BY at"):  # noqa: S608
        window, _ = unpack_figures(figures, 0, at, "")
        if window is None:
            continue
        for quantity, known in zip(quantities, stretches, strict=True):
            parts = _parts_of(window, quantity)
            if parts is None:
                continue
            over, under = parts
            value = over / under
            sums = known.setdefault(int(at // width) * width, [0.0, 0.0, inf, -inf])
            sums[:] = sums[0] + over, sums[1] + under, min(sums[2], value), max(sums[3], value)
    return [
        _in_columns(
            quantity, "raw", width, [(at, over / under, low, high) for at, (over, under, low, high) in known.items()]
        )
        for quantity, known in zip(quantities, stretches, strict=True)
    ]


def _parts_of(window: Window, quantity: str) -> tuple[float, float] | None:
    """What a window's figure is a ratio of; ``None`` where the window does not tell."""
    steps, accepted = window.verify_steps, window.accepted_tokens
    if quantity == ACCEPTANCE:
        return (steps + accepted, steps) if steps and accepted is not None else None
    if quantity == STEP:
        if not (window.running_requests and window.generated_tokens and window.seconds):
            return None
        length = 1 + accepted / steps if steps and accepted is not None else 1.0
        return window.running_requests * length * window.seconds, window.generated_tokens
    value = getattr(window, quantity)
    return None if value is None or value != value else (value, 1.0)  # noqa: PLR0124 - NaN


def _in_columns(quantity: str, tier: str, width: int, rows: Iterable[tuple[float, ...]]) -> Trace:
    columns = [list(column) for column in zip(*(row for row in rows if row[1] is not None), strict=True)]
    return Trace(quantity, tier, width, *(columns or [[], [], [], []]))
