"""Where the windows of a run lie: beside an earlier run's, by context, by batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import pandas as pd

from dashboard.charts.base import Chart, Key, band, colour, decimals, finish, level, numbers, records, scatter, thin
from dashboard.charts.over_time import AcceptanceLevels
from dashboard.pages import figures

SHOWN: Final = 300
"""Windows of each run that are drawn."""
LANE: Final = 0.16
"""Height at which a second window of the same length is stacked on the first; less where many are."""
TALLEST: Final = 1.2
"""Height of the tallest stack, in the same unit."""
SLOT: Final = 0.02
"""Share of the axis that counts as the same length."""


def spread(
    frame: pd.DataFrame,
    earlier: pd.DataFrame,
    levels: AcceptanceLevels,
    earlier_levels: AcceptanceLevels,
    sentence: str,
) -> Chart | None:
    """Lengths of this run's windows above those of the run before; ``None`` where either has none."""
    every = {"this run": _counted(frame), "the run before": _counted(earlier)}
    if any(part.empty for part in every.values()):
        return None
    rows = {name: _every_nth(part) for name, part in every.items()}
    if any(len(rows[name]) < len(part) for name, part in every.items()):
        sentence = f"{sentence} Of longer runs {SHOWN} windows, evenly chosen, are drawn.".strip()
    both = pd.concat([part["acceptance_length"] for part in rows.values()])
    width = max(float(both.max() - both.min()), 0.1)
    looks = (("this run", "measured", "circle", levels), ("the run before", "earlier", "circle-open", earlier_levels))
    traces, shapes, annotations, base = [], [], [], 0.0
    for name, hue, symbol, own in looks:
        lengths = rows[name]["acceptance_length"]
        lanes = _lanes(lengths, SLOT * width * 2)
        lane = min(LANE, TALLEST / max(*lanes, 1))
        traces.append(
            scatter(
                mode="markers",
                name=name,
                x=numbers(lengths),
                y=[round(base + height * lane, 2) for height in lanes],
                marker={
                    "size": 9,
                    "symbol": symbol,
                    "color": colour(hue),
                    "line": {"width": 1.6, "color": colour(hue)},
                },
                hovertemplate=f"%{{x:.2f}}<extra>{name}</extra>",
            )
        )
        if own.low is not None and own.high is not None:
            shapes.append(
                {
                    "type": "line",
                    "x0": own.low,
                    "x1": own.high,
                    "y0": base - 0.2,
                    "y1": base - 0.2,
                    "line": {"color": colour(hue), "width": 3},
                }
            )
        top = base + max(lanes) * lane + 0.22
        label = f"{name} {figures.length(own.value)}" if own.value is not None else name
        annotations.append(
            {
                "text": label,
                "xref": "paper",
                "x": 0,
                "y": top,
                "xanchor": "left",
                "yanchor": "bottom",
                "showarrow": False,
                "font": {"size": 12, "color": colour("measured" if hue == "measured" else "ink-2")},
            }
        )
        base = top + 0.75
    layout = {
        "xaxis": {"title": {"text": "acceptance length of a window"}, "tickformat": ".1f", "nticks": 7},
        "yaxis": {"showticklabels": False, "showgrid": False, "range": [-0.42, base - 0.2]},
        "shapes": shapes,
        "annotations": annotations,
        "margin": {"l": 12, "r": 12, "t": 10, "b": 44},
    }
    return Chart(
        "c-spread",
        "Windows of this run and the one before",
        sentence,
        finish(traces, layout),
        ("Run", "Length"),
        [(name, figures.length(value)) for name, part in rows.items() for value in part["acceptance_length"]],
        (Key("dot", "measured", "this run"), Key("ring", "earlier", "the run before")),
        "short",
    )


def by_context(frame: pd.DataFrame, levels: AcceptanceLevels, sentence: str) -> Chart | None:
    """Length against tokens held per running request; ``None`` where the source does not say or only one size was seen."""
    rows = _counted(frame)
    rows = rows.assign(x=rows["tokens_in_use"] / rows["running_requests"].where(rows["running_requests"] > 0))
    rows = rows[rows["x"].notna()]
    if rows["x"].nunique() < 2:
        return None
    span = f"Between {figures.count(rows['x'].min())} and {figures.count(rows['x'].max())} tokens held per request."
    return _against(
        rows,
        levels,
        "c-context",
        "By context",
        " ".join(filter(None, (span, sentence))),
        axis="context, tokens per request",
        unit="tokens per request",
    )


def by_batch(frame: pd.DataFrame, levels: AcceptanceLevels) -> Chart | None:
    """Length against running requests; ``None`` where fewer than two batch sizes were seen."""
    rows = _counted(frame)
    rows = rows.assign(x=rows["running_requests"].round())
    rows = rows[rows["x"].notna()]
    if rows["x"].nunique() < 2:
        return None
    sizes = f"Batches of {rows['x'].min():g} to {rows['x'].max():g} requests were seen."
    return _against(rows, levels, "c-batch", "By batch", sizes, axis="running requests", unit="running requests")


def _against(
    rows: pd.DataFrame, levels: AcceptanceLevels, chart_id: str, title: str, sentence: str, *, axis: str, unit: str
) -> Chart:
    shown = thin(rows.sort_values("x", kind="stable"), "acceptance_length")
    trace = scatter(
        mode="markers",
        name="window",
        x=numbers(shown["x"], 1),
        y=numbers(shown["acceptance_length"]),
        marker={"size": 8 if len(shown) < 120 else 4, "color": colour("measured")},
        hovertemplate=f"%{{x:,.0f}} {unit}<br>length %{{y:.2f}}<extra></extra>",
    )
    shapes: list[Mapping[str, Any]] = []
    if levels.value is not None:
        shapes.append(level(levels.value, "measured"))
    if levels.low is not None and levels.high is not None:
        shapes.append(band(levels.low, levels.high, "measured", 0.13))
    layout = {
        "xaxis": {"title": {"text": axis}, "nticks": 5, "tickformat": ",d"},
        "yaxis": {"title": {"text": "acceptance length"}, "tickformat": decimals(_span(shown)), "nticks": 6},
        "shapes": shapes,
    }
    return Chart(
        chart_id,
        title,
        sentence,
        finish([trace], layout),
        (axis[0].upper() + axis[1:], "Length"),
        [(figures.count(row.x), figures.length(row.acceptance_length)) for row in records(shown)],
        (),
        "short",
    )


def _counted(frame: pd.DataFrame) -> pd.DataFrame:
    return frame[frame["counted"] & frame["acceptance_length"].notna()]


def _every_nth(rows: pd.DataFrame) -> pd.DataFrame:
    """At most :data:`SHOWN` rows, evenly chosen, so that the distribution stays."""
    if len(rows) <= SHOWN:
        return rows
    return rows.iloc[np.linspace(0, len(rows) - 1, SHOWN).astype(int)]


def _span(rows: pd.DataFrame) -> float:
    return float(rows["acceptance_length"].max() - rows["acceptance_length"].min())


def _lanes(lengths: pd.Series, slot: float) -> list[int]:
    """How high each dot is stacked: dots of one slot stand on each other."""
    seen: dict[int, int] = {}
    lanes = []
    for value in lengths:
        place = round(float(value) / slot)
        seen[place] = seen.get(place, -1) + 1
        lanes.append(seen[place])
    return lanes
