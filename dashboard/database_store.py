"""The store that pages and API read from: lists from stored judgements, single runs from diagnoses."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from analysis.compare import compare_views
from collector.domain.errors import UnknownName
from collector.domain.findings import Question, State
from collector.storage.drafts import find_draft, list_drafts, register_draft, remove_draft
from collector.storage.runs import StoredRun, list_runs
from collector.storage.states import list_state
from dashboard import names
from dashboard.deployments import model_of
from dashboard.diagnoses import Diagnoses
from dashboard.drafts import DraftDocument, RegisteredDraft, registered
from dashboard.history import history_of
from dashboard.store import ROW_QUANTITIES, Compared, RowFinding, RowVerdict, RunReport, RunRow

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
            while True:
                page = list_runs(connection, limit=_PAGE, following=following)
                rows += map(row_of_stored, page.runs)
                following = page.following
                if following is None:
                    return rows

    def list_state(self) -> str:
        """A text that changes when a run comes, goes or is judged again."""
        with self._diagnoses.database.reading() as connection:
            return list_state(connection)

    def report(self, run_id: str) -> RunReport:
        """One run, diagnosed."""
        diagnosed = self._diagnoses.of(run_number(run_id))
        with self._diagnoses.database.reading() as connection:
            return replace(diagnosed.report, history=history_of(connection, diagnosed))

    def compare(self, run_ids: Sequence[str]) -> Compared:
        """Runs side by side, each as it is diagnosed."""
        diagnosed = [self._diagnoses.of(run_number(run_id)) for run_id in run_ids]
        labels = [f"run {one.run.id}" for one in diagnosed]
        views = [one.diagnosis.subject for one in diagnosed]
        return Compared(compare_views(views, labels), tuple(one.report for one in diagnosed))

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


def run_number(text: str) -> int:
    """A run's number as it was typed.

    Raises:
        UnknownName: no run can have this number.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise UnknownName(f"no run has the id {text!r}", hint="draftscope runs list shows them")
    return int(text)


def row_of_stored(run: StoredRun) -> RunRow:
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
    )
