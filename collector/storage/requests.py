"""Request results of a run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Final

from sqlalchemy import Connection, delete, func, select

from collector.domain.requests import RequestResult
from collector.storage.bulk import add_rows
from collector.storage.packing import pack_counts, unpack_counts
from collector.storage.tables import REQUEST_RESULTS, RUNS
from collector.storage.types import storable

_PLAIN: Final = tuple(field.name for field in fields(RequestResult) if field.name not in ("engine", "histogram"))
"""Fields that are columns of the same name; the engine is the run's."""


def append_requests(connection: Connection, run_id: int, source_id: int, results: Sequence[RequestResult]) -> int:
    """Add results that are not there yet; returns how many were. A result's identity is its run and key."""
    names = [column.name for column in REQUEST_RESULTS.columns]
    rows = []
    for result in results:
        values = {name: getattr(result, name) for name in _PLAIN}
        values |= {"run_id": run_id, "source_id": source_id, "route": storable(result.route)}
        values["histogram"] = pack_counts(result.histogram)
        rows.append(tuple(values[name] for name in names))
    return add_rows(connection, REQUEST_RESULTS, rows)


def load_requests(connection: Connection, run_id: int) -> list[RequestResult]:
    """The request results of a run in the order of their sources."""
    columns = REQUEST_RESULTS.c
    query = (
        select(RUNS.c.engine, REQUEST_RESULTS)
        .join_from(REQUEST_RESULTS, RUNS, columns.run_id == RUNS.c.id)
        .where(columns.run_id == run_id)
        .order_by(columns.source_id, columns.line, columns.key)
    )
    return [
        RequestResult(
            engine=row.engine,
            histogram=_whole(unpack_counts(row.histogram)),
            **{name: getattr(row, name) for name in _PLAIN},
        )
        for row in connection.execute(query)
    ]


def _whole(counts: Sequence[float] | None) -> tuple[int, ...] | None:
    return None if counts is None else tuple(map(int, counts))


def count_requests(connection: Connection, run_id: int) -> int:
    """How many request results a run has."""
    query = select(func.count()).select_from(REQUEST_RESULTS).where(REQUEST_RESULTS.c.run_id == run_id)
    return int(connection.execute(query).scalar_one())


def forget_requests(connection: Connection, run_ids: Sequence[int], source_id: int) -> None:
    """Delete what a source told of the requests of some runs."""
    columns = REQUEST_RESULTS.c
    connection.execute(delete(REQUEST_RESULTS).where(columns.run_id.in_(run_ids), columns.source_id == source_id))
