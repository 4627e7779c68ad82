"""The present state of all deployments in a few queries: what a metrics exporter asks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import ColumnElement, Connection, String, case, cast, func, literal, select

from collector.domain.findings import Severity
from collector.storage.findings import FindingState
from collector.storage.runs import NOWHERE, StoredRun, load_stored_runs
from collector.storage.tables import ALERT_DELIVERIES, FINDINGS, JUDGEMENTS, RUNS, SOURCES

_R = RUNS.c


@dataclass(frozen=True, slots=True)
class OpenFindings:
    """How many findings of one rule and severity are open on a run."""

    run_id: int
    rule: str
    severity: Severity
    count: int


@dataclass(frozen=True, slots=True)
class Overview:
    """Runs, the latest first, and how the product itself fares.

    ``deliveries`` counts alerts by channel and status. ``stored_runs`` and ``unjudged_runs`` count all
    runs, samples included in neither.
    """

    runs: Sequence[StoredRun]
    findings: Sequence[OpenFindings]
    stored_runs: int
    unjudged_runs: int
    engine_lines: int
    unread_lines: int
    deliveries: Mapping[tuple[str, str], int]


def load_overview(connection: Connection, *, per_place: int, most_runs: int) -> Overview:
    """The latest runs of every place, samples left out.

    A place is a host and port where a run names a machine, else its deployment.
    """
    ids = _latest_ids(connection, per_place, most_runs)
    own = _R.sample.is_(False)
    judged = select(JUDGEMENTS.c.run_id)
    lines = connection.execute(select(func.sum(SOURCES.c.engine_lines), func.sum(SOURCES.c.unread))).one()
    return Overview(
        runs=load_stored_runs(connection, ids),
        findings=_open_findings(connection, ids),
        stored_runs=connection.execute(select(func.count()).where(own)).scalar_one(),
        unjudged_runs=connection.execute(select(func.count()).where(own, _R.id.not_in(judged))).scalar_one(),
        engine_lines=int(lines[0] or 0),
        unread_lines=int(lines[1] or 0),
        deliveries=_deliveries(connection),
    )


def _latest_ids(connection: Connection, per_place: int, most_runs: int) -> list[int]:
    rank = func.row_number().over(partition_by=_place(), order_by=(_R.listed_at.desc(), _R.id.desc()))
    ranked = select(_R.id, _R.listed_at, rank.label("rank")).where(_R.sample.is_(False)).subquery()
    query = select(ranked.c.id).where(ranked.c.rank <= per_place)
    return list(
        connection.execute(query.order_by(ranked.c.listed_at.desc(), ranked.c.id.desc()).limit(most_runs)).scalars()
    )


def _place() -> Sequence[ColumnElement[str]]:
    """Columns that are equal for runs of one place."""
    nowhere = _R.host.in_(sorted(NOWHERE))
    unnamed = (_R.engine, _R.served_model, _R.target_model, _R.draft_model, func.coalesce(_R.method, "?"))
    there = [case((nowhere, literal("")), else_=part) for part in (_R.host, func.coalesce(cast(_R.port, String), ""))]
    name = case((nowhere, func.coalesce(_R.deployment, "")), else_=literal(""))
    parts = [case((nowhere & _R.deployment.is_(None), part), else_=literal("")) for part in unnamed]
    unknown = nowhere & _R.deployment.is_(None) & (_R.target_model == "")
    return [*there, name, *parts, case((unknown, _R.source), else_=literal(""))]


def _open_findings(connection: Connection, ids: Sequence[int]) -> list[OpenFindings]:
    columns = FINDINGS.c
    query = (
        select(columns.run_id, columns.rule, columns.severity, func.count())
        .where(columns.state == FindingState.OPEN.value, columns.run_id.in_(ids))
        .group_by(columns.run_id, columns.rule, columns.severity)
        .order_by(columns.run_id, columns.rule, columns.severity)
    )
    return [
        OpenFindings(run_id, rule, Severity(severity), count)
        for run_id, rule, severity, count in connection.execute(query)
    ]


def _deliveries(connection: Connection) -> dict[tuple[str, str], int]:
    columns = ALERT_DELIVERIES.c
    query = select(columns.channel, columns.status, func.count()).group_by(columns.channel, columns.status)
    rows = connection.execute(query.order_by(columns.channel, columns.status))
    return {(channel, status): count for channel, status, count in rows}
