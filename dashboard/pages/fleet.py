"""The list of runs: grouped, filtered, worst first."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import groupby
from math import ceil, inf
from typing import Any, Final
from urllib.parse import urlencode

from collector.domain.findings import Question, State
from dashboard import names
from dashboard.pages import figures
from dashboard.pages.figures import Figure
from dashboard.pages.verdicts import MARKS, STATES
from dashboard.store import RowFinding, RunRow

MOST_ROWS: Final = 100
"""Runs on one page; more follow on further pages."""
AXIS_END: Final = 6.0
"""Right end of the common axis of acceptance lengths; its left end is 1."""
SHOWN_FINDINGS: Final = 3
_SEVERITY_ORDER: Final = {"critical": 0, "warning": 1, "info": 2}


class Order(StrEnum):
    """How rows are ordered."""

    WORST = "worst"
    LATEST = "latest"
    SPEEDUP = "speedup"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Query:
    """What of the list is wanted; empty fields want everything."""

    text: str = ""
    state: str = ""
    engine: str = ""
    order: Order = Order.WORST
    page: int = 1

    def address(self, page: int) -> str:
        """Where another page of the same is."""
        order = "" if self.order is Order.WORST else self.order.value
        asked = {"q": self.text, "state": self.state, "engine": self.engine, "order": order, "page": page}
        return f"/?{urlencode({name: value for name, value in asked.items() if value})}"

    def wants(self, row: RunRow) -> bool:
        """Whether a run is wanted. Every word of the text must be found in its names or findings."""
        if self.state and not _shows(_states(row), self.state):
            return False
        if self.engine and row.engine != self.engine:
            return False
        words = self.text.lower().split()
        if not words:
            return True
        haystack = _searchable(row)
        return all(word in haystack for word in words)

    @property
    def filtered(self) -> bool:
        """Whether anything is left out on purpose."""
        return bool(self.text.strip() or self.state or self.engine)


@dataclass(frozen=True, slots=True)
class Bullet:
    """A length on the common axis; all positions in percent of it, ``label`` says the same in words."""

    label: str
    track: float
    value: float
    low: float | None
    interval_width: float
    healthy: float | None
    healthy_width: float
    break_even: float | None


@dataclass(frozen=True, slots=True)
class Mark:
    """One verdict as a mark with its words."""

    state: str
    label: str


@dataclass(frozen=True, slots=True)
class FleetRow:
    """One run."""

    id: str
    name: str
    sub: str
    group: str
    sample: bool
    marks: tuple[Mark, ...]
    length: Figure | None
    length_note: str
    bullet: Bullet | None
    speedup: str
    pay_state: str
    pay_note: str
    spark: str
    spark_label: str
    findings: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class FleetGroup:
    """Runs of one target, draft, method and engine; ``watched`` names the groups whose figures are kept over time."""

    title: str
    sub: str
    rows: tuple[FleetRow, ...]
    watched: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Stretch:
    """Which of the wanted runs one page shows, counted from 1; where those before and after are, "" where there are none."""

    first: int
    last: int
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class FleetPage:
    """Everything the template shows; counts are over all runs, rows over the wanted ones.

    ``stretch`` is ``None`` where one page holds all of these.
    """

    statement: str
    total: int
    problems: int
    unknown: int
    fine: int
    shown: int
    stretch: Stretch | None
    query: Query
    engines: tuple[tuple[str, str], ...]
    groups: tuple[FleetGroup, ...]


def _states(row: RunRow) -> set[str]:
    return {verdict.state for verdict in row.verdicts.values()}


def _shows(states: set[str], wanted: str) -> bool:
    """Whether a run with these verdicts counts as in a state; as OK where nothing else was found."""
    if wanted == State.OK.value and states - {State.OK.value, State.NOT_APPLICABLE.value}:
        return False
    return wanted in states


def fleet_page(rows: Sequence[RunRow], query: Query) -> FleetPage:
    """The page for all runs (latest first) and what of them is wanted."""
    states = [_states(row) for row in rows]
    problems, unknown, fine = (
        sum(_shows(found, state) for found in states) for state in (State.PROBLEM, State.CANNOT_TELL, State.OK)
    )
    wanted = in_order([row for row in rows if query.wants(row)], query.order)
    stretch = _stretch(len(wanted), query)
    groups: dict[tuple[str, ...], list[RunRow]] = {}
    for row in wanted if stretch is None else wanted[stretch.first - 1 : stretch.last]:
        groups.setdefault((row.target, row.draft, row.method or "", row.engine), []).append(row)
    return FleetPage(
        statement=_statement(rows, problems, unknown),
        total=len(rows),
        problems=problems,
        unknown=unknown,
        fine=fine,
        shown=len(wanted),
        stretch=stretch,
        query=query,
        engines=tuple((key, names.engine(key)) for key, _ in groupby(sorted(row.engine for row in rows)) if key),
        groups=tuple(_group(members) for members in groups.values()),
    )


def _stretch(wanted: int, query: Query) -> Stretch | None:
    """What the asked page shows; the last one where it lies beyond."""
    if wanted <= MOST_ROWS:
        return None
    page = min(max(query.page, 1), ceil(wanted / MOST_ROWS))
    last = min(page * MOST_ROWS, wanted)
    return Stretch(
        (page - 1) * MOST_ROWS + 1,
        last,
        query.address(page - 1) if page > 1 else "",
        query.address(page + 1) if last < wanted else "",
    )


def in_order(rows: Sequence[RunRow], order: Order) -> list[RunRow]:
    """Rows in an order; within it the given order stays."""
    match order:
        case Order.LATEST:
            return list(rows)
        case Order.NAME:
            return sorted(rows, key=lambda row: (row.target.lower(), row.draft.lower()))
        case Order.SPEEDUP:
            return sorted(rows, key=lambda row: inf if (speedup := _number(row, "speedup")) is None else speedup)
        case Order.WORST:
            return sorted(rows, key=_badness)


def _badness(row: RunRow) -> tuple[int, int, float]:
    """Problems first, then gaps; among equals the worse finding, then the slower run."""
    states = [verdict.state for verdict in row.verdicts.values()]
    worst = min((_SEVERITY_ORDER[finding.severity] for finding in row.findings), default=9)
    rank = 0 if State.PROBLEM in states else 1 if State.CANNOT_TELL in states else 2
    return rank, worst, _number(row, "speedup") or 1.0


def _searchable(row: RunRow) -> str:
    words = [row.id, row.target, row.draft, row.method or "", row.engine, row.source, *row.labels.values()]
    for finding in row.findings:
        words += [finding.rule, finding.name, finding.title]
    return " ".join(words).lower()


def _statement(rows: Sequence[RunRow], problems: int, unknown: int) -> str:
    slower = sum((_number(row, "speedup") or 1.0) < 1.0 for row in rows)
    total = figures.plural(len(rows), "run")
    if slower:
        verb = "is" if slower == 1 else "are"
        return f"{figures.count(slower)} of {total} {verb} slower than without speculation"
    if problems:
        return f"{figures.count(problems)} of {total} {'has' if problems == 1 else 'have'} a problem"
    if unknown:
        return f"No problem found; {figures.count(unknown)} of {total} could not be judged in full"
    return f"{total}, no problem found"


def _group(members: Sequence[RunRow]) -> FleetGroup:
    first = members[0]
    watched = tuple(sorted({row.group for row in members if row.group}))
    return FleetGroup(first.target or "Target not stated", _of(first), tuple(map(fleet_row, members)), watched)


def _of(first: RunRow) -> str:
    off = first.verdicts[Question.ACCEPTANCE.value].state == State.NOT_APPLICABLE
    parts = [names.method(first.method, speculates=False if off else None), names.engine(first.engine)]
    if first.draft:
        parts.insert(1, f"draft {first.draft}")
    return ", ".join(parts)


def fleet_row(row: RunRow) -> FleetRow:
    """One run as lists show it."""
    healthy = _number(row, "realistic_acceptance_length")
    length = figures.figure("acceptance_length", row.quantities.get("acceptance_length"))
    speedup = _number(row, "speedup")
    own = _number(row, "generation_throughput")
    return FleetRow(
        id=row.id,
        name=figures.instant(row.started_at) if row.started_at is not None else row.source,
        sub=_sub(row),
        group=f"{row.target or 'target not stated'}, {_of(row)}",
        sample=row.sample,
        marks=tuple(
            Mark(state, f"{label}: {STATES[State(state)]}")
            for question, label in MARKS.items()
            for state in [row.verdicts[question.value].state]
        ),
        length=length,
        length_note=f"healthy from {figures.length(healthy)}" if healthy is not None else "no validation figure",
        bullet=_bullet(row),
        speedup="" if speedup is None else figures.factor(speedup),
        pay_state=row.verdicts[Question.PAYOFF.value].state,
        pay_note=_pay_note(row, own),
        spark=spark_points(row.recent),
        spark_label=f"length over the last windows, {min(row.recent):.2f} to {max(row.recent):.2f}"
        if row.recent
        else "",
        findings=tuple(_findings(row.findings)),
    )


def _sub(row: RunRow) -> str:
    depth, width = _number(row, "draft_depth"), _number(row, "verify_width")
    parts = []
    if depth is not None and depth.is_integer():
        parts.append(figures.plural(int(depth), "step"))
    if width is not None and depth is not None and width != depth + 1:
        parts.append(f"{width:g} tokens verified")
    return ", ".join([*parts, row.source])


def _pay_note(row: RunRow, own: float | None) -> str:
    if own is None:
        return ""
    speed = figures.significant(own)
    if row.baseline_throughput is None:
        return f"{speed} tok/s"
    return f"{speed}, plain {figures.significant(row.baseline_throughput)} tok/s"


def _findings(findings: Sequence[RowFinding]) -> list[tuple[str, str]]:
    """The worst findings of a warning or above; the rest is counted."""
    serious = sorted(
        (finding for finding in findings if finding.severity != "info"),
        key=lambda finding: _SEVERITY_ORDER[finding.severity],
    )
    if len(serious) <= SHOWN_FINDINGS:
        return [(finding.severity, finding.title) for finding in serious]
    shown, rest = serious[: SHOWN_FINDINGS - 1], serious[SHOWN_FINDINGS - 1 :]
    return [*((finding.severity, finding.title) for finding in shown), (rest[0].severity, f"{len(rest)} more")]


def _bullet(row: RunRow) -> Bullet | None:
    value, most = _number(row, "acceptance_length"), _number(row, "max_acceptance_length")
    if value is None:
        return None
    estimate = row.quantities["acceptance_length"]
    low, high = estimate.get("low"), estimate.get("high")
    healthy, promised = _number(row, "realistic_acceptance_length"), _number(row, "expected_acceptance_length")
    label = f"acceptance length {figures.figure('acceptance_length', estimate)}"
    if most is not None:
        label += f" of {most:g}"
    label += (
        f", healthy {figures.length(healthy)} to {figures.length(promised)}"
        if healthy is not None and promised is not None
        else ", no validation figure"
    )
    break_even = _number(row, "break_even_acceptance_length")
    return Bullet(
        label=label,
        track=_on_axis(most if most is not None else value),
        value=_on_axis(value),
        low=None if low is None else _on_axis(low),
        interval_width=0.0 if low is None or high is None else round(max(_on_axis(high) - _on_axis(low), 0.6), 2),
        healthy=None if healthy is None or promised is None else _on_axis(healthy),
        healthy_width=0.0
        if healthy is None or promised is None
        else round(max(_on_axis(promised) - _on_axis(healthy), 0.8), 2),
        break_even=None if break_even is None else _on_axis(break_even),
    )


def _on_axis(length: float) -> float:
    return round(100 * (min(max(length, 1.0), AXIS_END) - 1) / (AXIS_END - 1), 2)


def spark_points(values: Sequence[float]) -> str:
    """A small line in a box of 100 by 24; its scale spans at least 0.6 tokens, so that noise stays small."""
    if len(values) < 2:
        return ""
    low = min(min(values) - 0.12, max(values) - 0.6)
    high = max(max(values) + 0.12, min(values) + 0.6)
    step = 100 / (len(values) - 1)
    return " ".join(f"{i * step:.1f},{22 - 20 * (value - low) / (high - low):.1f}" for i, value in enumerate(values))


def _number(row: RunRow, key: str) -> float | None:
    value: Any = row.quantities.get(key, {}).get("value")
    return float(value) if figures.is_number(value) else None
