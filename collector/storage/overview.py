"""The present state of all deployments in a few queries: what a metrics exporter asks for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, ScalarSelect, String, case, cast, func, literal, select

from collector.domain.deployments import Serving
from collector.domain.findings import Severity
from collector.storage.deliveries import DeliveryStatus
from collector.storage.findings import FindingState
from collector.storage.runs import NOWHERE
from collector.storage.tables import ALERT_DELIVERIES, FINDINGS, JUDGEMENTS, RUNS, SOURCES, VERDICTS

_R = RUNS.c
_NAMES: Final = (_R.id, _R.engine, _R.engine_version, _R.deployment, _R.host, _R.port, _R.started_at)
_SERVING: Final = [_R[name] for name in Serving.__slots__]
"""With the labels, what an exporter shows of a run besides its judgement and the last sign of life."""


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
    """What an exporter shows of a run: its names and how it was judged last.

    ``figures`` are the values of quantities by key, ``verdicts`` questions and their states, ``open_findings`` rules,
    severities and how many are open.
    """

    id: int
    engine: str
    engine_version: str | None
    serving: Serving
    deployment: str | None
    host: str
    port: int | None
    started_at: float | None
    labels: Mapping[str, str]
    judged_at: float | None
    summary: Mapping[str, Any]
    figures: Mapping[str, Any]
    verdicts: tuple[tuple[str, str], ...]
    open_findings: tuple[tuple[str, str, int], ...]


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
    ranked = select(_R.id, rank.label("rank")).where(_R.sample.is_(False), alive).subquery()
    judged = JUDGEMENTS.c
    version = (*_NAMES, *_SERVING, _R.source, cast(_R.labels, String), judged.judged_at, judged.state)
    query = (
        select(*version, _R.ended_at, func.count().over().label("places"))
        .join_from(ranked, RUNS, _R.id == ranked.c.id)
        .join(JUDGEMENTS, judged.run_id == _R.id, isouter=True)
        .where(ranked.c.rank == 1)
        .order_by(_R.listed_at.desc(), _R.id.desc())
        .limit(most)
    )
    rows = connection.execute(query).all()
    runs = [PresentRun(row.id, tuple(row[: len(version)]), row.ended_at, row.judged_at) for row in rows]
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
    """Runs as they were judged last, one after the other; ids that do not exist are left out."""
    judged, verdicts, findings = JUDGEMENTS.c, VERDICTS.c, FINDINGS.c
    open_ones = findings.state == FindingState.OPEN.value
    rated = findings.rule + " " + cast(findings.severity, String)
    query = (
        select(
            *_NAMES,
            _R.labels,
            judged.judged_at,
            judged.summary,
            _listed(verdicts.question + " " + verdicts.state, verdicts.run_id == _R.id).label("verdicts"),
            _listed(rated, findings.run_id == _R.id, open_ones).label("findings"),
            *_SERVING,
        )
        .join_from(RUNS, JUDGEMENTS, judged.run_id == _R.id, isouter=True)
        .where(_R.id.in_(ids))
    )
    for row in connection.execute(query):
        summary = row.summary or {}
        yield JudgedRun(
            id=row.id,
            engine=row.engine,
            engine_version=row.engine_version,
            serving=Serving(*row[-len(_SERVING) :]),
            deployment=row.deployment,
            host=row.host,
            port=row.port,
            started_at=row.started_at,
            labels=row.labels,
            judged_at=row.judged_at,
            summary=summary,
            figures={key: item.get("value") for key, item in summary.get("quantities", {}).items()},
            verdicts=_verdicts(row.verdicts),
            open_findings=_findings(row.findings),
        )


def _listed(text: ColumnElement[str], *where: ColumnElement[bool]) -> ScalarSelect[Any]:
    """This text of all rows beneath one another: far fewer rows are read."""
    return select(func.aggregate_strings(text, "\n")).where(*where).scalar_subquery()


@lru_cache(maxsize=1024)
def _verdicts(listed: str | None) -> tuple[tuple[str, str], ...]:
    pairs = (line.partition(" ") for line in sorted((listed or "").splitlines()))
    return tuple((question, state) for question, _, state in pairs)


@lru_cache(maxsize=1024)
def _findings(listed: str | None) -> tuple[tuple[str, str, int], ...]:
    counted = Counter((listed or "").splitlines())
    pairs = ((line.partition(" "), count) for line, count in sorted(counted.items()))
    return tuple((rule, Severity(int(severity)).word, count) for (rule, _, severity), count in pairs)


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
