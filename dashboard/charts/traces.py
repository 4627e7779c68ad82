"""Figures of watched engines over any time: the mean of each stretch, and what its lowest and highest window had."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import numpy as np
import pandas as pd

from collector.storage.traces import Trace
from dashboard.charts.base import (
    Chart,
    Key,
    colour,
    decimals,
    finish,
    level,
    level_label,
    numbers,
    records,
    scatter,
    thin,
    time_axis,
    times,
)
from dashboard.charts.over_time import AcceptanceLevels, acceptance_levels
from dashboard.pages import figures

GAP: Final = 4
"""A pause of so many usual distances between points breaks the line: nothing was seen then."""
SHOWN_ROWS: Final = 100
"""Rows of the table under a plot."""


def acceptance(trace: Trace, levels: AcceptanceLevels) -> Chart | None:
    """Acceptance length with its levels; ``None`` where the trace is empty."""
    if not trace.at:
        return None
    frame = _frame(trace)
    highest = (frame["high"].max(), levels.promised, levels.break_even, levels.high)
    top = max(float(number) for number in highest if number is not None and number == number)  # noqa: PLR0124 - NaN
    shapes, annotations = acceptance_levels(levels, top, frame["value"].tail(max(1, len(frame) // 3)))
    yaxis = {
        "title": {"text": "acceptance length, tokens per step"},
        "range": [1, round(top + 0.12 * (top - 1) + 0.05, 2)],
        "tickformat": decimals(top - 1),
    }
    return _banded(
        "t-acceptance", "Acceptance length", trace, frame, yaxis, "length", figures.length, ".2f",
        shapes=shapes, annotations=annotations,
    )  # fmt: skip


def throughput(trace: Trace, baseline: float | None) -> Chart | None:
    """Throughput, against the level without speculation where that is known; ``None`` where the trace is empty."""
    if not trace.at:
        return None
    frame = _frame(trace)
    top = max(float(frame["high"].max()), baseline or 0.0)
    yaxis = {
        "title": {"text": "throughput, tok/s"},
        "range": [0, 1.15 * top],
        "nticks": 6,
        "tickformat": ",d" if top >= 10 else ".1f",
    }
    shapes, annotations = [], []
    if baseline is not None:
        shapes.append(level(baseline, "plain", "dash"))
        text = f"no speculation {figures.significant(baseline)}"
        annotations.append(level_label(text, baseline, "plain", left=True))
    return _banded(
        "t-throughput", "Throughput", trace, frame, yaxis, "tok/s", figures.significant, ",.1f",
        shapes=shapes, annotations=annotations,
    )  # fmt: skip


def step_time(trace: Trace) -> Chart | None:
    """Time of one batch iteration, in milliseconds; ``None`` where the trace is empty."""
    if not trace.at:
        return None
    frame = _frame(trace)
    frame[["value", "low", "high"]] *= 1e3
    top = float(np.nanmax(frame[["value", "high"]].to_numpy(dtype=float)))
    yaxis = {"title": {"text": "step time, ms"}, "range": [0, 1.15 * top], "nticks": 6, "tickformat": ".3~g"}
    return _banded("t-step", "Step time", trace, frame, yaxis, "ms", figures.significant, ".3~g")


def _frame(trace: Trace) -> pd.DataFrame:
    columns = {"at": trace.at, "value": trace.value, "low": trace.low, "high": trace.high}
    return pd.DataFrame(columns, dtype=float)


def _banded(
    chart_id: str,
    title: str,
    trace: Trace,
    frame: pd.DataFrame,
    yaxis: dict[str, Any],
    unit: str,
    written: Any,
    hover: str,
    shapes: Sequence[Any] = (),
    annotations: Sequence[Any] = (),
) -> Chart:
    """The mean as a line over the band from the lowest to the highest window; a pause breaks both."""
    ranged = bool(frame["low"].notna().any()) and bool((frame["low"] < frame["high"]).any())
    stretches = _without_pauses(frame)
    edge = {"mode": "lines", "line": {"width": 0, "color": colour("measured")}, "hoverinfo": "skip"}
    fill = {"fill": "tonexty", "fillcolor": colour("measured", 0.16)}
    traces = [
        scatter(name=name, x=times(part["at"]), y=numbers(part[column]), **edge, **more)
        for part in stretches
        for name, column, more in (("lowest", "low", {}), ("highest", "high", fill))
        if ranged
    ]
    traces.append(
        scatter(
            name="mean",
            x=[moment for part in stretches for moment in (*times(part["at"]), None)][:-1],
            y=[value for part in stretches for value in (*numbers(part["value"]), None)][:-1],
            mode="lines+markers" if len(frame) < 60 else "lines",
            line={"color": colour("measured"), "width": 1.5},
            marker={"color": colour("measured"), "size": 5},
            hovertemplate=f"%{{x|%e %b, %H:%M:%S}}<br>%{{y:{hover}}} {unit}<extra></extra>",
        )
    )
    layout = {"xaxis": time_axis(frame["at"]), "yaxis": yaxis, "shapes": list(shapes), "annotations": list(annotations)}
    keys = [Key("line", "measured", "mean of each stretch" if trace.width > 1 else "each window")]
    if ranged:
        keys.append(Key("band", "measured-soft", "lowest to highest window"))
    rows = records(thin(frame, "value", SHOWN_ROWS))
    return Chart(
        id=chart_id,
        title=title,
        sentence=_sentence(trace, frame, written, unit),
        figure=finish(traces, layout),
        header=("Time", f"Mean, {unit}", *(("Lowest", "Highest") if ranged else ())),
        rows=[
            (
                figures.moment(row.at),
                written(row.value),
                *((_cell(row.low, written), _cell(row.high, written)) if ranged else ()),
            )
            for row in rows
        ],
        keys=tuple(keys),
        size="tall" if chart_id == "t-acceptance" else "",
    )


def _cell(value: float, written: Any) -> str:
    return str(written(value)) if np.isfinite(value) else "not kept"


def _sentence(trace: Trace, frame: pd.DataFrame, written: Any, unit: str) -> str:
    lowest, highest = frame["value"].min(), frame["value"].max()
    width = figures.whole_time(trace.width)
    points = f"Each point is {width}" if trace.width > 1 else "Each point is one scrape"
    suffix = "" if unit == "length" else f" {unit}"
    if written(lowest) == written(highest):
        return f"{points}. {written(lowest)}{suffix} throughout."
    return f"{points}. Between {written(lowest)} and {written(highest)}{suffix}, {written(frame['value'].iloc[-1])} at the end."


def _without_pauses(frame: pd.DataFrame) -> list[pd.DataFrame]:
    """The stretches between pauses, in which nothing was seen."""
    distances = np.diff(frame["at"])
    pauses = np.flatnonzero(distances > GAP * np.median(distances)) if distances.size > 1 else np.array([], dtype=int)
    after = [int(place) + 1 for place in pauses]
    return [frame.iloc[first:end] for first, end in pairwise([0, *after, len(frame)])]
