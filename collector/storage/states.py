"""What a run's data stands at, as a digest: unchanged data need not be judged or drawn again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, Select, String, and_, cast, func, or_, select

from collector.storage.bulk import digest_of
from collector.storage.drafts import registered_figures
from collector.storage.relations import baseline_of, previous_of
from collector.storage.tables import (
    ARGUMENTS,
    DECODE_SAMPLES,
    HOUR_SAMPLES,
    JUDGEMENTS,
    LIVE_STREAMS,
    PREFILL_SAMPLES,
    REQUEST_RESULTS,
    RUN_DETECTORS,
    RUN_EVENTS,
    RUN_SOURCES,
    RUNS,
    SOURCES,
)
from collector.storage.types import Json

_R = RUNS.c
_OWN = [cast(column, String) if isinstance(column.type, Json) else column for column in RUNS.columns]
"""What is stored of a run itself; documents as their text, which need not be read for a digest."""


def run_states(
    connection: Connection, run_ids: Sequence[int] | None = None, *, sample: bool | None = None
) -> dict[int, str]:
    """The digest of each run by its id, or of all runs.

    Equal digests mean equal data: what is stored of the run itself, how far its sources were read,
    how many arguments, events and request results are known, the last window and prefill batch, and how far the
    detectors of a watched run took them in. Data of one
    run only ever grows, or is read anew together with its source. Runs without validation figures of
    their own also rest on those that are registered.
    """
    parts: dict[int, list[Any]] = {}
    registered = registered_figures(connection)
    for row in connection.execute(_chosen(select(*_OWN, *_latest()), run_ids, sample).order_by(_R.id)):
        stored, instants, counts = row[: len(_OWN)], row[len(_OWN) : len(_OWN) + 3], row[len(_OWN) + 3 :]
        last = max((at for at in instants if at is not None), default=None)
        parts[row.id] = [list(stored), last, *counts, *(registered if row.validation_id is None else ())]
    read = select(RUN_SOURCES.c.run_id, SOURCES.c.id, SOURCES.c.byte_offset, SOURCES.c.understood, SOURCES.c.unread)
    query = _chosen(read.join_from(RUN_SOURCES, SOURCES).join(RUNS, _R.id == RUN_SOURCES.c.run_id), run_ids, sample)
    for row in connection.execute(query.order_by(RUN_SOURCES.c.run_id, SOURCES.c.id)):
        parts[row.run_id].append(list(row))
    return {run_id: digest_of(*items) for run_id, items in parts.items()}


def bundle_state(connection: Connection, run_id: int) -> str:
    """The digest of a run, its previous run and its baseline: what a diagnosis rests on."""
    others = previous_of(connection, run_id), baseline_of(connection, run_id)
    states = run_states(connection, [run_id, *(other for other in others if other is not None)])
    return digest_of(states[run_id], *(None if other is None else [other, states[other]] for other in others))


def judged_states(connection: Connection) -> dict[int, tuple[str, float]]:
    """The state each judgement rests on, and when it was made, by run."""
    query = select(JUDGEMENTS.c.run_id, JUDGEMENTS.c.state, JUDGEMENTS.c.judged_at)
    return {row.run_id: (row.state, row.judged_at) for row in connection.execute(query)}


def list_state(connection: Connection) -> str:
    """The digest of what a list of runs shows: it changes when a run comes, goes or is judged again."""
    runs = connection.execute(select(func.count(_R.id), func.max(_R.id))).one()
    judged = connection.execute(select(func.count(JUDGEMENTS.c.run_id), func.max(JUDGEMENTS.c.judged_at))).one()
    return digest_of(list(runs), list(judged))


def compared_with(connection: Connection, run_ids: Sequence[int]) -> list[int]:
    """The other runs that have one of these as their previous run or baseline."""
    given = set(run_ids)
    query = select(_R.engine, _R.target_model, _R.deployment).where(_R.id.in_(run_ids)).distinct()
    alike = [
        or_(
            and_(_R.engine == row.engine, _R.target_model == row.target_model),
            *([] if row.deployment is None else [_R.deployment == row.deployment]),
        )
        for row in connection.execute(query)
    ]
    linked = or_(_R.previous_run_id.in_(run_ids), _R.baseline_run_id.in_(run_ids))
    family = connection.execute(select(_R.id).where(or_(linked, *alike)).order_by(_R.id)).scalars().all()
    return [
        run_id
        for run_id in family
        if run_id not in given and {previous_of(connection, run_id), baseline_of(connection, run_id)} & given
    ]


def _chosen(query: Select[Any], run_ids: Sequence[int] | None, sample: bool | None) -> Select[Any]:
    if run_ids is not None:
        query = query.where(_R.id.in_(run_ids))
    return query if sample is None else query.where(_R.sample == sample)


def _last_hour() -> Any:
    """The last hour of a stream."""
    own = HOUR_SAMPLES.alias("own_hours").c
    return (
        select(func.max(own.bucket)).where(own.stream_id == LIVE_STREAMS.c.id).correlate(LIVE_STREAMS).scalar_subquery()
    )


def _latest() -> list[Any]:
    """Scalar subqueries: each reads one end of an index."""
    windows, prefills = DECODE_SAMPLES.c, PREFILL_SAMPLES.c
    arguments, events, hours = ARGUMENTS.c, RUN_EVENTS.c, HOUR_SAMPLES.c
    requests, detectors = REQUEST_RESULTS.c, RUN_DETECTORS.c
    return [
        # Roll-ups outlive raw windows, so that letting go of those changes nothing.
        select(func.max(hours.last_at))
        .join_from(LIVE_STREAMS, HOUR_SAMPLES, hours.stream_id == LIVE_STREAMS.c.id)
        .where(LIVE_STREAMS.c.run_id == _R.id, hours.bucket == _last_hour())
        .correlate(RUNS)
        .scalar_subquery()
        .label("last_live"),
        select(func.max(windows.at))
        .where(windows.run_id == _R.id)
        .correlate(RUNS)
        .scalar_subquery()
        .label("last_window"),
        select(func.max(prefills.at))
        .where(prefills.run_id == _R.id)
        .correlate(RUNS)
        .scalar_subquery()
        .label("last_prefill"),
        select(detectors.bucket).where(detectors.run_id == _R.id).correlate(RUNS).scalar_subquery().label("taken_in"),
        select(func.count(arguments.effective))
        .where(arguments.run_id == _R.id)
        .correlate(RUNS)
        .scalar_subquery()
        .label("effective"),
        select(func.count(arguments.requested))
        .where(arguments.run_id == _R.id)
        .correlate(RUNS)
        .scalar_subquery()
        .label("requested"),
        select(func.count(events.id)).where(events.run_id == _R.id).correlate(RUNS).scalar_subquery().label("events"),
        select(func.count(requests.key))
        .where(requests.run_id == _R.id)
        .correlate(RUNS)
        .scalar_subquery()
        .label("requests"),
    ]
