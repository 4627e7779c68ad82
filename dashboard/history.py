"""The history of a case, from what is stored: no run but the shown one is diagnosed for it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any, Final

from sqlalchemy import Connection

from analysis.causes.weighing import NONE_OF_THESE
from analysis.history import Judged, Offered, Step, fates, steps
from collector.domain.runs import Role
from collector.storage.relations import previous_of
from collector.storage.reports import load_steps
from collector.storage.runs import StoredRun, load_stored
from dashboard.diagnoses import Diagnosed
from dashboard.store import HistoryEntry, RunReport
from dashboard.stored_reports import step_of

MOST_RUNS: Final = 6
"""Runs that a history goes back over, the shown one included."""


def history_of(
    connection: Connection, run: StoredRun, report: RunReport, step: Step | None
) -> tuple[HistoryEntry, ...]:
    """The run and those before it in its deployment, the earliest first; empty where it is alone.

    ``step`` is what led to the run itself (:func:`step_into`).
    """
    runs = [run]
    while len(runs) < MOST_RUNS and (earlier := previous_of(connection, runs[0].id)) is not None:
        if earlier in {known.id for known in runs}:
            break  # runs may be linked by hand, even in a ring
        runs.insert(0, load_stored(connection, earlier))
    if len(runs) == 1:
        return ()
    stored = load_steps(connection, [known.id for known in runs[1:-1]])
    known_steps = {run_id: step_of(document) for run_id, document in stored.items()}
    if step is not None:
        known_steps[run.id] = step
    judged = [*(_as_judged(known.summary) for known in runs[:-1]), _as_shown(report)]
    led = [
        None,
        *(_led(known_steps.get(known.id), *pair) for known, pair in zip(runs[1:], pairwise(judged), strict=True)),
    ]
    return tuple(
        HistoryEntry(
            str(known.id),
            known.started_at,
            None if known.engine_version is None else str(known.engine_version),
            known.summary.get("method") or known.serving.method,
            outcome["quantities"],
            led_to,
        )
        for known, outcome, led_to in zip(runs, judged, led, strict=True)
    )


def _as_judged(summary: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "quantities": summary.get("quantities", {}),
        "causes": [Offered(**cause) for cause in summary.get("causes", ())],
        "refuted": summary.get("refuted_causes", ()),
    }


def _as_shown(report: RunReport) -> dict[str, Any]:
    document = report.document
    return {
        "quantities": report.subject["quantities"],
        "causes": [
            Offered(cause["cause"], cause["title"], cause["standing"])
            for cause in document["causes"]
            if cause["cause"] != NONE_OF_THESE
        ],
        "refuted": [cause["cause"] for cause in document["refuted_causes"]],
    }


def _led(step: Step | None, before: Mapping[str, Any], after: Mapping[str, Any]) -> Step | None:
    """A step with what became of the hypotheses, which later judgements of either run may change."""
    if step is None:
        return None
    return replace(step, fates=tuple(fates(before["causes"], after["causes"], after["refuted"], step.changes)))


def step_into(connection: Connection, diagnosed: Diagnosed) -> Step | None:
    """What led to a run from the one before it, but for the fates of hypotheses; ``None`` where none came before."""
    report, previous = diagnosed.report, diagnosed.diagnosis.run(Role.PREVIOUS)
    earlier = None if previous is None else previous_of(connection, diagnosed.run.id)
    figures = report.run(Role.PREVIOUS)
    if previous is None or earlier is None or figures is None:
        return None
    before = Judged(str(earlier), previous.record, figures["quantities"])
    return steps([before, Judged(report.id, diagnosed.diagnosis.subject.record, report.subject["quantities"])])[0]
