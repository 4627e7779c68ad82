"""Sources: which bytes were read, how far, and what was made of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, Row, delete, insert, select, update

from collector.domain.runs import Reading, UnreadShape
from collector.storage.bulk import insert_or_keep
from collector.storage.documents import from_document, to_document
from collector.storage.lines import forget_unused_lines
from collector.storage.tables import (
    DECODE_SAMPLES,
    HOUR_SAMPLES,
    LIVE_STREAMS,
    MINUTE_SAMPLES,
    PREFILL_SAMPLES,
    RUN_EVENTS,
    RUN_SOURCES,
    SOURCES,
)

_COUNTS = ("lines", "engine_lines", "understood", "unread", "torn_samples", "oversize_lines")


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a source is stored.

    Everything before ``byte_offset`` is stored. What was read behind ``firm_offset`` may read
    otherwise once more follows: the end of a log decides for what was held back. ``complete`` says
    that ``byte_offset`` was the end when it was read. ``head_digest`` is
    of the first ``head_length`` bytes, ``tail_digest`` of the last bytes before ``byte_offset``
    (see :mod:`collector.ingest`), ``options`` of what was stated about the source.
    """

    byte_offset: int = 0
    firm_offset: int = 0
    complete: bool = False
    head_digest: str = ""
    head_length: int = 0
    tail_digest: str = ""
    options: str = ""


@dataclass(frozen=True, slots=True)
class StoredSource:
    """A source with its checkpoint and reading."""

    id: int
    path: str
    checkpoint: Checkpoint
    reading: Reading


def add_source(connection: Connection, path: str, reading: Reading, *, at: float) -> int:
    """Store a new source of which nothing is stored yet; returns its id."""
    values = {"path": path, "read_at": at, **_checkpoint(Checkpoint()), **_reading(reading)}
    return int(connection.execute(insert(SOURCES).values(values).returning(SOURCES.c.id)).scalar_one())


def source_at(connection: Connection, address: str, *, at: float) -> int:
    """The id of a source that is no file (an endpoint), stored on first sight."""
    query = select(SOURCES.c.id).where(SOURCES.c.path == address).order_by(SOURCES.c.id.desc()).limit(1)
    found = connection.execute(query).scalar_one_or_none()
    return add_source(connection, address, Reading(address), at=at) if found is None else int(found)


def find_sources(connection: Connection, path: str) -> list[StoredSource]:
    """All sources last read under this path, the latest first."""
    query = select(SOURCES).where(SOURCES.c.path == path).order_by(SOURCES.c.read_at.desc(), SOURCES.c.id.desc())
    return [_stored(row) for row in connection.execute(query)]


def sources_with_head(connection: Connection, head_digest: str) -> list[StoredSource]:
    """All sources that begin with the same bytes, the latest first: copies and renamed files."""
    query = select(SOURCES).where(SOURCES.c.head_digest == head_digest)
    return [_stored(row) for row in connection.execute(query.order_by(SOURCES.c.read_at.desc(), SOURCES.c.id.desc()))]


def save_progress(
    connection: Connection, source_id: int, checkpoint: Checkpoint, reading: Reading, *, path: str, at: float
) -> None:
    """Note how far a source is stored; belongs into the transaction that stores its rows."""
    values = {"path": path, "read_at": at, **_checkpoint(checkpoint), **_reading(reading)}
    connection.execute(update(SOURCES).where(SOURCES.c.id == source_id).values(values))


def forget_from(connection: Connection, source_id: int, offset: int, *, all_events: bool = False) -> None:
    """Delete what was read of a source at or behind an offset, and its provisional (or all) events.

    The source is about to be read from its beginning: what its windows were added up to is deleted as well, because
    all of them come again.
    """
    added_up = LIVE_STREAMS.c.source_id == source_id
    for table in (MINUTE_SAMPLES, HOUR_SAMPLES):
        connection.execute(delete(table).where(table.c.stream_id.in_(select(LIVE_STREAMS.c.id).where(added_up))))
    connection.execute(delete(LIVE_STREAMS).where(added_up))
    runs = [run_id for _, run_id in runs_of_source(connection, source_id)]
    for table in (DECODE_SAMPLES, PREFILL_SAMPLES):
        columns = table.c
        behind = columns.run_id.in_(runs), columns.source_id == source_id, columns.position >= offset
        connection.execute(delete(table).where(*behind))
    statement = delete(RUN_EVENTS).where(RUN_EVENTS.c.run_id.in_(runs), RUN_EVENTS.c.source_id == source_id)
    connection.execute(statement if all_events else statement.where(RUN_EVENTS.c.provisional))
    forget_unused_lines(connection, runs)


def attach_source(connection: Connection, run_id: int, source_id: int, *, ordinal: int = 0) -> None:
    """Note that a source tells of a run: its ``ordinal``-th, from 0."""
    row = {"source_id": source_id, "ordinal": ordinal, "run_id": run_id}
    connection.execute(insert_or_keep(connection, RUN_SOURCES), row)


def runs_of_source(connection: Connection, source_id: int) -> list[tuple[int, int]]:
    """The runs a source tells of, in their order there: ordinal and id."""
    columns = RUN_SOURCES.c
    query = select(columns.ordinal, columns.run_id).where(columns.source_id == source_id).order_by(columns.ordinal)
    return [(row.ordinal, row.run_id) for row in connection.execute(query)]


def ordinal_in_source(connection: Connection, source_id: int, run_id: int) -> int:
    """The place of a run in a source that tells of it, else the next one there."""
    known = runs_of_source(connection, source_id)
    return next((ordinal for ordinal, other in known if other == run_id), known[-1][0] + 1 if known else 0)


def sources_of_run(connection: Connection, run_id: int) -> list[StoredSource]:
    """The sources that tell of a run."""
    of_run = select(RUN_SOURCES.c.source_id).where(RUN_SOURCES.c.run_id == run_id)
    query = select(SOURCES).where(SOURCES.c.id.in_(of_run)).order_by(SOURCES.c.id)
    return [_stored(row) for row in connection.execute(query)]


def load_readings(connection: Connection, run_id: int) -> list[Reading]:
    """What was made of each source of a run."""
    return [source.reading for source in sources_of_run(connection, run_id)]


def _checkpoint(checkpoint: Checkpoint) -> dict[str, Any]:
    return {name: getattr(checkpoint, name) for name in Checkpoint.__slots__}


def _reading(reading: Reading) -> dict[str, Any]:
    counts = {name: getattr(reading, name) for name in _COUNTS}
    texts = {"name": reading.source, "role": reading.role, "kind": reading.kind}
    return {**texts, **counts, "notes": list(reading.notes), "unread_shapes": to_document(reading.unread_shapes)}


def _stored(row: Row[Any]) -> StoredSource:
    shapes = tuple(from_document(UnreadShape, shape) for shape in row.unread_shapes)
    counts = {name: getattr(row, name) for name in _COUNTS}
    reading = Reading(row.name, row.role, row.kind, **counts, unread_shapes=shapes, notes=tuple(row.notes))
    checkpoint = Checkpoint(**{name: getattr(row, name) for name in Checkpoint.__slots__})
    return StoredSource(row.id, row.path, checkpoint, reading)
