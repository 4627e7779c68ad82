"""What pages and API read: diagnosed runs. The database behind it is somebody else's business."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

import pandas as pd

from analysis.compare import Comparison
from analysis.diagnosis import Diagnosis
from analysis.history import Step
from collector.domain.arguments import UNSEEN
from collector.domain.runs import Role
from dashboard import names
from dashboard.charts.drawn import Drawn
from dashboard.drafts import DraftDocument, RegisteredDraft

ROW_QUANTITIES: Final = (
    "acceptance_length",
    "max_acceptance_length",
    "realistic_acceptance_length",
    "expected_acceptance_length",
    "draft_depth",
    "verify_width",
    "generation_throughput",
    "running_requests",
    "speedup",
    "break_even_acceptance_length",
)
"""The figures a list of runs shows."""

RECENT_WINDOWS: Final = 48
"""Windows of the small line in a list of runs."""


@dataclass(frozen=True, slots=True)
class HistoryEntry:
    """One run of a deployment's history; ``step`` is what led to it from the run before, ``None`` at the first.

    ``method`` is "" where the run does not speculate.
    """

    id: str
    started_at: float | None
    engine_version: str | None
    method: str | None
    figures: Mapping[str, Mapping[str, Any]]
    step: Step | None


@dataclass(frozen=True, slots=True)
class RunReport:
    """One diagnosed run.

    ``document`` is the diagnosis document that API, pages and report all show, ``frames`` the
    windows of each of its runs by role (columns of :func:`analysis.frame.window_frame`).
    ``sample`` marks a run that was shipped with the product. ``history`` has the run itself last,
    and is empty where nothing came before it. ``watched`` says that an engine's live metrics are read for it.
    A report as it was stored has no frames: ``drawn`` is what pages draw of them, ``judged_at`` when that was (seconds
    since 1970), and ``version`` differs from that of any other report of the run.
    """

    id: str
    document: Mapping[str, Any]
    frames: Mapping[str, pd.DataFrame] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    sample: bool = False
    history: Sequence[HistoryEntry] = ()
    watched: bool = False
    drawn: Drawn | None = None
    judged_at: float | None = None
    version: str = ""

    @classmethod
    def of(
        cls,
        run_id: str,
        diagnosis: Diagnosis,
        labels: Mapping[str, str] | None = None,
        *,
        sample: bool = False,
        watched: bool = False,
    ) -> RunReport:
        """The report of a diagnosis."""
        frames = {view.role.value: view.frame for view in diagnosis.runs}
        return cls(run_id, diagnosis.document(), frames, labels or {}, sample, watched=watched)

    @property
    def subject(self) -> Mapping[str, Any]:
        """The judged run as the document has it."""
        runs: Sequence[Mapping[str, Any]] = self.document["runs"]
        return runs[0]

    def run(self, role: Role) -> Mapping[str, Any] | None:
        """The run in a role as the document has it, if it is there."""
        return next((run for run in self.document["runs"] if run["role"] == role.value), None)

    def frame(self, role: Role = Role.SUBJECT) -> pd.DataFrame | None:
        """The windows of the run in a role; ``None`` where it has none."""
        frame = self.frames.get(role.value)
        return None if frame is None or frame.empty else frame

    def quantity(self, key: str, role: Role = Role.SUBJECT) -> Mapping[str, Any] | None:
        """A figure of the run in a role as the document has it."""
        run = self.run(role)
        estimate: Mapping[str, Any] | None = run["quantities"].get(key) if run else None
        return estimate

    def number(self, key: str, role: Role = Role.SUBJECT) -> float | None:
        """The bare number of a figure, where there is one."""
        estimate = self.quantity(key, role)
        value = estimate["value"] if estimate else None
        return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None

    @property
    def baseline_throughput(self) -> float | None:
        """Throughput without speculation: what the pay-off was worked out from, else the run without it."""
        payoff = self.document["payoff"]
        if payoff is not None:
            return float(payoff["baseline_throughput"])
        return self.number("generation_throughput", Role.BASELINE)

    def runs_with(self, argument: str) -> Any:
        """What an argument runs with as far as known: effective, else predicted, else requested, else ``UNSEEN``."""
        stated = self.subject["arguments"].get(argument, {})
        for kind in ("effective", "predicted", "requested"):
            if kind in stated:
                return stated[kind]
        return UNSEEN


@dataclass(frozen=True, slots=True)
class RowVerdict:
    """A verdict in a list of runs."""

    state: str
    summary: str


@dataclass(frozen=True, slots=True)
class RowFinding:
    """A finding in a list of runs."""

    rule: str
    name: str
    severity: str
    scope: str
    title: str


@dataclass(frozen=True, slots=True)
class RunRow:
    """One run in a list.

    ``quantities`` hold those of :data:`ROW_QUANTITIES` that are known, as in the diagnosis
    document; ``recent`` the acceptance lengths of the last windows that count. ``group`` names what a watched run's
    figures are added up with, "" for runs that are not watched.
    """

    id: str
    engine: str
    engine_version: str | None
    method: str | None
    target: str
    draft: str
    source: str
    started_at: float | None
    ended_at: float | None
    headline: str
    verdicts: dict[str, RowVerdict]
    quantities: dict[str, dict[str, Any]]
    baseline_throughput: float | None
    findings: list[RowFinding]
    recent: list[float]
    labels: dict[str, str] = field(default_factory=dict)
    sample: bool = False
    group: str = ""


def row_of(report: RunReport) -> RunRow:
    """The row a list shows for a diagnosed run."""
    subject = report.subject
    frame = report.frame()
    return RunRow(
        id=report.id,
        engine=subject["engine"],
        engine_version=subject["engine_version"],
        method=subject["method"],
        target=names.target(report.runs_with),
        draft=names.draft(report.runs_with),
        source=subject["source"],
        started_at=subject["started_at"],
        ended_at=subject["ended_at"],
        headline=report.document["headline"],
        verdicts={
            question: RowVerdict(verdict["state"], verdict["summary"])
            for question, verdict in report.document["verdicts"].items()
        },
        quantities={key: subject["quantities"][key] for key in ROW_QUANTITIES if key in subject["quantities"]},
        baseline_throughput=report.baseline_throughput,
        findings=[
            RowFinding(f["rule"], f["name"], f["severity"], f["scope"], f["title"]) for f in report.document["findings"]
        ],
        recent=list(report.drawn.recent) if report.drawn else [] if frame is None else recent_lengths(frame),
        labels=dict(report.labels),
        sample=report.sample,
    )


def recent_lengths(frame: pd.DataFrame) -> list[float]:
    """The acceptance lengths of the last windows that count, at most :data:`RECENT_WINDOWS`."""
    lengths = frame.loc[frame["counted"], "acceptance_length"].dropna()
    return [round(float(length), 4) for length in lengths.tail(RECENT_WINDOWS)]


@dataclass(frozen=True, slots=True)
class Compared:
    """Runs side by side; ``reports`` are in the order of the comparison."""

    comparison: Comparison
    reports: tuple[RunReport, ...]


class RunStore(Protocol):
    """Where diagnosed runs come from."""

    def list_runs(self) -> Sequence[RunRow]:
        """All runs, the latest first."""
        ...

    def list_state(self) -> str:
        """A text that changes when the list of runs does."""
        ...

    def report(self, run_id: str) -> RunReport:
        """One run.

        Raises:
            UnknownName: no run has this id.
        """
        ...

    def frame(self, run_id: str, role: Role) -> pd.DataFrame | None:
        """All windows of the run in a role (columns of :func:`analysis.frame.window_frame`); ``None`` where it has none.

        Raises:
            UnknownName: no run has this id.
        """
        ...

    def earliest_first(self, run_ids: Sequence[str]) -> list[str]:
        """These runs in the order in which they began.

        Raises:
            UnknownName: no run has one of these ids.
        """
        ...

    def compare(self, run_ids: Sequence[str]) -> Compared:
        """Two or more runs side by side; the first is what the others are held against.

        Raises:
            UnknownName: no run has one of these ids.
        """
        ...

    def drafts(self) -> Sequence[RegisteredDraft]:
        """All registered drafts, by name."""
        ...

    def add_draft(self, draft: DraftDocument) -> RegisteredDraft:
        """Register a draft; safe to repeat.

        Raises:
            InputError: a figure is not possible.
        """
        ...

    def remove_draft(self, draft_id: int) -> None:
        """Take a draft out of the registry.

        Raises:
            UnknownName: none has this id.
        """
        ...
