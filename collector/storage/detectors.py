"""Closed minutes of watched runs and of their fleets, and where the detectors that take them in stand.

What is stored of a detector is its business (:mod:`analysis.watching`); here it is a document. It is written in
the transaction that reads it, so that several programs that judge take in each minute once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from sqlalchemy import Connection, Table, func, select
from sqlalchemy.dialects import postgresql, sqlite

from collector.domain.runs import Watched
from collector.domain.windows import Window
from collector.storage.live import groups_of
from collector.storage.tables import (
    FLEET_DETECTORS,
    FLEET_MINUTE_SAMPLES,
    GROUPS,
    LIVE_STREAMS,
    MINUTE_SAMPLES,
    RUN_DETECTORS,
    RUNS,
)
from collector.storage.tiers import MINUTE, long_window, values_in

ALIVE_SECONDS: Final = 600
"""A run of a fleet is alive while its last minute lies no longer than this behind the others'."""
_D: Final = RUN_DETECTORS.c


class Standing(NamedTuple):
    """How far minutes were taken in: the last one, and the document of the detectors."""

    bucket: int
    state: Mapping[str, Any]


def last_closed(connection: Connection, run_id: int) -> int | None:
    """The last minute of a watched run that another one followed; ``None`` where there is none."""
    columns = MINUTE_SAMPLES.c
    latest = (
        select(func.max(columns.bucket))
        .join_from(LIVE_STREAMS, MINUTE_SAMPLES, columns.stream_id == LIVE_STREAMS.c.id)
        .where(LIVE_STREAMS.c.run_id == run_id)
    )
    return _before(connection, latest)


def run_minutes(connection: Connection, run_id: int, *, after: int, last: int) -> list[Window]:
    """What a run did in each minute behind ``after`` up to ``last``: windows added up, by unit and by what they know."""
    columns = MINUTE_SAMPLES.c
    query = select(MINUTE_SAMPLES, LIVE_STREAMS.c.unit_id).join_from(
        LIVE_STREAMS, MINUTE_SAMPLES, columns.stream_id == LIVE_STREAMS.c.id
    )
    query = query.where(LIVE_STREAMS.c.run_id == run_id, columns.bucket > after, columns.bucket <= last)
    rows = connection.execute(query.order_by(columns.bucket)).all()
    return [window for row in rows if (window := long_window(row.shape, values_in(row[:-1]), str(row.unit_id)))]


def last_closed_of_fleet(connection: Connection, group_id: int) -> int | None:
    """The last minute of a fleet that is over for all its runs: two others began since. ``None`` where there is none."""
    columns = FLEET_MINUTE_SAMPLES.c
    closed = _before(connection, select(func.max(columns.bucket)).where(columns.group_id == group_id))
    return None if closed is None else closed - MINUTE


def fleet_minutes(connection: Connection, group_id: int, *, after: int, last: int) -> list[Window]:
    """What all runs of a group did in each minute behind ``after`` up to ``last``."""
    columns = FLEET_MINUTE_SAMPLES.c
    query = select(FLEET_MINUTE_SAMPLES).where(columns.group_id == group_id, columns.bucket > after)
    rows = connection.execute(query.where(columns.bucket <= last).order_by(columns.bucket)).all()
    return [window for row in rows if (window := long_window(row.shape, values_in(row), ""))]


def group_of(connection: Connection, run_id: int) -> int:
    """The group of a run, stored on first sight."""
    return groups_of(connection, [run_id])[run_id]


def run_standing(connection: Connection, run_id: int) -> Standing | None:
    """How far a run's minutes were taken in; ``None`` where none was."""
    row = connection.execute(select(_D.bucket, _D.state).where(_D.run_id == run_id)).one_or_none()
    return None if row is None else Standing(row.bucket, row.state)


def fleet_standing(connection: Connection, group_id: int) -> Standing | None:
    """How far a fleet's minutes were taken in; ``None`` where none was."""
    columns = FLEET_DETECTORS.c
    row = connection.execute(select(columns.bucket, columns.state).where(columns.group_id == group_id)).one_or_none()
    return None if row is None else Standing(row.bucket, row.state)


def save_run_standing(
    connection: Connection, run_id: int, group_id: int, standing: Standing, recent: Mapping[str, Any]
) -> None:
    """Store how far a run's minutes were taken in."""
    _replace(
        connection, RUN_DETECTORS, run_id=run_id, group_id=group_id, bucket=standing.bucket, state=dict(standing.state),
        recent=dict(recent),
    )  # fmt: skip


def save_fleet_standing(connection: Connection, group_id: int, standing: Standing) -> None:
    """Store how far a fleet's minutes were taken in."""
    _replace(connection, FLEET_DETECTORS, group_id=group_id, bucket=standing.bucket, state=dict(standing.state))


def alive_runs(connection: Connection, group_id: int, at: int) -> dict[int, tuple[str, Mapping[str, Any]]]:
    """The runs of a group that are alive at an instant, by id: where each runs, and its acceptance of late."""
    runs = RUNS.c
    query = (
        select(runs.id, runs.host, runs.port, runs.source, _D.recent)
        .join_from(RUN_DETECTORS, RUNS, runs.id == _D.run_id)
        .where(_D.group_id == group_id, _D.bucket.between(at - ALIVE_SECONDS, at + ALIVE_SECONDS))
        .order_by(runs.id)
    )
    return {
        row.id: (f"{row.host}:{row.port}" if row.host and row.port else row.source, row.recent)
        for row in connection.execute(query)
    }


def load_watched(connection: Connection, run_id: int) -> Watched | None:
    """What is kept of a watched run beside its windows; ``None`` where nothing was taken in so far."""
    query = (
        select(_D.bucket, _D.state, _D.group_id, GROUPS.c.name)
        .join_from(RUN_DETECTORS, GROUPS, GROUPS.c.id == _D.group_id)
        .where(_D.run_id == run_id)
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    alive = alive_runs(connection, row.group_id, row.bucket)  # of two at one place the later one
    fleet = fleet_standing(connection, row.group_id)
    return Watched(
        place=alive[run_id][0],
        state=row.state,
        recent={**dict(alive.values()), **dict([alive[run_id]])},
        fleet=row.name,
        fleet_state={} if fleet is None else fleet.state,
        leads=len(alive) > 1 and run_id == min(alive),
    )


def _before(connection: Connection, latest: Any) -> int | None:
    """The minute before the latest one, where there is one at all."""
    found = connection.execute(latest).scalar_one()
    return None if found is None else int(found) - MINUTE


def _replace(connection: Connection, table: Table, **values: Any) -> None:
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    keys = [column.name for column in table.primary_key.columns]
    statement = dialect.insert(table).values(values)
    changing = {name: statement.excluded[name] for name in values if name not in keys}
    connection.execute(statement.on_conflict_do_update(index_elements=keys, set_=changing))
