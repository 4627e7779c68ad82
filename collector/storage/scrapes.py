"""What earlier scrapes of an endpoint left: where to go on, and storing the next one after just that."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Final, NamedTuple

from sqlalchemy import Column, Connection, and_, bindparam, delete, select, update

from collector.domain.arguments import Value
from collector.domain.results import Latency
from collector.domain.runs import RunRecord
from collector.domain.series import SeriesSample
from collector.domain.windows import PrefillWindow, Window
from collector.storage.bulk import digest_of, insert_or_keep, replace_rows, rows_of
from collector.storage.documents import to_document
from collector.storage.live import Seen, append_live
from collector.storage.packing import pack_doubles, unpack_doubles
from collector.storage.runs import run_of_source, save_run
from collector.storage.sources import ordinal_in_source, source_at
from collector.storage.tables import ARGUMENTS, RUN_SOURCES, RUNS, SCRAPE_SERIES, SCRAPE_STATES, SOURCES
from collector.storage.types import Instant, dump_json
from collector.storage.windows import append_series, append_values

_SOURCES_AT: Final = (
    select(SOURCES.c.path, SOURCES.c.id, SOURCES.c.read_at)
    .where(SOURCES.c.path.in_(bindparam("addresses", expanding=True)))
    .order_by(SOURCES.c.id)
)
_WITH_LATENCIES: Final = update(RUNS).where(RUNS.c.id == bindparam("run")).values(latencies=bindparam("figures"))


class Overtaken(Exception):  # noqa: N818 - named for what is wrong
    """Another program stored a scrape of the same endpoint meanwhile."""


class SeriesDocument(NamedTuple):
    """The series of a page: name and labels of each, and the digest of them all."""

    digest: str
    series: tuple[tuple[str, Mapping[str, str]], ...]

    @classmethod
    def of(cls, series: Iterable[tuple[str, Mapping[str, str]]]) -> SeriesDocument:
        """Of series in their order."""
        listed = tuple((name, dict(labels)) for name, labels in series)
        return cls(digest_of(listed), listed)


class ScrapeState(NamedTuple):
    """Where an engine stands: the values of its series, and the instant at which its next window begins.

    ``counted`` are the verify steps and accepted tokens of each unit since the start of the process.
    """

    at: float
    series: SeriesDocument
    values: Sequence[float]
    counted: Mapping[str, tuple[float, float]]


class LastScrape(NamedTuple):
    """The last scrape of an endpoint: its run, and where it ended."""

    run_id: int
    state: ScrapeState


@dataclass(frozen=True, slots=True)
class Continued:
    """The next scrape of a process that is stored already: windows, where it stands, and values of its series.

    ``after`` is as in :func:`save_scrape`; ``latencies`` are ``None`` where they stay as they are; ``values`` are rows of
    series id, instant and value.
    """

    source_id: int
    run_id: int
    after: float
    at: float
    windows: Sequence[Window]
    prefills: Sequence[PrefillWindow]
    state: ScrapeState
    latencies: Mapping[str, Latency] | None = None
    values: Sequence[tuple[int, float, float]] = ()


def last_scrape(connection: Connection, address: str) -> LastScrape | None:
    """The last scrape that was stored of an endpoint."""
    states = SCRAPE_STATES.c
    query = (
        select(
            states.run_id, states.at, states.figures, states.counted, SCRAPE_SERIES.c.digest, SCRAPE_SERIES.c.document
        )
        .join_from(SCRAPE_STATES, SCRAPE_SERIES)
        .join(SOURCES, SOURCES.c.id == states.source_id)
        .where(SOURCES.c.path == address)
        .order_by(states.source_id.desc())
        .limit(1)
    )
    row = connection.execute(query).one_or_none()
    if row is None:
        return None
    series = SeriesDocument(row.digest, tuple((name, labels) for name, labels in row.document))
    counted = {unit: (steps, accepted) for unit, (steps, accepted) in row.counted.items()}
    return LastScrape(row.run_id, ScrapeState(row.at, series, unpack_doubles(row.figures), counted))


def scraped_at(connection: Connection, address: str) -> float | None:
    """When the last scrape of an endpoint was stored, by whatever program; ``None`` where none was."""
    columns = SOURCES.c
    query = select(columns.read_at).where(columns.path == address).order_by(columns.id.desc()).limit(1)
    return connection.execute(query).scalar_one_or_none()


def read_sources(connection: Connection, addresses: Sequence[str]) -> dict[str, tuple[int, float]]:
    """The source of each endpoint: its id, and when its last scrape was stored."""
    rows = connection.execute(_SOURCES_AT, {"addresses": list(addresses)})
    return {path: (source_id, read_at) for path, source_id, read_at in rows}


def note_read(connection: Connection, address: str, at: float) -> int:
    """Note up to which instant a source that is no file was read; gives its id."""
    source_id = source_at(connection, address, at=at)
    connection.execute(update(SOURCES).where(SOURCES.c.id == source_id).values(read_at=at))
    return source_id


def save_scrape(
    connection: Connection,
    record: RunRecord,
    series: Iterable[SeriesSample] = (),
    *,
    address: str,
    after: float | None,
    run_id: int | None = None,
    deployment: str | None = None,
    state: ScrapeState | None = None,
    at: float,
) -> int:
    """Store what one scrape of an engine gave; returns the run's id.

    ``record`` says which run it is (engine, host, port, start) and holds the windows and arguments
    that were read, ``address`` names the endpoint. Where the host names no machine, a run is the
    same as long as its start is. ``run_id`` is the run where the caller knows it. ``after`` is what
    :func:`scraped_at` told when the windows were made: they begin where that scrape ended.

    Raises:
        Overtaken: a later scrape was stored since; nothing is stored of this one.
    """
    if scraped_at(connection, address) != after:
        raise Overtaken
    source_id = note_read(connection, address, at)
    ordinal = (
        run_of_source(connection, source_id, record.started_at)
        if run_id is None
        else ordinal_in_source(connection, source_id, run_id)
    )
    facts = replace(record, windows=[], prefills=[])
    run_id = save_run(
        connection, facts, source_id=source_id, ordinal=ordinal, run_id=run_id, deployment=deployment, at=at
    )
    append_live(connection, [Seen(run_id, source_id, record.windows, record.prefills)])
    append_series(connection, run_id, series)
    if state is not None:
        _save_states(connection, [(source_id, run_id, state)])
    return run_id


def save_continued(connection: Connection, scrapes: Sequence[Continued]) -> list[bool]:
    """Store scrapes of many engines at once; returns for each whether it was, or another program was faster."""
    if not scrapes:
        return []
    as_stored = partial(Instant().process_bind_param, dialect=connection.dialect)
    ids = ", ".join(str(scrape.source_id) for scrape in scrapes)
    known = dict(rows_of(connection, f"SELECT id, read_at FROM sources WHERE id IN ({ids})"))  # noqa: S608 - numbers
    taken = [known.get(scrape.source_id) == as_stored(scrape.after) for scrape in scrapes]
    stored = [scrape for scrape, is_next in zip(scrapes, taken, strict=True) if is_next]
    if not stored:
        return taken
    instants = [as_stored(scrape.at) for scrape in stored]
    _set(connection, SOURCES.c.read_at, zip(instants, (scrape.source_id for scrape in stored), strict=True))
    _set(connection, RUNS.c.ended_at, zip(instants, (scrape.run_id for scrape in stored), strict=True))
    measured = [
        {"run": scrape.run_id, "figures": to_document(scrape.latencies)} for scrape in stored if scrape.latencies
    ]
    if measured:
        connection.execute(_WITH_LATENCIES, measured)
    append_live(
        connection, [Seen(scrape.run_id, scrape.source_id, scrape.windows, scrape.prefills) for scrape in stored]
    )
    append_values(connection, [row for scrape in stored for row in scrape.values])
    _save_states(connection, [(scrape.source_id, scrape.run_id, scrape.state) for scrape in stored])
    return taken


def _set(connection: Connection, column: Column[float], values: Iterable[tuple[Any, int]]) -> None:
    """Set a column of rows by their id, to what the driver takes."""
    mark = "%s" if connection.dialect.name == "postgresql" else "?"
    cursor = connection.connection.cursor()
    try:
        cursor.executemany(
            f"UPDATE {column.table.name} SET {column.name} = {mark} WHERE id = {mark}",  # noqa: S608 - our names
            list(values),
        )
    finally:
        cursor.close()


def _save_states(connection: Connection, states: Sequence[tuple[int, int, ScrapeState]]) -> None:
    documents = {state.series.digest: state.series for _, _, state in states}
    known = _series_ids(connection, documents)
    if fresh := [document for digest, document in documents.items() if digest not in known]:
        rows = [{"digest": document.digest, "document": document.series} for document in fresh]
        connection.execute(insert_or_keep(connection, SCRAPE_SERIES), rows)
        known = _series_ids(connection, documents)
    replace_rows(
        connection,
        SCRAPE_STATES,
        [
            (
                source_id, run_id, state.at, known[state.series.digest], pack_doubles(state.values),
                dump_json(state.counted),
            )
            for source_id, run_id, state in states
        ],
    )  # fmt: skip
    if fresh:
        used = select(SCRAPE_STATES.c.series_id)
        connection.execute(delete(SCRAPE_SERIES).where(SCRAPE_SERIES.c.id.not_in(used)))


def _series_ids(connection: Connection, digests: Collection[str]) -> dict[str, int]:
    listed = ", ".join(f"'{digest}'" for digest in digests)
    return dict(rows_of(connection, f"SELECT digest, id FROM scrape_series WHERE digest IN ({listed})"))  # noqa: S608 - our digests


def run_that_states(
    connection: Connection, engine: str, port: int, name: str, value: Value, *, other_than: str
) -> int | None:
    """The latest run on a port whose engine stated this value, and of which the endpoint ``other_than`` did not tell."""
    runs, arguments = RUNS.c, ARGUMENTS.c
    told = select(RUN_SOURCES.c.run_id).join(SOURCES).where(SOURCES.c.path == other_than)
    query = (
        select(runs.id, arguments.effective)
        .join_from(RUNS, ARGUMENTS, and_(arguments.run_id == runs.id, arguments.name == name))
        .where(runs.engine == engine, runs.port == port, runs.sample.is_(False), runs.id.not_in(told))
        .order_by(runs.listed_at.desc(), runs.id.desc())
    )
    return next((row.id for row in connection.execute(query) if row.effective == value), None)
