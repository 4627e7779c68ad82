"""Windows of watched engines: stored raw and in roll-ups at once, and read back as fine as they still are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Any, Final, NamedTuple, TypeVar

from sqlalchemy import Connection, func, select

from collector.domain.windows import PrefillWindow, Window
from collector.storage.bulk import add_rows, insert_or_keep, rows_of
from collector.storage.packing import pack_figures, unpack_figures
from collector.storage.partitions import DAY, make_room
from collector.storage.tables import (
    FLEET_HOUR_SAMPLES,
    FLEET_MINUTE_SAMPLES,
    GROUPS,
    HOUR_SAMPLES,
    LIVE_SAMPLES,
    LIVE_STREAMS,
    MINUTE_SAMPLES,
    SOURCES,
)
from collector.storage.tiers import HOUR, add_to_rollups, bucket_of, long_prefill, long_window, old_rollups
from collector.storage.types import storable
from collector.storage.units import unit_ids, unit_names

_Item = TypeVar("_Item", Window, PrefillWindow)
_LIVE: Final = LIVE_SAMPLES.c
_STREAMS: Final = LIVE_STREAMS.c
_TIERS: Final = (LIVE_SAMPLES, MINUTE_SAMPLES, HOUR_SAMPLES, FLEET_MINUTE_SAMPLES, FLEET_HOUR_SAMPLES)


class Placed(NamedTuple):
    """A window or prefill batch of a run, with what orders it among others."""

    run_id: int
    source_id: int
    position: int
    at: float
    unit_id: int
    what: Any


class Fineness(NamedTuple):
    """How far back from the last instant of a run its windows are read as they are, and how far by minute; before that by hour.

    Counts are the same however they are read.
    """

    raw_seconds: float
    minute_seconds: float


JUDGED: Final = Fineness(2 * HOUR, 24 * HOUR)
"""What a judgement needs, so that one of a run that is watched for months takes no longer than one of a week."""


class Stream(NamedTuple):
    """A unit of a run that is watched at an address."""

    id: int
    run_id: int
    source_id: int
    unit_id: int


class Seen(NamedTuple):
    """What was seen of a run at an address since it was last looked at."""

    run_id: int
    source_id: int
    windows: Sequence[Window]
    prefills: Sequence[PrefillWindow]

    @property
    def items(self) -> list[Window | PrefillWindow]:
        """Windows and prefills."""
        return [*self.windows, *self.prefills]


def append_live(connection: Connection, seen: Sequence[Seen]) -> int:
    """Add windows and prefills of watched engines that are not there yet; returns how many windows were.

    Their identity is run, source, unit, instant and position.
    """
    seen = [one for one in seen if one.windows or one.prefills]
    instants = [item.at for one in seen for item in one.items]
    if not instants:
        return 0
    ids = _stream_ids(connection, seen)
    first, last = min(instants), max(instants)
    make_room(connection, _TIERS, {at // DAY * DAY for at in instants})
    known = set(
        rows_of(
            connection,
            "SELECT stream_id, at, place FROM live_samples "  # noqa: S608 - numbers
            f"WHERE stream_id IN ({_listed(set(ids.values()))}) AND at BETWEEN {first!r} AND {last!r}",
        )
    )

    def new(one: Seen, items: Iterable[_Item]) -> Iterator[tuple[tuple[int, float, int], _Item]]:
        for item in items:
            key = ids[one.run_id, one.source_id, item.unit], item.at, item.position - _usual_position(item.at)
            if key not in known:
                yield key, item

    new_windows = dict(chain.from_iterable(new(one, one.windows) for one in seen))
    new_prefills = dict(chain.from_iterable(new(one, one.prefills) for one in seen))
    rows = [
        (*key, pack_figures(new_windows.get(key), new_prefills.get(key))) for key in {**new_windows, **new_prefills}
    ]
    add_rows(connection, LIVE_SAMPLES, rows)
    groups = groups_of(connection, {one.run_id for one in seen})
    add_to_rollups(
        connection,
        {stream_id: groups[run_id] for (run_id, _, _), stream_id in ids.items()},
        [(key[0], window) for key, window in new_windows.items()],
        [(key[0], prefill) for key, prefill in new_prefills.items()],
    )
    return len(new_windows)


def _usual_position(at: float) -> int:
    return round(at * 1000)


def _listed(ids: Iterable[int]) -> str:
    return ", ".join(map(str, ids))


def _stream_ids(connection: Connection, seen: Sequence[Seen]) -> Mapping[tuple[int, int, str], int]:
    """The streams by run, source and unit, stored on first sight."""
    query = (
        "SELECT live_streams.run_id, live_streams.source_id, units.name, live_streams.id "  # noqa: S608 - numbers
        "FROM live_streams JOIN units ON units.id = live_streams.unit_id "
        f"WHERE live_streams.run_id IN ({_listed({one.run_id for one in seen})})"
    )
    wanted = {(one.run_id, one.source_id, item.unit): storable(item.unit) for one in seen for item in one.items}
    known = {tuple(row[:3]): row[3] for row in rows_of(connection, query)}
    fresh = {
        (run, source, unit): name for (run, source, unit), name in wanted.items() if (run, source, name) not in known
    }
    if fresh:
        units = unit_ids(connection, {unit for _, _, unit in fresh})
        rows = [{"run_id": run, "source_id": source, "unit_id": units[unit]} for run, source, unit in fresh]
        connection.execute(insert_or_keep(connection, LIVE_STREAMS), rows)
        known = {tuple(row[:3]): row[3] for row in rows_of(connection, query)}
    return {(run, source, unit): known[run, source, name] for (run, source, unit), name in wanted.items()}


def groups_of(connection: Connection, run_ids: Collection[int]) -> dict[int, int]:
    """The group of each run, stored on first sight: the deployment's name, else engine, model, draft and method."""
    found = rows_of(
        connection,
        "SELECT id, deployment, engine, served_model, target_model, draft_model, method FROM runs "  # noqa: S608 - numbers
        f"WHERE id IN ({_listed(run_ids)})",
    )
    names = {
        run_id: group_name(deployment, engine, served, target, draft, method)
        for run_id, deployment, engine, served, target, draft, method in found
    }
    query = f"SELECT name, id FROM {GROUPS.name}"  # noqa: S608 - our name
    known = dict(rows_of(connection, query))
    if fresh := sorted(set(names.values()) - known.keys()):
        connection.execute(insert_or_keep(connection, GROUPS), [{"name": name} for name in fresh])
        known = dict(rows_of(connection, query))
    return {run_id: known[name] for run_id, name in names.items()}


def group_name(deployment: str | None, engine: str, served: str, target: str, draft: str, method: str | None) -> str:
    """The group that a watched run belongs to."""
    return deployment or " ".join(part for part in (engine, served or target, draft, method) if part)


# ---- reading


def watched_runs(connection: Connection) -> set[int]:
    """The runs that live metrics were read for; those of logs that were added up (byte_offset) belong to no group."""
    query = select(_STREAMS.run_id).join_from(LIVE_STREAMS, SOURCES, SOURCES.c.id == _STREAMS.source_id)
    return set(connection.execute(query.where(SOURCES.c.byte_offset == 0).distinct()).scalars())


def streams_of(connection: Connection, run_ids: Sequence[int]) -> dict[int, Stream]:
    """All that is watched of runs, by the stream's id."""
    query = select(LIVE_STREAMS).where(_STREAMS.run_id.in_(run_ids)).order_by(_STREAMS.id)
    return {row.id: Stream(*row) for row in connection.execute(query)}


def live_samples(
    connection: Connection, run_ids: Sequence[int], fineness: Fineness | None = None
) -> tuple[list[Placed], list[Placed]]:
    """Windows and prefill batches of watched engines: raw ones, and before those the long ones that they add up to.

    ``fineness`` says how far back raw ones and those by minute are read; without it, as far as they are kept.
    """
    streams = streams_of(connection, run_ids)
    windows: list[Placed] = []
    prefills: list[Placed] = []
    if not streams:
        return windows, prefills
    names = unit_names(connection)
    raw_from: dict[int, float] = {}

    def add(stream: Stream, window: Window | None, prefill: PrefillWindow | None) -> None:
        for found, item in ((windows, window), (prefills, prefill)):
            if item is not None:
                found.append(Placed(stream.run_id, stream.source_id, item.position, item.at, stream.unit_id, item))

    raw = select(LIVE_SAMPLES).where(_LIVE.stream_id.in_(streams))
    minutes_from = None
    if fineness is not None and (last := _last_at(connection, streams)) is not None:
        raw = raw.where(_LIVE.at >= bucket_of(last - fineness.raw_seconds, HOUR))
        minutes_from = bucket_of(last - fineness.minute_seconds, HOUR)
    for stream_id, at, place, figures in connection.execute(raw):
        stream = streams[stream_id]
        raw_from[stream_id] = min(raw_from.get(stream_id, at), at)
        add(stream, *unpack_figures(figures, _usual_position(at) + place, at, names[stream.unit_id]))
    for stream_id, shape, values in old_rollups(connection, list(streams), raw_from, minutes_from):
        stream = streams[stream_id]
        unit = names[stream.unit_id]
        add(stream, long_window(shape, values, unit), long_prefill(values, unit))
    return windows, prefills


def _last_at(connection: Connection, stream_ids: Collection[int]) -> float | None:
    """The last instant of some streams."""
    hours = HOUR_SAMPLES.c
    query = select(func.max(hours.last_at)).where(hours.stream_id.in_(stream_ids))
    last: float | None = connection.execute(query).scalar_one()
    return last


def mean_live_requests(connection: Connection, run_id: int) -> float | None:
    """Running requests averaged over windows with any; ``None`` where none says."""
    hours = HOUR_SAMPLES.c
    query = (
        select(func.sum(hours.running_requests) / func.sum(hours.windows))
        .join_from(LIVE_STREAMS, HOUR_SAMPLES, hours.stream_id == _STREAMS.id)
        .where(_STREAMS.run_id == run_id, hours.running_requests > 0)
    )
    value = connection.execute(query).scalar_one()
    return None if value is None else float(value)
