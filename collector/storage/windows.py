"""Windows, prefill batches and series of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import ne
from typing import Any, Final

from sqlalchemy import Connection, Select, exists, func, select

from collector.domain.series import SeriesSample
from collector.domain.windows import Coded, Columns, Origin, PrefillWindow, Window
from collector.storage.bulk import add_columns, add_rows, digest_of, insert_or_keep
from collector.storage.packing import pack_counts, unpack_counts
from collector.storage.tables import DECODE_SAMPLES, PREFILL_SAMPLES, SERIES, SERIES_SAMPLES, UNITS
from collector.storage.types import storable

_ORIGIN_CODES: Final[Mapping[str, int]] = {"requests": 0, "counters": 1, "log": 2, "gauges": 3}
_ORIGINS: Final = {_ORIGIN_CODES[origin]: origin for origin in Origin}


def append_windows(connection: Connection, run_id: int, source_id: int, windows: Sequence[Window]) -> int:
    """Add decode windows that are not there yet; returns how many were.

    A window's identity is its run, instant, unit, source and position.
    """
    units = _unit_ids(connection, {window.unit for window in windows})
    rows = [
        (run_id, source_id, w[0], w[1], w[2], units[w[3]], *w[4:18], pack_counts(w[18]), _ORIGIN_CODES[w[19]])
        for w in windows
    ]
    return add_rows(connection, DECODE_SAMPLES, _with_nan(connection, rows))


def append_prefills(connection: Connection, run_id: int, source_id: int, prefills: Sequence[PrefillWindow]) -> int:
    """Add prefill batches that are not there yet; returns how many were."""
    units = _unit_ids(connection, {prefill.unit for prefill in prefills})
    rows = [(run_id, source_id, p[0], p[1], p[2], units[p[3]], p[4], p[5]) for p in prefills]
    return add_rows(connection, PREFILL_SAMPLES, _with_nan(connection, rows))


def append_window_columns(connection: Connection, run_id: int, source_id: int, windows: Columns[Window]) -> int:
    """As :func:`append_windows`; none of the values is NaN."""
    values = dict(zip(Window._fields, windows.values, strict=True))
    counts = values["accepted_at"]
    columns = {
        **_of_source(connection, run_id, source_id, values),
        "graph": _as_numbers(values["graph"]),
        "accepted_at": [pack_counts(value) for value in counts] if isinstance(counts, list) else None,
        "origin": _ORIGIN_CODES[values["origin"]],
    }
    return add_columns(connection, DECODE_SAMPLES, windows.length, columns)


def append_prefill_columns(
    connection: Connection, run_id: int, source_id: int, prefills: Columns[PrefillWindow]
) -> int:
    """As :func:`append_prefills`; none of the values is NaN."""
    values = dict(zip(PrefillWindow._fields, prefills.values, strict=True))
    return add_columns(connection, PREFILL_SAMPLES, prefills.length, _of_source(connection, run_id, source_id, values))


def _of_source(connection: Connection, run_id: int, source_id: int, values: dict[str, Any]) -> dict[str, Any]:
    """Columns of the table from those of rows: units by their ids, the run and the source."""
    columns = {name: value for name, value in values.items() if name != "unit"}
    unit = values["unit"]
    unit_id: Any
    if isinstance(unit, Coded):
        ids = _unit_ids(connection, set(unit.texts))
        unit_id = unit.recoded([ids[text] for text in unit.texts])
    elif isinstance(unit, list):
        ids = _unit_ids(connection, set(unit))
        unit_id = [ids[name] for name in unit]
    else:
        unit_id = _unit_ids(connection, {unit})[unit]
    return {**columns, "unit_id": unit_id, "run_id": run_id, "source_id": source_id}


def _as_numbers(truths: Any) -> Any:
    """Truth values as the database takes them."""
    if isinstance(truths, list):
        return [None if value is None else int(value) for value in truths]
    return truths


def load_windows(
    connection: Connection, run_ids: Sequence[int], *, since: float | None = None, until: float | None = None
) -> Mapping[int, list[Window]]:
    """The windows of runs in the order of their sources, ``since`` and ``until`` included."""
    columns = DECODE_SAMPLES.c
    query = _between(select(DECODE_SAMPLES).where(columns.run_id.in_(run_ids)), columns.at, since, until)
    units = _unit_names(connection)
    found: dict[int, list[Window]] = {run_id: [] for run_id in run_ids}
    for row in connection.execute(_in_order(query, columns)):
        run_id, _source, position, line, at, unit, *figures, accepted_at, origin = row
        counts = unpack_counts(accepted_at)
        window = Window._make([position, line, at, units[unit], *map(_number, figures), counts, _ORIGINS[origin]])
        found[run_id].append(window)
    return found


def count_windows(connection: Connection, run_ids: Collection[int]) -> int:
    """How many decode windows some runs have."""
    query = select(func.count()).select_from(DECODE_SAMPLES).where(DECODE_SAMPLES.c.run_id.in_(run_ids))
    return int(connection.execute(query).scalar_one())


def has_windows(connection: Connection, run_id: int) -> bool:
    """Whether a run decoded as far as known."""
    return bool(connection.execute(select(exists().where(DECODE_SAMPLES.c.run_id == run_id))).scalar_one())


def load_prefills(connection: Connection, run_id: int) -> list[PrefillWindow]:
    """The prefill batches of a run in the order of their sources."""
    query = _in_order(select(PREFILL_SAMPLES).where(PREFILL_SAMPLES.c.run_id == run_id), PREFILL_SAMPLES.c)
    units = _unit_names(connection)
    return [
        PrefillWindow(position, line, at, units[unit], _number(new), _number(cached))
        for _run, _source, position, line, at, unit, new, cached in connection.execute(query)
    ]


def counted_steps(
    connection: Connection, run_id: int, source_id: int, origin: Origin
) -> Mapping[str, tuple[float, float]]:
    """Verify steps and accepted tokens that a source counted of a run, summed by unit; units without any are left out."""
    columns = DECODE_SAMPLES.c
    query = (
        select(columns.unit_id, func.sum(columns.verify_steps), func.sum(columns.accepted_tokens))
        .where(columns.run_id == run_id, columns.source_id == source_id, columns.origin == _ORIGIN_CODES[origin])
        .where(columns.verify_steps.is_not(None))
        .group_by(columns.unit_id)
    )
    units = _unit_names(connection)
    return {units[unit]: (steps, accepted) for unit, steps, accepted in connection.execute(query)}


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


def _unit_ids(connection: Connection, names: Collection[str]) -> Mapping[str, int]:
    """The ids of units by name as it was read, stored on first sight."""
    stored = {name: storable(name) for name in names}
    if not stored:
        return {}
    known = {name: unit_id for unit_id, name in _unit_names(connection).items()}
    fresh = sorted(set(stored.values()) - known.keys())
    if fresh:
        connection.execute(insert_or_keep(connection, UNITS), [{"name": name} for name in fresh])
        known = {name: unit_id for unit_id, name in _unit_names(connection).items()}
    return {name: known[text] for name, text in stored.items()}


def _unit_names(connection: Connection) -> Mapping[int, str]:
    return {row.id: row.name for row in connection.execute(select(UNITS.c.id, UNITS.c.name))}


def _in_order(query: Select[Any], columns: Any) -> Select[Any]:
    return query.order_by(columns.run_id, columns.source_id, columns.position, columns.at, columns.unit_id)


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
        tuple("nan" if value != value else value for value in row) if any(map(ne, row, row)) else row  # noqa: PLR0124
        for row in rows
    ]


def _number(value: Any) -> Any:
    return float("nan") if value == "nan" else value
