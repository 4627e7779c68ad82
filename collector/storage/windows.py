"""Windows, prefill batches and series of a run."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from operator import ne
from typing import Any

from sqlalchemy import Connection, exists, func, select

from collector.domain.series import SeriesSample
from collector.domain.windows import Coded, Columns, CountsAt, PrefillWindow, Window
from collector.storage.bulk import add_columns, add_rows, digest_of, insert_or_keep
from collector.storage.live import Fineness, Placed, live_samples, mean_live_requests
from collector.storage.packing import ORIGIN_CODES, ORIGINS, pack_counts, pack_rows, unpack_counts
from collector.storage.tables import DECODE_SAMPLES, PREFILL_SAMPLES, SERIES, SERIES_SAMPLES
from collector.storage.units import unit_ids, unit_names


def append_windows(connection: Connection, run_id: int, source_id: int, windows: Sequence[Window]) -> int:
    """Add decode windows of a log that are not there yet; returns how many were.

    A window's identity is its run, instant, unit, source and position.
    """
    return append_window_columns(connection, run_id, source_id, Columns.of(Window, windows))


def append_prefills(connection: Connection, run_id: int, source_id: int, prefills: Sequence[PrefillWindow]) -> int:
    """Add prefill batches of a log that are not there yet; returns how many were."""
    return append_prefill_columns(connection, run_id, source_id, Columns.of(PrefillWindow, prefills))


def append_window_columns(connection: Connection, run_id: int, source_id: int, windows: Columns[Window]) -> int:
    """As :func:`append_windows`; arrays hold no NaN."""
    if not windows.length:
        return 0
    values = dict(zip(Window._fields, windows.values, strict=True))
    origin = values["origin"]
    columns = {
        **_of_source(connection, run_id, source_id, values),
        "accepted_at": _packed(values["accepted_at"]),
        "origin": [ORIGIN_CODES[one] for one in origin] if isinstance(origin, list) else ORIGIN_CODES[origin],
    }
    return add_columns(connection, DECODE_SAMPLES, windows.length, columns)


def append_prefill_columns(
    connection: Connection, run_id: int, source_id: int, prefills: Columns[PrefillWindow]
) -> int:
    """As :func:`append_prefills`; arrays hold no NaN."""
    if not prefills.length:
        return 0
    values = dict(zip(PrefillWindow._fields, prefills.values, strict=True))
    return add_columns(connection, PREFILL_SAMPLES, prefills.length, _of_source(connection, run_id, source_id, values))


def _packed(counts: Any) -> list[bytes | None] | None:
    """A column of counts by position as it is stored."""
    if isinstance(counts, CountsAt):
        return pack_rows(counts.counts)
    return list(map(pack_counts, counts)) if isinstance(counts, list) else None


def _of_source(connection: Connection, run_id: int, source_id: int, values: dict[str, Any]) -> dict[str, Any]:
    """Columns of the table from those of rows: units by their ids, the run and the source."""
    columns = {name: value for name, value in values.items() if name != "unit"}
    unit = values["unit"]
    unit_id: Any
    if isinstance(unit, Coded):
        ids = unit_ids(connection, set(unit.texts))
        unit_id = unit.recoded([ids[text] for text in unit.texts])
    elif isinstance(unit, list):
        ids = unit_ids(connection, set(unit))
        unit_id = [ids[name] for name in unit]
    else:
        unit_id = unit_ids(connection, {unit})[unit]
    return {**columns, "unit_id": unit_id, "run_id": run_id, "source_id": source_id}


def load_windows(
    connection: Connection, run_ids: Sequence[int], *, since: float | None = None, until: float | None = None
) -> Mapping[int, list[Window]]:
    """The windows of runs in the order of their sources, ``since`` and ``until`` included.

    Of watched engines the older ones have been added up to longer ones (:mod:`collector.storage.tiers`).
    """
    found = [*log_windows(connection, run_ids), *live_samples(connection, run_ids)[0]]
    of_run: dict[int, list[Window]] = {run_id: [] for run_id in run_ids}
    for placed in sorted(_those_between(found, since, until), key=_place):
        of_run[placed.run_id].append(placed.what)
    return of_run


def log_windows(connection: Connection, run_ids: Sequence[int]) -> list[Placed]:
    """The windows that logs tell of runs."""
    units = unit_names(connection)
    found: list[Placed] = []
    for row in connection.execute(select(DECODE_SAMPLES).where(DECODE_SAMPLES.c.run_id.in_(run_ids))):
        run_id, source_id, position, line, at, unit, *figures, accepted_at, origin = row
        counts = unpack_counts(accepted_at)
        window = Window._make([position, line, at, units[unit], *map(_number, figures), counts, ORIGINS[origin]])
        found.append(Placed(run_id, source_id, position, at, unit, window))
    return found


def _those_between(found: Iterable[Placed], since: float | None, until: float | None) -> list[Placed]:
    return [
        placed for placed in found if (since is None or placed.at >= since) and (until is None or placed.at <= until)
    ]


def _place(placed: Placed) -> tuple[float, ...]:
    return placed[:-1]


def count_windows(connection: Connection, run_ids: Collection[int]) -> int:
    """How many decode windows of logs some runs have."""
    query = select(func.count()).select_from(DECODE_SAMPLES).where(DECODE_SAMPLES.c.run_id.in_(run_ids))
    return int(connection.execute(query).scalar_one())


def has_windows(connection: Connection, run_id: int) -> bool:
    """Whether a run decoded as far as its logs tell."""
    return bool(connection.execute(select(exists().where(DECODE_SAMPLES.c.run_id == run_id))).scalar_one())


def load_samples(
    connection: Connection, run_id: int, fineness: Fineness | None = None
) -> tuple[list[Window], list[PrefillWindow]]:
    """The windows and prefill batches of a run in the order of their sources; ``fineness`` is that of what was watched."""
    windows, prefills = live_samples(connection, [run_id], fineness)
    return (
        [placed.what for placed in sorted([*log_windows(connection, [run_id]), *windows], key=_place)],
        [placed.what for placed in sorted([*log_prefills(connection, run_id), *prefills], key=_place)],
    )


def log_prefills(connection: Connection, run_id: int) -> list[Placed]:
    """The prefill batches that logs tell of a run."""
    query = select(PREFILL_SAMPLES).where(PREFILL_SAMPLES.c.run_id == run_id)
    units = unit_names(connection)
    return [
        Placed(
            run_id, source, position, at, unit,
            PrefillWindow(position, line, at, units[unit], _number(new), _number(cached)),
        )
        for _run, source, position, line, at, unit, new, cached in connection.execute(query)
    ]  # fmt: skip


def mean_running_requests(connection: Connection, run_id: int) -> float | None:
    """The load of a run: running requests averaged over windows with any; ``None`` where none says."""
    running = DECODE_SAMPLES.c.running_requests
    value = connection.execute(
        select(func.avg(running)).where(DECODE_SAMPLES.c.run_id == run_id, running > 0)
    ).scalar_one()
    return mean_live_requests(connection, run_id) if value is None else float(value)


def append_series(connection: Connection, run_id: int, samples: Iterable[SeriesSample]) -> int:
    """Add values of other metrics that are not there yet; returns how many were."""
    digested = [(series_digest(sample.name, sample.labels), sample) for sample in samples]
    ids = series_ids(connection, run_id, {digest: (sample.name, sample.labels) for digest, sample in digested})
    return append_values(connection, [(ids[digest], sample.at, sample.value) for digest, sample in digested])


def series_digest(name: str, labels: Mapping[str, str]) -> str:
    """What makes a series, as a digest."""
    return digest_of(name, sorted(labels.items()))


def series_ids(
    connection: Connection, run_id: int, series: Mapping[str, tuple[str, Mapping[str, str]]]
) -> dict[str, int]:
    """The ids of a run's series by digest, stored on first sight; ``series`` are their names and labels by digest."""
    if not series:
        return {}
    rows = [
        {"run_id": run_id, "digest": digest, "name": name, "labels": dict(labels)}
        for digest, (name, labels) in series.items()
    ]
    connection.execute(insert_or_keep(connection, SERIES), rows)
    known = connection.execute(select(SERIES.c.digest, SERIES.c.id).where(SERIES.c.run_id == run_id))
    return {row.digest: row.id for row in known}


def append_values(connection: Connection, rows: list[tuple[Any, ...]]) -> int:
    """Add rows of series id, instant and value that are not there yet; returns how many were."""
    return add_rows(connection, SERIES_SAMPLES, _with_nan(connection, rows))


def load_series(
    connection: Connection, run_id: int, name: str, *, since: float | None = None, until: float | None = None
) -> list[SeriesSample]:
    """The values of one metric of a run, series by series in the order of time."""
    query = (
        select(SERIES.c.name, SERIES.c.labels, SERIES_SAMPLES.c.at, SERIES_SAMPLES.c.value)
        .join_from(SERIES_SAMPLES, SERIES, SERIES.c.id == SERIES_SAMPLES.c.series_id)
        .where(SERIES.c.run_id == run_id, SERIES.c.name == name)
        .order_by(SERIES.c.id, SERIES_SAMPLES.c.at)
    )
    query = _between(query, SERIES_SAMPLES.c.at, since, until)
    return [SeriesSample(row.name, row.labels, row.at, _number(row.value)) for row in connection.execute(query)]


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
