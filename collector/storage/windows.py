"""Windows, prefill batches and series of a run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from sqlalchemy import Connection, exists, func, select

from collector.domain.series import SeriesSample
from collector.domain.windows import Origin, PrefillWindow, Window
from collector.storage.bulk import add_rows, digest_of, insert_or_keep
from collector.storage.packing import pack_counts, unpack_counts
from collector.storage.tables import DECODE_SAMPLES, PREFILL_SAMPLES, SERIES, SERIES_SAMPLES
from collector.storage.types import storable

_ORIGINS: Final = tuple(Origin)
_ORIGIN_CODES: Final = {origin: code for code, origin in enumerate(_ORIGINS)}
_WINDOW_COLUMNS: Final = [DECODE_SAMPLES.c[name] for name in Window._fields]


def append_windows(connection: Connection, run_id: int, source_id: int, windows: Iterable[Window]) -> int:
    """Add decode windows that are not there yet; returns how many were.

    A window's identity is its run, instant, unit, source and position.
    """
    rows = [
        (run_id, w.at, storable(w.unit), source_id, w.position, w.line, _ORIGIN_CODES[w.origin], w.seconds,
         w.running_requests, w.waiting_requests, w.verify_steps, w.accepted_tokens, w.drafted_tokens,
         w.generated_tokens, w.generation_throughput, w.printed_length, w.printed_rate, w.tokens_in_use,
         w.kv_cache_usage, w.graph, w.prefills, pack_counts(w.accepted_at))
        for w in windows
    ]  # fmt: skip
    return add_rows(connection, DECODE_SAMPLES, _with_nan(connection, rows))


def append_prefills(connection: Connection, run_id: int, source_id: int, prefills: Iterable[PrefillWindow]) -> int:
    """Add prefill batches that are not there yet; returns how many were."""
    rows = [
        (run_id, p.at, storable(p.unit), source_id, p.position, p.line, p.new_tokens, p.cached_tokens)
        for p in prefills
    ]  # fmt: skip
    return add_rows(connection, PREFILL_SAMPLES, _with_nan(connection, rows))


def load_windows(
    connection: Connection, run_ids: Sequence[int], *, since: float | None = None, until: float | None = None
) -> Mapping[int, list[Window]]:
    """The windows of runs in the order of their sources, ``since`` and ``until`` included."""
    columns = DECODE_SAMPLES.c
    query = select(columns.run_id, *_WINDOW_COLUMNS).where(columns.run_id.in_(run_ids))
    query = _between(query, columns.at, since, until)
    query = query.order_by(columns.run_id, columns.source_id, columns.position, columns.unit)
    found: dict[int, list[Window]] = {run_id: [] for run_id in run_ids}
    for run_id, *values in connection.execute(query):
        *figures, accepted_at, origin = values
        window = Window._make([*map(_number, figures), unpack_counts(accepted_at), _ORIGINS[origin]])
        found[run_id].append(window)
    return found


def has_windows(connection: Connection, run_id: int) -> bool:
    """Whether a run decoded as far as known."""
    return bool(connection.execute(select(exists().where(DECODE_SAMPLES.c.run_id == run_id))).scalar_one())


def load_prefills(connection: Connection, run_id: int) -> list[PrefillWindow]:
    """The prefill batches of a run in the order of their sources."""
    columns = PREFILL_SAMPLES.c
    query = select(*(columns[name] for name in PrefillWindow._fields)).where(columns.run_id == run_id)
    query = query.order_by(columns.source_id, columns.position, columns.unit)
    return [PrefillWindow._make(map(_number, row)) for row in connection.execute(query)]


def mean_running_requests(connection: Connection, run_id: int) -> float | None:
    """The load of a run: running requests averaged over windows with any; ``None`` where none says."""
    running = DECODE_SAMPLES.c.running_requests
    value = connection.execute(
        select(func.avg(running)).where(DECODE_SAMPLES.c.run_id == run_id, running > 0)
    ).scalar_one()
    return None if value is None else float(value)


def append_series(connection: Connection, run_id: int, samples: Iterable[SeriesSample]) -> int:
    """Add values of other metrics that are not there yet; returns how many were."""
    samples = list(samples)
    digests = {_series_key(sample): sample for sample in samples}
    if not digests:
        return 0
    rows = [
        {"run_id": run_id, "digest": digest, "name": sample.name, "labels": dict(sample.labels)}
        for digest, sample in digests.items()
    ]
    connection.execute(insert_or_keep(connection, SERIES), rows)
    known = connection.execute(select(SERIES.c.digest, SERIES.c.id).where(SERIES.c.run_id == run_id))
    ids: dict[str, int] = {row.digest: row.id for row in known}
    values = [(ids[_series_key(sample)], sample.at, sample.value) for sample in samples]
    return add_rows(connection, SERIES_SAMPLES, _with_nan(connection, values))


def load_series(
    connection: Connection, run_id: int, name: str, *, since: float | None = None, until: float | None = None
) -> list[SeriesSample]:
    """The values of one metric of a run, series by series in the order of time."""
    query = (
        select(SERIES.c.name, SERIES.c.labels, SERIES_SAMPLES.c.at, SERIES_SAMPLES.c.value)
        .join_from(SERIES_SAMPLES, SERIES)
        .where(SERIES.c.run_id == run_id, SERIES.c.name == name)
        .order_by(SERIES.c.id, SERIES_SAMPLES.c.at)
    )
    query = _between(query, SERIES_SAMPLES.c.at, since, until)
    return [SeriesSample(row.name, row.labels, row.at, _number(row.value)) for row in connection.execute(query)]


def _series_key(sample: SeriesSample) -> str:
    return digest_of(sample.name, sorted(sample.labels.items()))


def _between(query: Any, at: Any, since: float | None, until: float | None) -> Any:
    if since is not None:
        query = query.where(at >= since)
    if until is not None:
        query = query.where(at <= until)
    return query


def _with_nan(connection: Connection, rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """SQLite takes NaN for NULL, so a printed ``nan`` is stored there as text (see :func:`_number`)."""
    if connection.dialect.name == "postgresql":
        return rows
    return [
        tuple("nan" if value != value else value for value in row) if any(value != value for value in row) else row  # noqa: PLR0124
        for row in rows
    ]


def _number(value: Any) -> Any:
    return float("nan") if value == "nan" else value
