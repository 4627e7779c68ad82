"""Several runs in one plot, each from its own beginning."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import pandas as pd

from dashboard.charts.base import Chart, Key, colour, finish, numbers, records, thin
from dashboard.pages import figures

MOST_SERIES: Final = 4
"""Runs that one plot can tell apart; their form differs as well as their colour."""
_LOOKS: Final = (("earlier", "dot"), ("measured", "solid"), ("plain", "dash"), ("ink", "dashdot"))


@dataclass(frozen=True, slots=True)
class Series:
    """A run to draw: what it is called, and its windows (:func:`analysis.frame.window_frame`)."""

    name: str
    frame: pd.DataFrame


def acceptance_lengths(series: Sequence[Series]) -> Chart | None:
    """Acceptance length of each run over its own time; ``None`` where fewer than two have one."""
    return _overlay(
        "c-lengths",
        "Acceptance length, run over run",
        "acceptance length, tokens per step",
        "acceptance_length",
        "counted",
        series,
    )


def throughputs(series: Sequence[Series]) -> Chart | None:
    """Throughput of each run's steady windows over its own time; ``None`` where fewer than two have one."""
    return _overlay("c-throughputs", "Throughput, run over run", "tok/s", "generation_throughput", "steady", series)


def _overlay(chart_id: str, title: str, axis: str, column: str, stands: str, series: Sequence[Series]) -> Chart | None:
    from plotly import graph_objects as go

    known = [(one.name, _minutes(one.frame, column, stands)) for one in series[:MOST_SERIES]]
    known = [(name, frame) for name, frame in known if not frame.empty]
    if len(known) < 2:
        return None
    traces = []
    for (token, dash), (name, frame) in zip(_LOOKS, known, strict=False):
        traces.append(
            go.Scatter(
                name=name,
                x=numbers(frame["minute"]),
                y=numbers(frame[column]),
                mode="lines+markers" if len(frame) < 60 else "lines",
                line={"color": colour(token), "width": 1.75, "dash": dash},
                marker={"color": colour(token), "size": 5},
                hovertemplate=f"{name}<br>minute %{{x:.1f}}, %{{y:.3~g}}<extra></extra>",
            )
        )
    lowest = 1.0 if column == "acceptance_length" else 0.0
    highest = max(float(frame[column].max()) for _, frame in known)
    layout = go.Layout(
        xaxis={"title": {"text": "minutes since the first window"}},
        yaxis={"title": {"text": axis}, "range": [lowest, round(highest + 0.06 * (highest - lowest), 3)]},
    )
    left_out = f" The first {MOST_SERIES} of {len(series)} runs." if len(series) > MOST_SERIES else ""
    return Chart(
        id=chart_id,
        title=title,
        sentence=f"Each from its own first window, so that like stages lie over each other.{left_out}",
        figure=finish(traces, layout),
        header=("Run", "Minute", axis),
        rows=[
            (name, f"{row.minute:.1f}", figures.significant(float(getattr(row, column))))
            for name, frame in known
            for row in records(thin(frame, column, 60))
        ],
        keys=tuple(
            Key("dash" if dash != "solid" else "line", token, name)
            for (token, dash), (name, _) in zip(_LOOKS, known, strict=False)
        ),
        size="tall",
    )


def _minutes(frame: pd.DataFrame, column: str, stands: str) -> pd.DataFrame:
    used = frame[frame[stands] & frame[column].notna()]
    if used.empty:
        return used
    return thin(used.assign(minute=(used["at"] - used["at"].iloc[0]) / 60), column)
