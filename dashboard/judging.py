"""Judging stored runs: the outcome is stored, and changes of findings are queued as alerts in the same transaction."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any, Final

from sqlalchemy import Connection, select

from analysis.base import catalogue
from analysis.causes.weighing import NONE_OF_THESE
from analysis.diagnosis import Diagnosis
from analysis.differences import changed_arguments
from analysis.drifting import acceptance_drift
from analysis.thresholds import Thresholds
from collector.domain.errors import StorageError, UnknownName
from collector.domain.runs import Role
from collector.storage.bulk import digest_of
from collector.storage.findings import Judgement, Transitions, save_judgement
from collector.storage.reports import save_report
from collector.storage.states import bundle_state, compared_with, judged_states, run_states
from collector.storage.tables import RUNS
from dashboard.alerts import Alerting, queue_alerts
from dashboard.diagnoses import Diagnosed, Diagnoses
from dashboard.history import step_into
from dashboard.pages.templating import product_version
from dashboard.store import RunReport, row_of
from dashboard.stored_reports import report_state, stored_report
from dashboard.watching import take_in

SWEEP_SECONDS: Final = 15.0
PATIENCE_SECONDS: Final = 60.0
"""A run whose data changes all the time is judged this often."""
MOST_JUDGED_WINDOWS: Final = 50_000
"""Decode windows up to which runs are judged right after they are stored; judging takes memory for each."""
SWEEP_SHARE: Final = 0.5
"""Share of the time between two sweeps that one may work: of many runs, those judged longest ago come first."""
MOST_TRIES: Final = 3
"""How often a judgement is begun anew because data came in meanwhile."""

EXPORTED_QUANTITIES: Final = (
    "acceptance_length",
    "max_acceptance_length",
    "expected_acceptance_length",
    "realistic_acceptance_length",
    "retained_share",
    "conditional_acceptance_rate",
    "draft_acceptance_rate",
    "acceptance_rate_at",
    "conditional_acceptance_rate_at",
    "verify_steps",
    "drafted_tokens",
    "accepted_tokens",
    "generated_tokens",
    "draft_depth",
    "verify_width",
    "generation_throughput",
    "step_seconds",
    "running_requests",
    "speedup",
    "step_cost_ratio",
    "break_even_acceptance_length",
)
"""The figures that are stored with a judgement, for lists of runs and the exporter."""

_LOG: Final = logging.getLogger(__name__)


def judge_runs(
    diagnoses: Diagnoses,
    run_ids: Iterable[int],
    alerting: Alerting,
    *,
    now: Callable[[], float] = time.time,
) -> dict[int, Diagnosed]:
    """Judge runs after their data changed, and before them those that are compared with one of them.

    Returns what was judged by run; a run whose data changes faster than it can be judged is left out.

    Raises:
        UnknownName: a run is not there.
        StorageError: the database refused; what was judged before stays judged.
    """
    chosen = list(dict.fromkeys(run_ids))
    with diagnoses.database.reading() as connection:
        others = compared_with(connection, chosen)
    # The chosen ones last: whoever is interrupted finds them unjudged, and begins with the others again.
    outcomes = {run_id: judge_run(diagnoses, run_id, alerting, now=now) for run_id in (*others, *chosen)}
    return {run_id: outcome for run_id, outcome in outcomes.items() if outcome is not None}


def judge_run(
    diagnoses: Diagnoses, run_id: int, alerting: Alerting, *, now: Callable[[], float] = time.time
) -> Diagnosed | None:
    """Judge one run, store the outcome and queue alerts; ``None`` where its data kept changing meanwhile.

    Raises:
        UnknownName: no run has this id.
    """
    for _ in range(MOST_TRIES):
        take_in(diagnoses.database, run_id)
        judged = diagnoses.of(run_id)
        with diagnoses.database.transaction() as connection:
            _lock(connection, run_id)
            if bundle_state(connection, run_id) == judged.state:
                store_judgement(connection, judged, diagnoses.thresholds, alerting, at=now())
                return judged
    return None


def judgement_of(diagnosis: Diagnosis, report: RunReport, *, state: str) -> Judgement:
    """What is stored of a diagnosis."""
    spoken = {item.rule for group in (diagnosis.findings, diagnosis.ruled_out, diagnosis.skipped, diagnosis.crashes)
              for item in group}  # fmt: skip
    return Judgement(
        headline=diagnosis.headline,
        verdicts=tuple(diagnosis.verdicts.values()),
        findings=diagnosis.findings,
        ruled_out=diagnosis.ruled_out,
        skipped=diagnosis.skipped,
        crashes=diagnosis.crashes,
        clear=tuple((rule.id, rule.name) for rule in catalogue() if rule.id not in spoken),
        summary=summary_of(diagnosis, report),
        state=state,
    )


def summary_of(diagnosis: Diagnosis, report: RunReport) -> Mapping[str, Any]:
    """What lists of runs and the exporter show, so that they need no diagnosis."""
    row = row_of(report)
    quantities = report.subject["quantities"]
    drift = acceptance_drift(diagnosis.subject, diagnosis.watched)
    previous = diagnosis.run(Role.PREVIOUS)
    return {
        "method": row.method,
        "target": row.target,
        "draft": row.draft,
        "quantities": {key: quantities[key] for key in EXPORTED_QUANTITIES if key in quantities},
        "baseline_throughput": row.baseline_throughput,
        "findings": [asdict(finding) for finding in row.findings],
        "causes": [
            {"id": cause.id, "title": cause.title, "standing": cause.standing}
            for cause in diagnosis.causes
            if cause.id != NONE_OF_THESE
        ],
        "refuted_causes": [cause.id for cause in diagnosis.refuted_causes],
        "recent": row.recent,
        "overridden": sum(argument.changed for argument in diagnosis.subject.arguments.values()),
        "changed": None if previous is None else len(changed_arguments(previous, diagnosis.subject)),
        "drift": None if drift is None else asdict(drift),
    }


def judged_as(state: str, thresholds: Thresholds) -> str:
    """What a judgement rests on besides the runs it compares with: data, limits and the product's release."""
    return digest_of(state, _limits(thresholds))


@cache
def _limits(thresholds: Thresholds) -> str:
    """Runs by the hundred are held against the same."""
    return digest_of(asdict(thresholds), product_version())


class Sweep:
    """Finds runs that were stored and not judged, by whatever program, and judges them."""

    def __init__(
        self,
        diagnoses: Diagnoses,
        alerting: Alerting,
        *,
        now: Callable[[], float] = time.time,
        spent: Callable[[], float] = time.thread_time,
    ) -> None:
        """``now`` gives seconds since 1970, ``spent`` seconds that the processor worked for this thread."""
        self._diagnoses = diagnoses
        self._alerting = alerting
        self._now = now
        self._spent = spent
        self._seen: dict[int, str] | None = None
        self._unjudged_since: dict[int, float] = {}
        self._failed: dict[int, str] = {}

    async def run(self, stop: asyncio.Event) -> None:
        """Sweep until told to stop; what goes wrong is tried again later."""
        while not stop.is_set():
            try:
                await asyncio.to_thread(self.sweep, stop.is_set)
            except StorageError as error:
                _LOG.warning("runs wait for the database to be judged: %s", error)
            try:
                await asyncio.wait_for(stop.wait(), SWEEP_SECONDS)
            except TimeoutError:
                continue

    def sweep(self, stopped: Callable[[], bool] = lambda: False) -> list[int]:
        """Judge what needs it and is not just being written, as far as time allows; returns the runs."""
        done: list[int] = []
        ends = self._spent() + SWEEP_SECONDS * SWEEP_SHARE
        for run_id in self._waiting():
            if stopped() or (done and self._spent() >= ends):
                break
            try:
                judge_runs(self._diagnoses, [run_id], self._alerting, now=self._now)
            except UnknownName:
                continue  # deleted meanwhile
            except StorageError:
                raise
            except Exception:  # noqa: BLE001 - logged with its traceback
                # The others go on, and this one is left alone until its data changes.
                _LOG.exception("run %d could not be judged: a fault of draftscope", run_id)
                self._failed[run_id] = (self._seen or {}).get(run_id, "")
                continue
            done.append(run_id)
        return done

    def _waiting(self) -> Sequence[int]:
        """Runs whose judgement is missing or of other data; one that changes right now waits for a while."""
        with self._diagnoses.database.reading() as connection:
            states = run_states(connection)
            judged = judged_states(connection)
        before, self._seen = self._seen, states
        now = self._now()
        self._unjudged_since = {
            run_id: self._unjudged_since.get(run_id, now) for run_id in states if run_id not in judged
        }

        def is_waiting(run_id: int, state: str) -> bool:
            known, at = judged.get(run_id, ("", self._unjudged_since.get(run_id, now)))
            if known == judged_as(state, self._diagnoses.thresholds) or self._failed.get(run_id) == state:
                return False
            return before is None or before.get(run_id) == state or at <= now - PATIENCE_SECONDS

        waiting = [run_id for run_id, state in states.items() if is_waiting(run_id, state)]
        return sorted(waiting, key=lambda run_id: judged.get(run_id, ("", 0.0))[1])


def store_judgement(
    connection: Connection, judged: Diagnosed, thresholds: Thresholds, alerting: Alerting, *, at: float
) -> Transitions:
    """Store a judgement with its report, and queue alerts of what changed by it."""
    state = judged_as(run_states(connection, [judged.run.id])[judged.run.id], thresholds)
    judgement = judgement_of(judged.diagnosis, judged.report, state=state)
    transitions = save_judgement(connection, judged.run.id, judgement, at=at)
    report = stored_report(judged.report, step_into(connection, judged), report_state(judged.state, thresholds))
    save_report(connection, judged.run.id, report)
    queue_alerts(connection, judged.run, transitions, alerting, at=at, causes=judged.diagnosis.causes)
    return transitions


def _lock(connection: Connection, run_id: int) -> None:
    """Two processes judge a run one after the other."""
    connection.execute(select(RUNS.c.id).where(RUNS.c.id == run_id).with_for_update())
