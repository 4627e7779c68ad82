"""The store that pages and API read from: lists from stored judgements, single runs from diagnoses."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import pandas as pd
from sqlalchemy import Connection

from analysis.compare import compare_views
from analysis.drafting import Drafting
from analysis.history import Step, view_of_figures
from analysis.view import RunView
from collector.domain.errors import UnknownName
from collector.domain.findings import Question, State
from collector.domain.runs import Role, RunRecord
from collector.storage.drafts import find_draft, list_drafts, register_draft, remove_draft
from collector.storage.live import group_name, streams_of, watched_runs
from collector.storage.reports import StoredReport, load_report
from collector.storage.runs import StoredRun, earliest_first, list_runs, load_facts, load_stored
from collector.storage.states import bundle_state, list_state
from dashboard import names
from dashboard.deployments import model_of
from dashboard.diagnoses import Diagnoses
from dashboard.drafts import DraftDocument, RegisteredDraft, registered
from dashboard.history import history_of, step_into
from dashboard.store import ROW_QUANTITIES, Compared, RowFinding, RowVerdict, RunReport, RunRow
from dashboard.stored_reports import report_of, report_state, step_of

_PAGE = 500
_NOT_JUDGED = RowVerdict(State.CANNOT_TELL.value, "Not judged yet.")


class DatabaseStore:
    """Runs of a database (:class:`dashboard.store.RunStore`)."""

    def __init__(self, diagnoses: Diagnoses) -> None:
        self._diagnoses = diagnoses

    def list_runs(self) -> Sequence[RunRow]:
        """All runs, the latest first, as they were judged last."""
        rows: list[RunRow] = []
        following = None
        with self._diagnoses.database.reading() as connection:
            watched = watched_runs(connection)
            while True:
                page = list_runs(connection, limit=_PAGE, following=following)
                rows += (row_of_stored(run, watched=run.id in watched) for run in page.runs)
                following = page.following
                if following is None:
                    return rows

    def list_state(self) -> str:
        """A text that changes when a run comes, goes or is judged again."""
        with self._diagnoses.database.reading() as connection:
            return list_state(connection)

    def report(self, run_id: str) -> RunReport:
        """One run as it was judged last; where that was on other data, it is diagnosed.

        The data of an engine that is watched changes with every scrape: of its run the last judgement is given.
        """
        run, report, step = self._judged(run_number(run_id))
        with self._diagnoses.database.reading() as connection:
            return replace(report, history=history_of(connection, run, report, step))

    def _judged(self, run_id: int) -> tuple[StoredRun, RunReport, Step | None]:
        """A run, its report without a history, and what led to it from the run before."""
        with self._diagnoses.database.reading() as connection:
            run = load_stored(connection, run_id)
            stored = load_report(connection, run_id)
            if stored is not None and self._stands(connection, stored, run_id):
                report = report_of(stored, run)
                if report is not None:
                    return run, report, None if stored.step is None else step_of(stored.step)
        diagnosed = self._diagnoses.of(run_id)
        with self._diagnoses.database.reading() as connection:
            return diagnosed.run, diagnosed.report, step_into(connection, diagnosed)

    def _stands(self, connection: Connection, stored: StoredReport, run_id: int) -> bool:
        """Whether a stored report still says how the run is."""
        if streams_of(connection, [run_id]):
            return True
        return stored.state == report_state(bundle_state(connection, run_id), self._diagnoses.thresholds)

    def frame(self, run_id: str, role: Role) -> pd.DataFrame | None:
        """All windows of a run, diagnosed."""
        return self._diagnoses.of(run_number(run_id)).report.frame(role)

    def earliest_first(self, run_ids: Sequence[str]) -> list[str]:
        """These runs in the order in which they began."""
        with self._diagnoses.database.reading() as connection:
            return [str(number) for number in earliest_first(connection, [run_number(run_id) for run_id in run_ids])]

    def compare(self, run_ids: Sequence[str]) -> Compared:
        """Runs side by side, each as it was judged last."""
        reports = tuple(self._judged(run_number(run_id))[1] for run_id in run_ids)
        with self._diagnoses.database.reading() as connection:
            views = [_view(load_facts(connection, run_number(report.id)), report) for report in reports]
        return Compared(compare_views(views, [f"run {report.id}" for report in reports]), reports)

    def drafts(self) -> Sequence[RegisteredDraft]:
        """All registered drafts, by name."""
        with self._diagnoses.database.reading() as connection:
            return [registered(draft) for draft in list_drafts(connection, registered=True)]

    def add_draft(self, draft: DraftDocument) -> RegisteredDraft:
        """Register a draft."""
        name, config, validations = draft.parts("API")
        with self._diagnoses.database.transaction() as connection:
            draft_id = register_draft(connection, name, config, validations, at=time.time())
            return registered(find_draft(connection, str(draft_id)))

    def remove_draft(self, draft_id: int) -> None:
        """Take a draft out of the registry."""
        with self._diagnoses.database.transaction() as connection:
            remove_draft(connection, draft_id)


def _view(record: RunRecord, report: RunReport) -> RunView:
    """A run as the analysis sees it, from its facts and the figures of its report; there are no windows."""
    view = view_of_figures(record, report.subject["quantities"])
    depth, width = report.number("draft_depth"), report.number("verify_width")
    view.drafting = Drafting(
        report.subject["method"],
        depth=None if depth is None else round(depth),
        width=None if width is None else round(width),
    )
    return view


def run_number(text: str) -> int:
    """A run's number as it was typed.

    Raises:
        UnknownName: no run can have this number.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise UnknownName(f"no run has the id {text!r}", hint="draftscope runs list shows them")
    return int(text)


def row_of_stored(run: StoredRun, *, watched: bool = False) -> RunRow:
    """The row of a run; one that nobody judged yet says so."""
    summary: Mapping[str, Any] = run.summary
    quantities = summary.get("quantities", {})
    return RunRow(
        id=str(run.id),
        engine=run.engine,
        engine_version=None if run.engine_version is None else str(run.engine_version),
        method=summary.get("method", run.serving.method or None),
        target=summary.get("target", model_of(run)),
        draft=summary.get("draft", names.model(run.serving.draft_model)),
        source=run.source,
        started_at=run.started_at,
        ended_at=run.ended_at,
        headline=run.headline,
        verdicts={
            question.value: RowVerdict(verdict.state.value, verdict.summary)
            if (verdict := run.verdicts.get(question))
            else _NOT_JUDGED
            for question in Question
        },
        quantities={key: quantities[key] for key in ROW_QUANTITIES if key in quantities},
        baseline_throughput=summary.get("baseline_throughput"),
        findings=[RowFinding(**finding) for finding in summary.get("findings", ())],
        recent=list(summary.get("recent", ())),
        labels=dict(run.labels),
        sample=run.sample,
        group=_group(run) if watched else "",
    )


def _group(run: StoredRun) -> str:
    serving = run.serving
    models = serving.served_model, serving.target_model, serving.draft_model
    return group_name(run.deployment, run.engine, *models, serving.method)
