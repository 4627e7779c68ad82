"""Several runs in one plot, each from its own beginning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from dashboard.charts.base import Chart, Key, colour, finish, records, scatter, thin
from dashboard.charts.drawn import Line
from dashboard.pages import figures

MOST_SERIES: Final = 4
"""Runs that one plot can tell apart; their form differs as well as their colour."""
SHOWN_ROWS: Final = 60
"""Rows of a run in the table under a plot."""
_LOOKS: Final = (("earlier", "dot"), ("measured", "solid"), ("plain", "dash"), ("ink", "dashdot"))


@dataclass(frozen=True, slots=True)
class Series:
    """A run to draw: what it is called, and its figures over its own time."""

    name: str
    line: Line


def acceptance_lengths(series: Sequence[Series]) -> Chart | None:
    """Acceptance length of each run over its own time; ``None`` where fewer than two have one."""
    axis = "acceptance length, tokens per step"
    return _overlay("c-lengths", "Acceptance length, run over run", axis, 1.0, series)


def throughputs(series: Sequence[Series]) -> Chart | None:
    """Throughput of each run's steady windows over its own time; ``None`` where fewer than two have one."""
    return _overlay("c-throughputs", "Throughput, run over run", "tok/s", 0.0, series)


def line_of(frame: pd.DataFrame, column: str, stands: str) -> Line:
    """A column of the windows that stand for it, thinned, over the minutes since the first of them."""
    used = frame[frame[stands] & frame[column].notna()]
    if used.empty:
        return Line()
    thinned = thin(used, column)
    kept = used.index.isin(thinned.index)
    kept[[0, -1]] = True  # a line reaches as far as the run did
    shown = used[kept].assign(minute=(used["at"] - used["at"].iloc[0]) / 60)
    return Line(np.round(shown["minute"], 4).tolist(), np.round(shown[column], 4).tolist())


def _overlay(chart_id: str, title: str, axis: str, lowest: float, series: Sequence[Series]) -> Chart | None:
    known = [one for one in series[:MOST_SERIES] if one.line.value]
    if len(known) < 2:
        return None
    unit, minutes = _unit(max(one.line.minute[-1] for one in known))
    traces = [
        scatter(
            name=one.name,
            x=[minute / minutes for minute in one.line.minute],
            y=one.line.value,
            mode="lines+markers" if len(one.line.value) < 60 else "lines",
            line={"color": colour(token), "width": 1.75, "dash": dash},
            marker={"color": colour(token), "size": 5},
            hovertemplate=f"{one.name}<br>{unit} %{{x:.1f}}, %{{y:.3~g}}<extra></extra>",
        )
        for (token, dash), one in zip(_LOOKS, known, strict=False)
    ]
    highest = max(max(one.line.value) for one in known)
    layout = {
        "xaxis": {"title": {"text": f"{unit}s since the first window"}, "nticks": 8},
        "yaxis": {"title": {"text": axis}, "range": [lowest, round(highest + 0.06 * (highest - lowest), 3)]},
    }
    left_out = f" The first {MOST_SERIES} of {len(series)} runs." if len(series) > MOST_SERIES else ""
    return Chart(
        id=chart_id,
        title=title,
        sentence=f"Each from its own first window, so that like stages lie over each other.{left_out}",
        figure=finish(traces, layout),
        header=("Run", unit.capitalize(), axis),
        rows=[
            (one.name, f"{row.minute / minutes:.1f}", figures.significant(row.value))
            for one in known
            for row in _rows(one.line)
        ],
        keys=tuple(
            Key("dash" if dash != "solid" else "line", token, one.name)
            for (token, dash), one in zip(_LOOKS, known, strict=False)
        ),
        size="tall",
    )


def _unit(minutes: float) -> tuple[str, float]:
    """The unit that a span is told in, and how many minutes it is."""
    if minutes < 3:
        return "second", 1 / 60
    if minutes < 5 * 60:
        return "minute", 1.0
    return ("hour", 60.0) if minutes < 4 * 1440 else ("day", 1440.0)


def _rows(line: Line) -> list[Any]:
    return records(thin(pd.DataFrame({"minute": line.minute, "value": line.value}), "value", SHOWN_ROWS))
