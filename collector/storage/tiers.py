"""Roll-ups: windows of watched engines added up by minute and by hour, of each run and of each group of runs.

They are kept on write, so that any chart reads few rows and old raw windows can be let go. Counts are
summed, so that ratios are ratios of sums; gauges keep their sum, lowest and highest value, so that no dip
is lost. Windows that know different figures are never added up: each sum stands for all of its windows.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, zip_longest
from operator import attrgetter, ne
from typing import Any, Final, TypeAlias

from sqlalchemy import Connection, Table, func, select

from collector.domain.windows import Origin, PrefillWindow, Window
from collector.storage.bulk import replace_rows, rows_of
from collector.storage.packing import ORIGIN_CODES, ORIGINS, pack_counts, unpack_counts
from collector.storage.tables import (
    COUNTS,
    FLEET_HOUR_SAMPLES,
    FLEET_MINUTE_SAMPLES,
    GAUGES,
    HOUR_SAMPLES,
    MINUTE_SAMPLES,
)

MINUTE: Final = 60
HOUR: Final = 3600

Values: TypeAlias = list[Any]
"""What windows add up to: the columns of a roll-up behind its key, counts by position as a tuple."""
Key: TypeAlias = tuple[int, ...]

_KNOWN: Final = ("seconds", "verify_steps", "drafted_tokens", "generated_tokens", *GAUGES, "accepted_at")
"""Figures that a window may lack; each has a bit of the shape. Behind them: is the graph known, was it used; did anything run."""
_GRAPH_KNOWN: Final = 1 << (len(_KNOWN) + 2)
_GRAPH: Final = _GRAPH_KNOWN << 1
_BUSY: Final = _GRAPH << 1
NO_WINDOW: Final = -1
"""The shape of prompts without a window."""


_FIGURES_OF_SHAPE: Final = attrgetter(*_KNOWN)
_BITS_OF_SHAPE: Final = tuple(1 << bit for bit in range(2, len(_KNOWN) + 2))
_COUNTS_OF: Final = attrgetter(*COUNTS)
_GAUGES_OF: Final = attrgetter(*(name for name in GAUGES for _ in range(3)))
"""The sum, lowest and highest value of each, as one window adds them."""
_STEPS, _ACCEPTED = COUNTS.index("verify_steps"), COUNTS.index("accepted_tokens")
_NO_FIGURES: Final = (None,) * (len(COUNTS) + 2 + 3 * len(GAUGES))


def shape_of(window: Window) -> int:
    """Where a window's figures come from and which of them are known."""
    shape = ORIGIN_CODES[window.origin]
    for bit, value in zip(_BITS_OF_SHAPE, _FIGURES_OF_SHAPE(window), strict=True):
        if value is not None and value == value:  # noqa: PLR0124 - NaN
            shape |= bit
    if window.graph is not None:
        shape |= _GRAPH_KNOWN | (_GRAPH if window.graph else 0)
    return shape | (_BUSY if window.running_requests else 0)


def values_of(window: Window) -> Values:
    """What one window adds to a roll-up."""
    counts = _without_nan(_COUNTS_OF(window))
    steps, accepted = counts[_STEPS], counts[_ACCEPTED]
    length = 1 + accepted / steps if steps and accepted is not None else None
    gauges = _without_nan(_GAUGES_OF(window))
    return [1, window.at, *counts, length, length, *gauges, window.prefills, None, None, window.accepted_at]


def values_of_prefill(prefill: PrefillWindow) -> Values:
    """What one prefill batch adds to a roll-up."""
    return [0, prefill.at, *_NO_FIGURES, 0, prefill.new_tokens, prefill.cached_tokens, None]


def merged(parts: Sequence[Values]) -> Values:
    """What stretches add up to, in their order."""
    if len(parts) == 1:
        return parts[0]
    return [
        None if not known
        else sum(known) if rule is _SUM
        else max(known) if rule is _HIGHEST
        else min(known) if rule is _LOWEST
        else _by_position(known)
        for rule, known in zip(_RULES, map(_known, zip(*parts, strict=True)), strict=True)
    ]  # fmt: skip


def _known(column: Sequence[Any]) -> Sequence[Any]:
    return column if None not in column else [value for value in column if value is not None]


def _without_nan(figures: tuple[float | None, ...]) -> Sequence[float | None]:
    if not any(map(ne, figures, figures)):
        return figures
    return [None if value != value else value for value in figures]  # noqa: PLR0124


def _by_position(counts: Sequence[tuple[float, ...]]) -> tuple[float, ...]:
    return tuple(map(sum, zip_longest(*counts, fillvalue=0.0)))


_SUM, _HIGHEST, _LOWEST, _POSITIONS = range(4)
"""How a figure adds up. This is done some times a scrape, so the rules are no functions."""
_RULES: Final = (
    _SUM,
    _HIGHEST,
    *(_SUM,) * len(COUNTS),
    _LOWEST,
    _HIGHEST,
    *(_SUM, _LOWEST, _HIGHEST) * len(GAUGES),
    *(_SUM,) * 3,
    _POSITIONS,
)


_VALUE_NAMES: Final = tuple(column.name for column in list(MINUTE_SAMPLES.columns)[3:])
_RULE_OF: Final = dict(zip(_VALUE_NAMES, _RULES, strict=True))
_ADDED: Final = {
    _SUM: "{table}.{name} + excluded.{name}",
    _LOWEST: "{least}({table}.{name}, excluded.{name})",
    _HIGHEST: "{greatest}({table}.{name}, excluded.{name})",
}
"""How a stored figure and a further one add up."""


# ---- writing


def add_to_rollups(
    connection: Connection,
    groups: Mapping[int, int],
    windows: Iterable[tuple[int, Window]],
    prefills: Iterable[tuple[int, PrefillWindow]],
) -> None:
    """Add windows and prefills, each with the id of its stream, that were not stored before, to all roll-ups.

    ``groups`` are the groups of the streams.
    """
    own = rolled_up(windows, prefills, MINUTE)
    of_group = _added_up(
        ((groups[stream_id], minute, shape), values) for (stream_id, minute, shape), values in own.items()
    )
    _merge_into(connection, MINUTE_SAMPLES, own)
    _merge_into(connection, FLEET_MINUTE_SAMPLES, of_group)
    _merge_into(connection, HOUR_SAMPLES, _by_hour(own))
    _merge_into(connection, FLEET_HOUR_SAMPLES, _by_hour(of_group))


def replace_rollups(
    connection: Connection, windows: Iterable[tuple[int, Window]], prefills: Iterable[tuple[int, PrefillWindow]]
) -> None:
    """Store the roll-ups of all windows and prefills of streams in place of what was there; they belong to no fleet."""
    given = list(windows), list(prefills)
    for table, width in ((MINUTE_SAMPLES, MINUTE), (HOUR_SAMPLES, HOUR)):
        _store(connection, table, rolled_up(*given, width))


def rolled_up(
    windows: Iterable[tuple[int, Window]], prefills: Iterable[tuple[int, PrefillWindow]], width: int
) -> dict[Key, Values]:
    """What windows and prefills of streams add up to, by stream, stretch of ``width`` seconds and shape."""
    return _added_up(
        chain(
            (((stream_id, bucket_of(one.at, width), shape_of(one)), values_of(one)) for stream_id, one in windows),
            (((stream_id, bucket_of(one.at, width), NO_WINDOW), values_of_prefill(one)) for stream_id, one in prefills),
        )
    )


def _by_hour(parts: Mapping[Key, Values]) -> dict[Key, Values]:
    """What parts by minute add up to."""
    return _added_up(
        ((owner, bucket_of(minute, HOUR), shape), values) for (owner, minute, shape), values in parts.items()
    )


def bucket_of(at: float, width: int) -> int:
    """The beginning of the stretch that an instant lies in."""
    return int(at // width) * width


def _added_up(parts: Iterable[tuple[Key, Values]]) -> dict[Key, Values]:
    of_key: dict[Key, list[Values]] = {}
    for key, values in parts:
        of_key.setdefault(key, []).append(values)
    return {key: merged(several) for key, several in of_key.items()}


def _merge_into(connection: Connection, table: Table, parts: Mapping[Key, Values]) -> None:
    """Add parts to the rows that are there: in the database, but for counts by position, which are packed."""
    plain: dict[int, list[tuple[Any, ...]]] = {}
    packed: dict[Key, Values] = {}
    for key, values in parts.items():
        if values[-1] is None:
            plain.setdefault(key[2], []).append((*key, *values))
        else:
            packed[key] = values
    for alike in plain.values():  # they know the same figures
        _add_to_rows(connection, table, alike)
    if not packed:
        return
    owners = ", ".join({str(key[0]) for key in packed})
    first, last = min(key[1] for key in packed), max(key[1] for key in packed)
    stored = rows_of(
        connection,
        f"SELECT * FROM {table.name} "  # noqa: S608 - our names and numbers
        f"WHERE {table.columns.keys()[0]} IN ({owners}) AND bucket BETWEEN {first} AND {last}",
    )
    for row in stored:
        key = tuple(row[:3])
        if key in packed:
            packed[key] = merged([values_in(row), packed[key]])
    _store(connection, table, packed)


def _add_to_rows(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Add rows of one shape to those that are there, in the order of the table's columns; what none of them knows is left out."""
    columns = list(zip(*rows, strict=True))
    known = [number for number, column in enumerate(columns) if column.count(None) < len(rows)]
    names = table.columns.keys()
    statement = _adding(table, tuple(names[number] for number in known), connection.dialect.name == "postgresql")
    cursor = connection.connection.cursor()
    try:
        cursor.executemany(statement, list(zip(*(columns[number] for number in known), strict=True)))
    finally:
        cursor.close()


@lru_cache(maxsize=256)
def _adding(table: Table, names: tuple[str, ...], postgres: bool) -> str:
    """The statement that stores columns of a roll-up, or adds them to the row that is there; a figure that is NULL leaves the other."""
    words = {
        "table": table.name,
        "least": "least" if postgres else "min",
        "greatest": "greatest" if postgres else "max",
    }
    keys = table.primary_key.columns.keys()
    sums = (
        f"{name} = coalesce({_ADDED[_RULE_OF[name]].format(name=name, **words)}, {table.name}.{name}, excluded.{name})"
        for name in names
        if name not in keys
    )
    marks = ", ".join(["%s" if postgres else "?"] * len(names))
    return (
        f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({marks}) "  # noqa: S608 - our names
        f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET {', '.join(sums)}"
    )


def _store(connection: Connection, table: Table, parts: Mapping[Key, Values]) -> None:
    if parts:
        rows = [(*key, *values[:-1], pack_counts(values[-1])) for key, values in parts.items()]
        replace_rows(connection, table, rows)


def values_in(row: Sequence[Any]) -> Values:
    """What a stored roll-up holds."""
    return [*row[3:-1], unpack_counts(row[-1])]


# ---- reading


def long_window(shape: int, values: Values, unit: str) -> Window | None:
    """The window that a roll-up's windows add up to; gauges are their mean. ``None`` for prompts alone."""
    figures = dict(zip(_VALUE_NAMES, values, strict=True))
    number = figures["windows"]
    if shape == NO_WINDOW or not number:
        return None
    counts: dict[str, Any] = {name: figures[name] for name in COUNTS}
    means: dict[str, Any] = {name: None if figures[name] is None else figures[name] / number for name in GAUGES}
    return Window(
        position=round(figures["last_at"] * 1000),
        line=0,
        at=figures["last_at"],
        unit=unit,
        **counts,
        **means,
        graph=bool(shape & _GRAPH) if shape & _GRAPH_KNOWN else None,
        prefills=figures["prefills"],
        accepted_at=figures["accepted_at"],
        origin=origin_of(shape),
    )


def long_prefill(values: Values, unit: str) -> PrefillWindow | None:
    """The prompts that a roll-up's prefill batches add up to."""
    figures = dict(zip(_VALUE_NAMES, values, strict=True))
    if figures["new_tokens"] is None:
        return None
    at = figures["last_at"]
    return PrefillWindow(round(at * 1000), 0, at, unit, figures["new_tokens"], figures["cached_tokens"])


def origin_of(shape: int) -> Origin:
    """Where the windows of a shape come from."""
    return ORIGINS[shape & 3]


def old_rollups(
    connection: Connection, stream_ids: Sequence[int], raw_from: Mapping[int, float], minutes_from: int | None = None
) -> Iterator[tuple[int, int, Values]]:
    """What is known of streams from before their raw windows: stream, shape and values.

    By minute, and by hour from before the first minute. ``raw_from`` is the instant of the first raw
    window of each stream that still has one; what lies before ``minutes_from`` is read by hour.
    """
    finer = dict(raw_from)
    for table, width in ((MINUTE_SAMPLES, MINUTE), (HOUR_SAMPLES, HOUR)):
        columns = table.c
        first = select(columns.stream_id, func.min(columns.bucket)).where(columns.stream_id.in_(stream_ids))
        since = minutes_from if width == MINUTE else None
        if since is not None:
            first = first.where(columns.bucket >= since)
        begins: dict[int, float] = dict(connection.execute(first.group_by(columns.stream_id)).all())
        for stream_id in begins:
            query = select(table).where(columns.stream_id == stream_id).order_by(columns.bucket)
            if since is not None:
                query = query.where(columns.bucket >= since)
            if stream_id in finer:
                query = query.where(columns.bucket < bucket_of(finer[stream_id], width))
            for row in connection.execute(query):
                yield stream_id, row.shape, values_in(row)
        finer |= begins
