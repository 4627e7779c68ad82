"""The section on data of a run page: what was read, what was left out, which definitions are in use."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from dashboard import names
from dashboard.charts.drawn import Drawn, LeftOut
from dashboard.pages import figures
from dashboard.pages.figures import Figure
from dashboard.store import RunReport

KINDS: Final[Mapping[str, str]] = {
    "subject": "this run",
    "previous": "run before",
    "baseline": "run without speculation",
}
PRINTED_RATES: Final[Mapping[str, str]] = {
    "length/width": "length / verify width: counts the target's own token",
    "length/max_length": "length / (depth + 1): counts the target's own token",
    "accepted/drafted": "accepted / drafted: the target's own token not counted",
    "accepted/depth": "accepted / depth: the target's own token not counted",
    "length/depth": "length / depth: counts the target's own token, may exceed 1",
}
METHODS: Final[Mapping[str, str]] = {
    "ewc": "cosine-weighted over windows, 95%",
    "jackknife": "jackknife over requests, 95%",
    "conservative": "conservative, as there are few windows, 95%",
}


@dataclass(frozen=True, slots=True)
class SourceRow:
    """What was made of one source; the counts are "" for what is not read by lines."""

    source: str
    used_as: str
    lines: str
    understood: str
    unread: str
    notes: tuple[str, ...]
    shapes: tuple[Mapping[str, Any], ...]


@dataclass(frozen=True, slots=True)
class ComparedRun:
    """One of the runs that the diagnosis holds side by side."""

    role: str
    source: str
    started: str
    method: str
    speculates: bool
    length: Figure | None
    throughput: Figure | None
    step: Figure | None
    running: Figure | None


@dataclass(frozen=True, slots=True)
class DataSection:
    """What the section shows; ``more_left_out`` counts windows that are not listed."""

    lead: str
    sources: tuple[SourceRow, ...]
    left_out: tuple[LeftOut, ...]
    more_left_out: int
    definitions: tuple[tuple[str, str], ...]
    runs: tuple[ComparedRun, ...]


def data_section(report: RunReport, drawn: Drawn) -> DataSection:
    """Everything about the inputs that the document holds, with the windows that were left out."""
    readings: Mapping[str, Mapping[str, Any]] = report.document["reading"]
    return DataSection(
        lead=_lead(readings),
        sources=tuple(_source(name, reading) for name, reading in readings.items()),
        left_out=tuple(drawn.left_out),
        more_left_out=drawn.more_left_out,
        definitions=tuple(_definitions(report)),
        runs=tuple(_compared(run) for run in report.document["runs"]),
    )


def _lead(readings: Mapping[str, Mapping[str, Any]]) -> str:
    unread = sum(reading["unread"] for reading in readings.values())
    files = figures.plural(len(readings), "source")
    if unread == 0:
        return f"{files} read, every line of the engine understood."
    total = sum(reading["engine_lines"] for reading in readings.values())
    return f"{files} read; {figures.count(unread)} of {figures.count(total)} lines of the engine were not understood."


def _source(name: str, reading: Mapping[str, Any]) -> SourceRow:
    notes = list(reading["notes"])
    if reading["torn_samples"]:
        notes.append(f"{figures.plural(reading['torn_samples'], 'sample line')} could not be read.")
    if reading["oversize_lines"]:
        notes.append(f"{figures.plural(reading['oversize_lines'], 'line')} longer than the cap were dropped.")
    role = KINDS.get(reading["role"], reading["role"])
    counted = reading["lines"] > 0 or "log" in reading["kind"]

    def count(key: str) -> str:
        return figures.count(reading[key]) if counted else ""

    return SourceRow(
        source=name,
        used_as=", ".join(part for part in (reading["kind"], role) if part),
        lines=count("lines"),
        understood=count("understood"),
        unread=count("unread"),
        notes=tuple(notes),
        shapes=tuple(reading["unread_shapes"]),
    )


def _definitions(report: RunReport) -> list[tuple[str, str]]:
    rows = []
    printed = report.quantity("printed_rate_definition")
    if printed is not None:
        rows.append(("Printed accept rate", PRINTED_RATES.get(printed["value"], str(printed["value"]))))
    length = report.quantity("acceptance_length")
    if length is not None:
        method = length.get("method")
        if method:
            windows = length.get("windows")
            rested = f", {figures.plural(windows, 'window')}" if windows else ""
            note = f"; {length['note']}" if length.get("note") else ""
            rows.append(("Interval", f"{METHODS.get(method, method)}{rested}{note}"))
        steps = length.get("verify_steps")
        if steps:
            rows.append(("Rests on", f"{figures.plural(round(steps), 'verify step')}"))
    healthy, promised = report.number("realistic_acceptance_length"), report.number("expected_acceptance_length")
    if healthy is not None and promised is not None and promised > 1:
        kept = figures.percent((healthy - 1) / (promised - 1))
        depth = report.number("draft_depth")
        at = f" at depth {depth:g}" if depth is not None else ""
        rows.append(("Healthy level", f"{kept} of promised drafts{at}, assumed from published traces"))
    if report.document["payoff"] and report.document["payoff"]["usual_step_cost"] is not None:
        usual = figures.significant(report.document["payoff"]["usual_step_cost"])
        rows.append(("Usual step cost", f"{usual} plain steps, assumed for this kind of target"))
    rows.append(("Times", "as the server wrote them; a log without a zone is read as UTC"))
    return rows


def _compared(run: Mapping[str, Any]) -> ComparedRun:
    def shown(key: str) -> Figure | None:
        return figures.figure(key, run["quantities"].get(key))

    role = names.ROLES[run["role"]]
    speculates = run["method"] is not None
    return ComparedRun(
        role=role,
        source=run["source"],
        started=figures.instant(run["started_at"]) if run["started_at"] is not None else "not stated",
        method=names.method(run["method"], speculates=speculates),
        speculates=speculates,
        length=shown("acceptance_length") if speculates else None,
        throughput=shown("generation_throughput"),
        step=shown("step_seconds"),
        running=shown("running_requests"),
    )
