"""Which runs belong together: previous, baseline, and what a run takes the place of (DESIGN section 1)."""

from __future__ import annotations

from typing import Any, Final

from sqlalchemy import ColumnElement, Connection, and_, func, select

from collector.domain.runs import Bundle
from collector.domain.versions import Release, ReleaseRange
from collector.storage.detectors import load_watched
from collector.storage.drafts import Registered, load_draft_config, registered_for
from collector.storage.live import JUDGED
from collector.storage.runs import NOWHERE, load_run
from collector.storage.sources import load_readings
from collector.storage.tables import RUNS
from collector.storage.windows import mean_running_requests

COMPARABLE_LOAD: Final = 0.2
"""Loads are comparable if their running requests differ by at most this share."""

_R: Final = RUNS.c


def load_bundle(connection: Connection, run_id: int) -> Bundle:
    """A run with its previous and baseline runs and what was made of its sources: what a diagnosis needs.

    A run that was stored without validation figures takes those of the registered draft that it uses.

    Raises:
        UnknownName: no run has this id.
    """
    subject = load_run(connection, run_id, JUDGED)
    if subject.validation is None:
        registered = registered_validation(connection, run_id)
        subject.validation = None if registered is None else registered.validation
    previous, baseline = previous_of(connection, run_id), baseline_of(connection, run_id)
    return Bundle(
        subject,
        previous=None if previous is None else load_run(connection, previous, JUDGED),
        baseline=None if baseline is None else load_run(connection, baseline, JUDGED),
        readings=load_readings(connection, run_id),
        watched=load_watched(connection, run_id),
    )


def registered_validation(connection: Connection, run_id: int) -> Registered | None:
    """The registered figures of a run's draft; ``None`` where the run has figures of its own, or no draft matches."""
    run = _run(connection, run_id)
    if run.validation_id is not None:
        return None
    return registered_for(connection, run.draft_model, load_draft_config(connection, run.draft_id))


def previous_of(connection: Connection, run_id: int) -> int | None:
    """The linked previous run, else the latest earlier run of the same deployment.

    Runs that overlap in time are replicas of one another, not earlier runs.
    """
    run = _run(connection, run_id)
    if run.previous_run_id is not None:
        return int(run.previous_run_id)
    same = _same_deployment(run)
    if same is None or run.started_at is None:
        return None
    return _latest(connection, and_(same, _R.id != run_id, _R.ended_at <= run.started_at, _R.sample == run.sample))


def baseline_of(connection: Connection, run_id: int) -> int | None:
    """The linked baseline, else the latest comparable run that states that it does not speculate.

    Comparable: the same engine, target, hardware, parallelism and release as far as both are known,
    and running requests within 20% (:data:`COMPARABLE_LOAD`).
    """
    run = _run(connection, run_id)
    if run.baseline_run_id is not None:
        return int(run.baseline_run_id)
    load = mean_running_requests(connection, run_id)
    if run.method == "" or not run.target_model or load is None:
        return None
    names = ("engine", "target_model", "device", "parallelism", "sample")
    alike = and_(*(_R[name] == getattr(run, name) for name in names), _R.method == "", _R.id != run_id)
    if run.accelerator is not None:
        alike = and_(alike, func.coalesce(_R.accelerator, run.accelerator) == run.accelerator)
    for candidate in connection.execute(select(RUNS).where(alike).order_by(_R.listed_at.desc(), _R.id.desc())):
        other = mean_running_requests(connection, candidate.id)
        if other is not None and abs(other - load) <= COMPARABLE_LOAD * load and _may_share_release(run, candidate):
            return int(candidate.id)
    return None


def earlier_in_place(connection: Connection, run_id: int) -> list[int]:
    """The runs whose place this one has taken: at the same host and port, or else in the same deployment before it."""
    return _ids(connection, _earlier(_run(connection, run_id)))


def later_in_place(connection: Connection, run_id: int) -> list[int]:
    """The runs that have taken this one's place."""
    run = _run(connection, run_id)
    ended = run.ended_at if run.ended_at is not None else run.started_at
    if run.started_at is None:
        return []
    if run.host not in NOWHERE:
        return _ids(connection, and_(_same_place(run), _R.started_at > run.started_at))
    same = _same_deployment(run)
    if same is None:
        return []
    return _ids(connection, and_(same, _R.id != run_id, _R.started_at >= ended, _R.sample == run.sample))


def _earlier(run: Any) -> ColumnElement[bool] | None:
    if run.started_at is None:
        return None
    if run.host not in NOWHERE:
        return and_(_same_place(run), _R.started_at < run.started_at)
    same = _same_deployment(run)
    if same is None:
        return None
    return and_(same, _R.id != run.id, _R.ended_at <= run.started_at, _R.sample == run.sample)


def _same_place(run: Any) -> ColumnElement[bool]:
    port = _R.port.is_(None) if run.port is None else _R.port == run.port
    return and_(_R.host == run.host, port, _R.id != run.id, _R.sample == run.sample)


def _same_deployment(run: Any) -> ColumnElement[bool] | None:
    """``None`` where nothing says what the run serves."""
    if run.deployment is not None:
        named: ColumnElement[bool] = _R.deployment == run.deployment
        return named
    if not run.target_model or run.method is None:
        return None
    names = ("engine", "served_model", "target_model", "draft_model", "method")
    return and_(*(_R[name] == getattr(run, name) for name in names), _R.deployment.is_(None))


def _may_share_release(run: Any, other: Any) -> bool:
    if run.engine_version is not None and other.engine_version is not None:
        return bool(run.engine_version == other.engine_version)
    return _releases(run).intersect(_releases(other)) is not None


def _releases(run: Any) -> ReleaseRange:
    first, last = (run.engine_version or end for end in (run.release_first, run.release_last))
    return ReleaseRange(*(None if end is None else Release.parse(end) for end in (first, last)))


def _run(connection: Connection, run_id: int) -> Any:
    return connection.execute(select(RUNS).where(_R.id == run_id)).one()


def _latest(connection: Connection, condition: ColumnElement[bool]) -> int | None:
    query = select(_R.id).where(condition).order_by(_R.started_at.desc(), _R.id.desc()).limit(1)
    return connection.execute(query).scalar_one_or_none()


def _ids(connection: Connection, condition: ColumnElement[bool] | None) -> list[int]:
    if condition is None:
        return []
    return list(connection.execute(select(_R.id).where(condition)).scalars())
