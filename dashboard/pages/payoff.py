"""The section on pay-off of a run page."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from collector.domain.runs import Role
from dashboard.charts.base import Chart, Key
from dashboard.charts.depth import speedup_by_depth
from dashboard.charts.drawn import Drawn
from dashboard.pages import figures
from dashboard.store import RunReport

NAMES: Final[Mapping[str, str]] = {
    "as_it_is": "As it is",
    "acceptance_repaired": "Acceptance repaired",
    "step_cost_repaired": "Step cost repaired",
    "both_repaired": "Both",
}


WHAT_IF_KEYS: Final = (
    Key("band", "measured", "measured"),
    Key("band", "plain", "from measured figures"),
    Key("hatch", "plain", "rests on an assumption"),
)


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What the server would do after a repair; positions are percent of the axis.

    ``kind``: ``measured``, ``plain`` (from measured figures) or ``assumed``.
    """

    name: str
    throughput: str
    speedup: str
    kind: str
    width: float
    low: float | None
    high: float | None
    note: str


@dataclass(frozen=True, slots=True)
class Fall:
    """One line of a waterfall: a bar from ``start`` to ``end``, or a dot where both are equal; percent of the axis."""

    name: str
    note: str
    start: float
    end: float
    amount: str
    look: str
    total: bool = False

    @property
    def point(self) -> bool:
        """Whether it is drawn as a dot."""
        return self.start == self.end


@dataclass(frozen=True, slots=True)
class BreakEven:
    """A figure needed to break even, and what it is now."""

    name: str
    needed: str
    now: str


@dataclass(frozen=True, slots=True)
class PayoffSection:
    """What the section shows; without a comparable run the tuples are empty and ``missing`` says why."""

    lead: str
    missing: str
    provide: str
    what_if: tuple[WhatIf, ...]
    keys: tuple[Key, ...]
    line_at: float
    baseline: str
    step_falls: tuple[Fall, ...]
    loss_falls: tuple[Fall, ...]
    line_in_loss: float
    depth: Chart | None
    break_even: tuple[BreakEven, ...]
    notes: tuple[str, ...]
    throughput: Chart | None
    running: Chart | None


def payoff_section(report: RunReport, drawn: Drawn) -> PayoffSection:
    """Everything about pay-off that the document holds, with what is drawn of the windows."""
    payoff: Mapping[str, Any] | None = report.document["payoff"]
    verdict = report.document["verdicts"]["payoff"]
    scale = _scale(payoff)
    return PayoffSection(
        lead=verdict["summary"] if payoff is None else _lead(payoff),
        missing="" if payoff else verdict["summary"],
        provide="" if payoff else verdict.get("provide", "--baseline LOG"),
        what_if=() if payoff is None else _what_if(payoff, scale),
        keys=WHAT_IF_KEYS,
        line_at=100 / scale,
        baseline=""
        if payoff is None
        else f"{figures.significant(payoff['baseline_throughput'])} tok/s, no speculation",
        step_falls=() if payoff is None else _step_falls(payoff, report.number("step_seconds", Role.BASELINE)),
        loss_falls=() if payoff is None else _loss_falls(payoff),
        line_in_loss=0.0 if payoff is None else _on_log_axis(payoff, 1.0),
        depth=_depth(report, payoff),
        break_even=() if payoff is None else _break_even(report, payoff),
        notes=() if payoff is None else tuple(_notes(report, payoff)),
        throughput=drawn.throughput,
        running=drawn.running,
    )


def repair(payoff: Mapping[str, Any], name: str) -> Mapping[str, Any] | None:
    """One row of the repairs, if it would change something."""
    return next((row for row in payoff["repairs"] if row["name"] == name), None)


def _lead(payoff: Mapping[str, Any]) -> str:
    length, cost = figures.length(payoff["length"]), figures.significant(payoff["step_cost_ratio"])
    speedup = figures.factor(payoff["speedup"])
    return f"A step yields {length} tokens and costs {cost} plain steps: {length} / {cost} = {speedup}."


def _scale(payoff: Mapping[str, Any] | None) -> float:
    """Speed-up at the right edge."""
    if payoff is None:
        return 1.5
    fastest = max(*(float(row["speedup"]) for row in payoff["repairs"]), payoff["speedup_high"] or 0.0)
    return max(1.25, 1.05 * fastest)


def _what_if(payoff: Mapping[str, Any], scale: float) -> tuple[WhatIf, ...]:
    def at(speedup: float | None) -> float | None:
        return None if speedup is None else round(100 * speedup / scale, 2)

    rows = []
    for row in payoff["repairs"]:
        measured = row["name"] == "as_it_is"
        rows.append(
            WhatIf(
                name=NAMES.get(row["name"], row["name"]),
                throughput=figures.significant(row["throughput"]),
                speedup=figures.factor(row["speedup"]),
                kind="measured" if measured else "assumed" if row["assumed"] else "plain",
                width=round(100 * row["speedup"] / scale, 2),
                low=at(payoff["speedup_low"]) if measured else None,
                high=at(payoff["speedup_high"]) if measured else None,
                note=_repair_note(row, payoff),
            )
        )
    return tuple(rows)


def _repair_note(row: Mapping[str, Any], payoff: Mapping[str, Any]) -> str:
    length = f"length {figures.length(row['length'])}"
    cost = f"{figures.significant(row['step_cost_ratio'])} plain steps"
    outcome = "Still a loss." if row["speedup"] < 1 else f"Gains {figures.percent(row['speedup'] - 1)}."
    match row["name"]:
        case "acceptance_repaired":
            return f"{length}, step as measured. {outcome}"
        case "step_cost_repaired":
            return f"{cost}, assumed; length as measured. {outcome}"
        case "both_repaired":
            return f"{length}, {cost} assumed. {outcome}"
        case _:
            return "" if payoff["speedup_low"] is None else "Line: 95% interval."


def _step_falls(payoff: Mapping[str, Any], plain_seconds: float | None) -> tuple[Fall, ...]:
    """From a plain step to this one; in time where the plain step's is known, else in plain steps."""
    cost: float = payoff["step_cost_ratio"]
    usual: float | None = payoff["usual_step_cost"]
    plain_seconds = payoff["baseline_step_seconds"] or plain_seconds

    def amount(steps: float, sign: str = "") -> str:
        return f"{sign}{figures.seconds(steps * plain_seconds) if plain_seconds else figures.significant(steps)}"

    whole = max(cost, usual or 0.0, 1.0)

    def at(steps: float) -> float:
        return round(100 * steps / whole, 2)

    falls = [Fall("Plain step", "without speculation", 0, at(1), amount(1), "plain")]
    if usual is not None and cost > usual:
        share = payoff["loss_share_step_cost"]
        falls += [
            Fall(
                "Usual for speculation",
                f"assumed: {figures.significant(usual)} plain steps",
                at(1),
                at(usual),
                amount(usual - 1, "+"),
                "assumed",
            ),
            Fall(
                "Unexplained",
                f"{figures.percent(share)} of the loss" if share is not None else "beyond the usual",
                at(usual),
                at(cost),
                amount(cost - usual, "+"),
                "problem",
            ),
        ]
    elif cost > 1:
        note = "within the usual" if usual is not None else "the usual cost is not known: --target-config FILE"
        falls.append(Fall("Speculation", note, at(1), at(cost), amount(cost - 1, "+"), "measured"))
    steps = f"{figures.significant(cost)} plain steps"
    return (*falls, Fall("This step", steps, 0, at(cost), amount(cost), "measured", total=True))


def _loss_falls(payoff: Mapping[str, Any]) -> tuple[Fall, ...]:
    """From what both repairs would give to what runs; empty without a loss or a reference."""
    reachable = max(payoff["repairs"], key=lambda row: row["speedup"])
    rejected, dear = payoff["loss_share_acceptance"], payoff["loss_share_step_cost"]
    if rejected is None or dear is None:
        return ()
    now, best = payoff["speedup"], reachable["speedup"]
    middle = now * (best / now) ** dear
    low, between, high = (_on_log_axis(payoff, speed) for speed in (now, middle, best))
    falls = [Fall("Reachable", "all repaired", high, high, figures.factor(best), "plain")]
    if rejected > 0:
        note = f"{figures.length(reachable['length'])} to {figures.length(payoff['length'])} tokens"
        falls.append(Fall("Drafts rejected", note, between, high, figures.percent(rejected), "problem"))
    if dear > 0:
        usual, cost = figures.significant(payoff["usual_step_cost"]), figures.significant(payoff["step_cost_ratio"])
        falls.append(
            Fall("Step too dear", f"{usual} to {cost} plain steps", low, between, figures.percent(dear), "problem")
        )
    last = Fall("This run", "dashed: no speculation, ×1", low, low, figures.factor(now), "measured", total=True)
    return (*falls, last)


def _on_log_axis(payoff: Mapping[str, Any], speed: float) -> float:
    """Percent of a logarithmic axis that holds the slowest and the fastest of the repairs, and ×1."""
    speeds = [1.0, *(float(row["speedup"]) for row in payoff["repairs"])]
    low, high = 0.95 * min(speeds), 1.05 * max(speeds)
    return round(100 * math.log(speed / low) / math.log(high / low), 2)


def _depth(report: RunReport, payoff: Mapping[str, Any] | None) -> Chart | None:
    rate = report.number("conditional_acceptance_rate")
    if payoff is None or rate is None or not payoff["depth"] or payoff["step_cost_ratio"] < 1:
        return None
    if report.number("verify_width") != payoff["depth"] + 1:  # in a tree, width and depth change together
        return None
    return speedup_by_depth(
        int(payoff["depth"]), rate, payoff["step_cost_ratio"], payoff["speedup"], payoff["baseline_throughput"]
    )


def _break_even(report: RunReport, payoff: Mapping[str, Any]) -> tuple[BreakEven, ...]:
    rate = report.number("conditional_acceptance_rate")
    length, cost = figures.length(payoff["length"]), figures.significant(payoff["step_cost_ratio"])
    rows = [BreakEven("Acceptance length", figures.length(payoff["break_even_length"]), length)]
    if rate is not None:
        needed = payoff["break_even_rate"]
        rows.append(
            BreakEven(
                "Conditional acceptance", "none does" if needed is None else figures.ratio(needed), figures.ratio(rate)
            )
        )
    return (*rows, BreakEven("Step cost at this length", length, cost))


def _notes(report: RunReport, payoff: Mapping[str, Any]) -> list[str]:
    notes = []
    if not payoff["baseline_comparable"]:
        notes.append("A step cost below 1 is not physical: the run without speculation had another load (MEA008).")
    best = report.number("best_draft_depth")
    if best is not None:
        notes.append("Best depth now: 0, speculation off." if best == 0 else f"Best depth now: {best:g}.")
    promised = report.number("expected_acceptance_length")
    if promised is not None:
        gain = promised / payoff["step_cost_ratio"] - 1
        would = f"gain {figures.percent(gain)}" if gain >= 0 else f"still lose {figures.percent(-gain)}"
        notes.append(f"Validation accuracy reached in full, at this step cost, would {would}.")
    return notes
