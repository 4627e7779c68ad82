"""The present state of all deployments in a few queries: what a metrics exporter asks for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, String, case, cast, func, literal, select

from collector.domain.findings import Severity
from collector.storage.deliveries import DeliveryStatus
from collector.storage.findings import FindingState
from collector.storage.runs import NOWHERE, StoredRun, load_stored_runs
from collector.storage.tables import ALERT_DELIVERIES, FINDINGS, JUDGEMENTS, RUNS, SOURCES

_R = RUNS.c
_SHOWN: Final = (
    _R.id, _R.engine, _R.engine_version, _R.served_model, _R.target_model, _R.draft_model, _R.method, _R.deployment,
    _R.host, _R.port, _R.source, _R.started_at,
)  # fmt: skip
"""What an exporter shows of a run besides labels, judgement and the last sign of life."""


@dataclass(frozen=True, slots=True)
class PresentRun:
    """The run that stands at a place now. Instants are seconds since 1970.

    ``version`` stays equal as long as all that is shown of the run and its judgement does, except
    ``ended_at``, its last sign of life.
    """

    id: int
    version: tuple[Any, ...]
    ended_at: float | None
    judged_at: float | None


@dataclass(frozen=True, slots=True)
class Present:
    """Present runs, the latest first; ``left_out`` counts those beyond the most that were asked for."""

    runs: Sequence[PresentRun]
    left_out: int


@dataclass(frozen=True, slots=True)
class JudgedRun:
    """A run as it was judged last, and how many findings of each rule and severity are open on it."""

    run: StoredRun
    open_findings: Mapping[tuple[str, Severity], int]


@dataclass(frozen=True, slots=True)
class Health:
    """How the product itself fares. Runs that are samples are not counted.

    ``deliveries`` counts alerts by channel and status; ``pending_since`` is when the oldest alert
    that still waits was made, by channel.
    """

    stored_runs: int
    unjudged_runs: int
    engine_lines: int
    unread_lines: int
    deliveries: Mapping[tuple[str, str], int]
    pending_since: Mapping[str, float]


def present_runs(connection: Connection, *, since: float, most: int) -> Present:
    """The latest run of every place that gave a sign of life since then, samples left out.

    A place is a host and port where a run names a machine, else its deployment.
    """
    rank = func.row_number().over(partition_by=_place(), order_by=(_R.listed_at.desc(), _R.id.desc()))
    alive = func.coalesce(_R.ended_at, _R.listed_at) >= since
    ranked = (
        select(*_SHOWN, _R.labels, _R.ended_at, _R.listed_at, rank.label("rank"))
        .where(_R.sample.is_(False), alive)
        .subquery()
    )
    columns, judged = ranked.c, JUDGEMENTS.c
    query = (
        select(*columns, judged.judged_at, judged.state, func.count().over().label("places"))
        .join_from(ranked, JUDGEMENTS, judged.run_id == columns.id, isouter=True)
        .where(columns.rank == 1)
        .order_by(columns.listed_at.desc(), columns.id.desc())
        .limit(most)
    )
    rows = connection.execute(query).all()
    runs = [
        PresentRun(
            row.id,
            (*row[: len(_SHOWN)], tuple(sorted(row.labels.items())), row.judged_at, row.state),
            row.ended_at,
            row.judged_at,
        )
        for row in rows
    ]
    return Present(runs, rows[0].places - len(rows) if rows else 0)


def _place() -> Sequence[ColumnElement[str]]:
    """Columns that are equal for runs of one place."""
    nowhere = _R.host.in_(sorted(NOWHERE))
    unnamed = (_R.engine, _R.served_model, _R.target_model, _R.draft_model, func.coalesce(_R.method, "?"))
    there = [case((nowhere, literal("")), else_=part) for part in (_R.host, func.coalesce(cast(_R.port, String), ""))]
    name = case((nowhere, func.coalesce(_R.deployment, "")), else_=literal(""))
    parts = [case((nowhere & _R.deployment.is_(None), part), else_=literal("")) for part in unnamed]
    unknown = nowhere & _R.deployment.is_(None) & (_R.target_model == "")
    return [*there, name, *parts, case((unknown, _R.source), else_=literal(""))]


def load_judged(connection: Connection, ids: Sequence[int]) -> Iterator[JudgedRun]:
    """Runs as they were judged last; ids that do not exist are left out."""
    findings: dict[int, dict[tuple[str, Severity], int]] = {}
    columns = FINDINGS.c
    query = (
        select(columns.run_id, columns.rule, columns.severity, func.count())
        .where(columns.state == FindingState.OPEN.value, columns.run_id.in_(ids))
        .group_by(columns.run_id, columns.rule, columns.severity)
        .order_by(columns.run_id, columns.rule, columns.severity)
    )
    for run_id, rule, severity, count in connection.execute(query):
        findings.setdefault(run_id, {})[rule, Severity(severity)] = count
    for run in load_stored_runs(connection, ids):
        yield JudgedRun(run, findings.get(run.id, {}))


def load_health(connection: Connection) -> Health:
    """How much is stored, was understood, waits and was sent."""
    judged = JUDGEMENTS.c.run_id
    runs = (
        select(func.count(), func.count(judged))
        .join_from(RUNS, JUDGEMENTS, judged == _R.id, isouter=True)
        .where(_R.sample.is_(False))
    )
    stored, known = connection.execute(runs).one()
    lines = connection.execute(select(func.sum(SOURCES.c.engine_lines), func.sum(SOURCES.c.unread))).one()
    columns = ALERT_DELIVERIES.c
    sent = (
        select(columns.channel, columns.status, func.count(), func.min(columns.created_at))
        .group_by(columns.channel, columns.status)
        .order_by(columns.channel, columns.status)
    )
    counted = connection.execute(sent).all()
    return Health(
        stored_runs=stored,
        unjudged_runs=stored - known,
        engine_lines=int(lines[0] or 0),
        unread_lines=int(lines[1] or 0),
        deliveries={(channel, status): count for channel, status, count, _ in counted},
        pending_since={channel: oldest for channel, status, _, oldest in counted if status == DeliveryStatus.PENDING},
    )
