"""Diagnosed runs for web and browser tests: documents and windows as the analysis made them of recorded cases."""

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pandas as pd

from collector.domain.errors import UnknownName
from collector.domain.runs import Role
from collector.storage.drafts import StoredDraft
from dashboard.drafts import DraftDocument, RegisteredDraft, registered
from dashboard.store import RunReport, RunRow, row_of

DATA = Path(__file__).parent / "data"
TEXT = ("unit", "left_out", "counted", "steady")


@dataclass
class ListStore:
    """Reports held in memory, the latest first; the registry of drafts is a list as well."""

    reports: Sequence[RunReport]
    registry: list[RegisteredDraft] = field(default_factory=list)

    def list_runs(self) -> Sequence[RunRow]:
        return [row_of(report) for report in self.reports]

    def list_state(self) -> str:
        return " ".join(report.id for report in self.reports)

    def report(self, run_id: str) -> RunReport:
        for report in self.reports:
            if report.id == run_id:
                return report
        raise UnknownName(f"no run has the id {run_id!r}", hint="GET /api/v1/runs lists them")

    def frame(self, run_id: str, role: Role) -> pd.DataFrame | None:
        return self.report(run_id).frame(role)

    def drafts(self) -> Sequence[RegisteredDraft]:
        return self.registry

    def add_draft(self, draft: DraftDocument) -> RegisteredDraft:
        name, config, validations = draft.parts("API")
        stored = StoredDraft(len(self.registry) + 1, name, config, tuple(validations), registered_at=1_700_000_000.0)
        self.registry.append(registered(stored))
        return self.registry[-1]

    def remove_draft(self, draft_id: int) -> None:
        kept = [draft for draft in self.registry if draft.id != draft_id]
        if len(kept) == len(self.registry):
            raise UnknownName(f"no draft is registered under {draft_id}")
        self.registry[:] = kept


def load_report(name: str, run_id: str) -> RunReport:
    """A recorded case: its document, and the windows of each of its runs."""
    document = json.loads((DATA / f"{name}.json").read_text())
    frames = {run["role"]: load_windows(f"{name}-{run['role']}") for run in document["runs"]}
    return RunReport(run_id, document, frames)


def load_windows(name: str) -> pd.DataFrame:
    frame = pd.read_csv(DATA / f"{name}.csv", keep_default_na=False)
    numbers = {column: pd.to_numeric(frame[column]) for column in frame.columns if column not in TEXT}
    return frame.assign(**numbers)


def altered(report: RunReport, change: Callable[[dict[str, Any]], object], **fields: Any) -> RunReport:
    """The same report with its document changed in place by ``change``."""
    document = copy.deepcopy(dict(report.document))
    change(document)
    return replace(report, document=document, **fields)
