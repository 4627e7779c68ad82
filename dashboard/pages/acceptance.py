"""The section on acceptance of a run page."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from analysis.theory.chain import implied_rate
from collector.domain.errors import ImpossibleFigure
from collector.domain.quantities import QUANTITIES
from dashboard.charts import positions
from dashboard.charts.base import Chart
from dashboard.charts.drawn import Drawn
from dashboard.charts.over_time import AcceptanceLevels, levels_of
from dashboard.pages import figures
from dashboard.pages.figures import Figure
from dashboard.pages.findings import title_of
from dashboard.report.traffic import COUNTED, RESPECTS, UNCOUNTED, requests_line
from dashboard.store import RunReport


@dataclass(frozen=True, slots=True)
class LikeRow:
    """Figures that can be compared: this run, a healthy one, and what validation implies; "" where not known."""

    key: str
    label: str
    here: Figure | None
    healthy: str
    promised: str


@dataclass(frozen=True, slots=True)
class UnitRow:
    """One rank, engine or slot."""

    name: str
    length: Figure | None
    steps: Figure | None
    throughput: Figure | None


@dataclass(frozen=True, slots=True)
class StratumRow:
    """Requests of one temperature, route or class of length, or all of them."""

    name: str
    requests: str
    share: str
    figures: tuple[Figure | None, ...]


@dataclass(frozen=True, slots=True)
class RequestsTable:
    """Request results: what they stand for, which quantities are shown, and a row for each kind of request."""

    line: str
    share_of: str
    keys: tuple[str, ...]
    rows: tuple[StratumRow, ...]


@dataclass(frozen=True, slots=True)
class AcceptanceSection:
    """What the section shows; a chart that is ``None`` has an empty state in its place."""

    lead: str
    over_time: Chart | None
    like_with_like: tuple[LikeRow, ...]
    has_promise: bool
    printed_note: str
    published: str
    published_sources: str
    positions: Chart | None
    conditional: Chart | None
    spread: Chart | None
    context: Chart | None
    batch: Chart | None
    units: tuple[UnitRow, ...]
    requests: RequestsTable | None


def acceptance_section(report: RunReport, drawn: Drawn) -> AcceptanceSection:
    """Everything about acceptance that the document holds, with what is drawn of the windows."""
    levels = levels_of(report.subject["quantities"])
    published = report.document.get("published")
    return AcceptanceSection(
        lead=_lead(report, levels),
        over_time=drawn.over_time,
        like_with_like=_like_with_like(report, levels),
        has_promise=levels.promised is not None,
        printed_note=title_of(report, "MEA001"),
        published=published["text"] if published else "",
        published_sources=", ".join(published["sources"]) if published else "",
        positions=_positions(report),
        conditional=_conditional(report),
        spread=drawn.spread,
        context=drawn.context,
        batch=drawn.batch,
        units=tuple(
            UnitRow(
                name,
                figures.figure("acceptance_length", unit["quantities"].get("acceptance_length")),
                figures.figure("verify_steps", unit["quantities"].get("verify_steps")),
                figures.figure("generation_throughput", unit["quantities"].get("generation_throughput")),
            )
            for name, unit in report.subject["units"].items()
        ),
        requests=_requests(report),
    )


def _requests(report: RunReport) -> RequestsTable | None:
    """Requests by temperature, route and length, each where there are several; ``None`` without request results."""
    told = report.subject.get("requests")
    if told is None:
        return None
    counted = told["with_verify_steps"] > 0
    keys = COUNTED if counted else UNCOUNTED
    several = Counter(stratum["by"] for stratum in told["strata"])

    def row(name: str, requests: int, share: float, quantities: Mapping[str, Any]) -> StratumRow:
        shown = tuple(figures.figure(key, quantities.get(key)) for key in keys)
        return StratumRow(name, figures.count(requests), figures.percent(share), shown)

    return RequestsTable(
        line=requests_line(told["count"], told["with_verify_steps"], judged_by=told["judged_by"]),
        share_of="Of the steps" if counted else "Of the tokens",
        keys=keys,
        rows=(
            row("All", told["count"], 1.0, told["quantities"]),
            *(
                row(f"{RESPECTS[item['by']]} {item['value']}", item["requests"], item["share"], item["quantities"])
                for item in told["strata"]
                if several[item["by"]] > 1
            ),
        ),
    )


def promised_shares(report: RunReport) -> list[float]:
    """Share of steps accepted up to each position as validation implies it; empty where there is none.

    Figures by position may be shares or conditional rates, whichever gives the expected length;
    otherwise the one accuracy stands for every position.
    """
    depth, expected = report.number("draft_depth"), report.number("expected_acceptance_length")
    if depth is None or expected is None:
        return []
    stated = (report.quantity("validation_accuracy_at") or {}).get("value") or []
    readings = [list(stated), [math.prod(stated[: i + 1]) for i in range(len(stated))]]
    for shares in readings:
        if shares and math.isclose(1 + sum(shares[: int(depth)]), expected, abs_tol=0.01):
            return shares[: int(depth)]
    rate = _implied(expected, depth)
    return [] if rate is None else [rate**i for i in range(1, int(depth) + 1)]


def _lead(report: RunReport, levels: AcceptanceLevels) -> str:
    accepted, width = report.number("accepted_per_step"), report.number("verify_width")
    if accepted is None:
        summary: str = report.document["verdicts"]["acceptance"]["summary"]
        return summary
    drafted = f"Of {figures.plural(int(width) - 1, 'drafted token')} " if width and width > 1 else ""
    lead = (
        f"{drafted}{figures.length(accepted)} {'is' if width == 2 else 'are'} accepted per step; the target adds one."
    )
    if levels.healthy is not None:
        lead += f" A healthy server with this draft would accept {figures.length(levels.healthy - 1)}."
    return lead[0].upper() + lead[1:]


def _like_with_like(report: RunReport, levels: AcceptanceLevels) -> tuple[LikeRow, ...]:
    depth, width = report.number("draft_depth"), report.number("verify_width")
    healthy, promised = levels.healthy, levels.promised

    def row(key: str, healthy_text: str, promised_text: str) -> LikeRow:
        return LikeRow(
            key, QUANTITIES[key].label, figures.figure(key, report.quantity(key)), healthy_text, promised_text
        )

    def lengths(value: float | None) -> str:
        return "" if value is None else figures.length(value)

    def rates(value: float | None) -> str:
        rate = None if value is None or depth is None else _implied(value, depth)
        return "" if rate is None else figures.ratio(rate)

    def shares(value: float | None) -> str:
        chain = depth is not None and width == depth + 1
        return "" if value is None or not chain or not depth else figures.share((value - 1) / depth)

    rows = [
        row("acceptance_length", lengths(healthy), lengths(promised)),
        row("conditional_acceptance_rate", rates(healthy), rates(promised)),
        row("draft_acceptance_rate", shares(healthy), shares(promised)),
    ]
    if promised is not None and promised > 1:
        kept = "" if healthy is None else figures.percent((healthy - 1) / (promised - 1))
        rows.append(row("retained_share", kept, "100%"))
    return tuple(line for line in rows if line.here is not None or line.healthy or line.promised)


def _positions(report: RunReport) -> Chart | None:
    promised = promised_shares(report)
    counted = _list(report, "acceptance_rate_at")
    if counted:
        return positions.accepted_up_to(counted, promised, counted=True, length=None)
    rate, depth = report.number("conditional_acceptance_rate"), report.number("draft_depth")
    if rate is None or not depth:
        return None
    if depth == 1:
        return positions.accepted_up_to([rate], promised, counted=True, length=None)
    implied = [rate**i for i in range(1, int(depth) + 1)]
    return positions.accepted_up_to(implied, promised, counted=False, length=report.number("acceptance_length"))


def _conditional(report: RunReport) -> Chart | None:
    rates = _list(report, "conditional_acceptance_rate_at")
    only = report.number("conditional_acceptance_rate")
    if not rates and only is not None and report.number("draft_depth") == 1:
        rates = [only]
    if not rates:
        return None
    shares = promised_shares(report)
    before = [1.0, *shares]
    promised = [share / earlier for share, earlier in zip(shares, before, strict=False) if earlier > 0]
    return positions.accepted_at(rates, promised)


def _list(report: RunReport, key: str) -> Sequence[float]:
    value = (report.quantity(key) or {}).get("value")
    return value if isinstance(value, list) and all(map(figures.is_number, value)) else ()


def _implied(length: float, depth: float) -> float | None:
    try:
        return implied_rate(length, depth)
    except ImpossibleFigure:
        return None
