"""The history of a case, from what is stored: no run but the shown one is diagnosed for it."""

from __future__ import annotations

from typing import Final

from sqlalchemy import Connection

from analysis.causes.weighing import NONE_OF_THESE
from analysis.history import Judged, Offered, steps
from collector.storage.relations import previous_of
from collector.storage.runs import StoredRun, load_facts, load_stored
from dashboard.diagnoses import Diagnosed
from dashboard.store import HistoryEntry

MOST_RUNS: Final = 6
"""Runs that a history goes back over, the shown one included."""


def history_of(connection: Connection, diagnosed: Diagnosed) -> tuple[HistoryEntry, ...]:
    """The run and those before it in its deployment, the earliest first; empty where it is alone."""
    runs = [diagnosed.run]
    while len(runs) < MOST_RUNS and (earlier := previous_of(connection, runs[0].id)) is not None:
        if earlier in {run.id for run in runs}:
            break  # runs may be linked by hand, even in a ring
        runs.insert(0, load_stored(connection, earlier))
    if len(runs) == 1:
        return ()
    judged = [_stored(connection, run) for run in runs[:-1]]
    judged.append(_shown(connection, diagnosed))
    led = (None, *steps(judged))
    return tuple(
        HistoryEntry(
            str(run.id),
            run.started_at,
            None if run.engine_version is None else str(run.engine_version),
            run.summary.get("method") or run.serving.method,
            item.figures,
            step,
        )
        for run, item, step in zip(runs, judged, led, strict=True)
    )


def _stored(connection: Connection, run: StoredRun) -> Judged:
    return Judged(
        str(run.id),
        load_facts(connection, run.id),
        run.summary.get("quantities", {}),
        [Offered(**cause) for cause in run.summary.get("causes", ())],
        run.summary.get("refuted_causes", ()),
    )


def _shown(connection: Connection, diagnosed: Diagnosed) -> Judged:
    diagnosis, run = diagnosed.diagnosis, diagnosed.run
    causes = [Offered(cause.id, cause.title, cause.standing) for cause in diagnosis.causes if cause.id != NONE_OF_THESE]
    refuted = [cause.id for cause in diagnosis.refuted_causes]
    return Judged(str(run.id), load_facts(connection, run.id), diagnosed.report.subject["quantities"], causes, refuted)
