"""Windows of watched engines: stored raw and in roll-ups at once, and read back as fine as they still are."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, func, select

from collector.domain.windows import Origin, PrefillWindow, Window
from collector.storage.bulk import add_rows, insert_or_keep, rows_of
from collector.storage.packing import pack_figures, unpack_figures
from collector.storage.partitions import make_room
from collector.storage.tables import (
    FLEET_HOUR_SAMPLES,
    FLEET_MINUTE_SAMPLES,
    GROUPS,
    HOUR_SAMPLES,
    LIVE_SAMPLES,
    LIVE_STREAMS,
    MINUTE_SAMPLES,
)
from collector.storage.tiers import add_to_rollups, long_prefill, long_window, old_rollups, origin_of
from collector.storage.types import storable
from collector.storage.units import unit_ids, unit_names

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


class Stream(NamedTuple):
    """A unit of a run that is watched at an address."""

    id: int
    run_id: int
    source_id: int
    unit_id: int


def append_live(
    connection: Connection,
    run_id: int,
    source_id: int,
    windows: Sequence[Window],
    prefills: Sequence[PrefillWindow],
) -> int:
    """Add windows and prefills of a watched engine that are not there yet; returns how many windows were.

    Their identity is run, source, unit, instant and position.
    """
    items: list[Window | PrefillWindow] = [*windows, *prefills]
    if not items:
        return 0
    ids = _stream_ids(connection, run_id, source_id, {item.unit for item in items})
    instants = [item.at for item in items]
    first, last = min(instants), max(instants)
    make_room(connection, _TIERS, (first, last))
    stored = rows_of(
        connection,
        "SELECT stream_id, at, place FROM live_samples "  # noqa: S608 - numbers
        f"WHERE stream_id IN ({', '.join(map(str, ids.values()))}) AND at BETWEEN {first!r} AND {last!r}",
    )
    known = set(stored)

    def new(given: Sequence[Any]) -> dict[tuple[int, float, int], Any]:
        keys = ((ids[item.unit], item.at, item.position - _usual_position(item.at)) for item in given)
        return {key: item for key, item in zip(keys, given, strict=True) if key not in known}

    new_windows, new_prefills = new(windows), new(prefills)
    rows = [
        (*key, pack_figures(new_windows.get(key), new_prefills.get(key))) for key in {**new_windows, **new_prefills}
    ]
    add_rows(connection, LIVE_SAMPLES, rows)
    add_to_rollups(
        connection,
        _group_of(connection, run_id),
        [(key[0], window) for key, window in new_windows.items()],
        [(key[0], prefill) for key, prefill in new_prefills.items()],
    )
    return len(new_windows)


def _usual_position(at: float) -> int:
    return round(at * 1000)


def _stream_ids(connection: Connection, run_id: int, source_id: int, units: Collection[str]) -> Mapping[str, int]:
    """The streams of units by name, stored on first sight."""
    query = (
        "SELECT units.name, live_streams.id FROM live_streams JOIN units ON units.id = live_streams.unit_id "  # noqa: S608 - numbers
        f"WHERE live_streams.run_id = {run_id} AND live_streams.source_id = {source_id}"
    )
    names = {unit: storable(unit) for unit in units}
    known: dict[str, int] = dict(rows_of(connection, query))
    if not known.keys() >= set(names.values()):
        rows = [
            {"run_id": run_id, "source_id": source_id, "unit_id": unit_id}
            for unit_id in sorted(set(unit_ids(connection, units).values()))
        ]
        connection.execute(insert_or_keep(connection, LIVE_STREAMS), rows)
        known = dict(rows_of(connection, query))
    return {unit: known[name] for unit, name in names.items()}


def _group_of(connection: Connection, run_id: int) -> int:
    """What runs of one group have in common: the deployment's name, else engine, model, draft and method."""
    found = rows_of(
        connection,
        "SELECT deployment, engine, served_model, target_model, draft_model, method FROM runs "  # noqa: S608 - a number
        f"WHERE id = {run_id}",
    )
    deployment, engine, served, target, draft, method = found[0]
    name = deployment or " ".join(part for part in (engine, served or target, draft, method) if part)
    query = select(GROUPS.c.id).where(GROUPS.c.name == name)
    group_id = connection.execute(query).scalar_one_or_none()
    if group_id is None:
        connection.execute(insert_or_keep(connection, GROUPS), {"name": name})
        group_id = connection.execute(query).scalar_one()
    return int(group_id)


# ---- reading


def streams_of(connection: Connection, run_ids: Sequence[int]) -> dict[int, Stream]:
    """All that is watched of runs, by the stream's id."""
    query = select(LIVE_STREAMS).where(_STREAMS.run_id.in_(run_ids)).order_by(_STREAMS.id)
    return {row.id: Stream(*row) for row in connection.execute(query)}


def live_windows(connection: Connection, run_ids: Sequence[int]) -> list[Placed]:
    """The windows of watched engines: raw ones, and before those the long ones that they were added up to."""
    return _live(connection, run_ids)[0]


def live_prefills(connection: Connection, run_ids: Sequence[int]) -> list[Placed]:
    """The prefill batches of watched engines, likewise."""
    return _live(connection, run_ids)[1]


def _live(connection: Connection, run_ids: Sequence[int]) -> tuple[list[Placed], list[Placed]]:
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

    for stream_id, at, place, figures in connection.execute(select(LIVE_SAMPLES).where(_LIVE.stream_id.in_(streams))):
        stream = streams[stream_id]
        raw_from[stream_id] = min(raw_from.get(stream_id, at), at)
        add(stream, *unpack_figures(figures, _usual_position(at) + place, at, names[stream.unit_id]))
    for stream_id, shape, values in old_rollups(connection, list(streams), raw_from):
        stream = streams[stream_id]
        unit = names[stream.unit_id]
        add(stream, long_window(shape, values, unit), long_prefill(values, unit))
    return windows, prefills


def last_live_window(connection: Connection, run_id: int, source_id: int) -> float | None:
    """The instant of the last window that a source told of a run, also where it is no longer stored raw."""
    hours = HOUR_SAMPLES.c
    query = (
        select(func.max(hours.last_at))
        .join_from(LIVE_STREAMS, HOUR_SAMPLES, hours.stream_id == _STREAMS.id)
        .where(_STREAMS.run_id == run_id, _STREAMS.source_id == source_id, hours.windows > 0)
    )
    found: float | None = connection.execute(query).scalar_one()
    return found


def counted_steps(
    connection: Connection, run_id: int, source_id: int, origin: Origin
) -> Mapping[str, tuple[float, float]]:
    """Verify steps and accepted tokens that a source counted of a run, summed by unit; units without any are left out."""
    hours = HOUR_SAMPLES.c
    query = (
        select(_STREAMS.unit_id, hours.shape, func.sum(hours.verify_steps), func.sum(hours.accepted_tokens))
        .join_from(LIVE_STREAMS, HOUR_SAMPLES, hours.stream_id == _STREAMS.id)
        .where(_STREAMS.run_id == run_id, _STREAMS.source_id == source_id)
        .where(hours.windows > 0, hours.verify_steps.is_not(None))
        .group_by(_STREAMS.unit_id, hours.shape)
    )
    units = unit_names(connection)
    found: dict[str, tuple[float, float]] = {}
    for unit_id, shape, steps, accepted in connection.execute(query):
        if origin_of(shape) is origin:
            before = found.get(units[unit_id], (0.0, 0.0))
            found[units[unit_id]] = before[0] + steps, before[1] + (accepted or 0.0)
    return found


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
