"""Figures of a run over time: acceptance length, throughput, running requests."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pandas as pd

from dashboard.charts.base import (
    Chart,
    Key,
    band,
    colour,
    decimals,
    finish,
    level,
    level_label,
    numbers,
    records,
    scatter,
    thin,
    thinned_note,
    time_axis,
    times,
)
from dashboard.pages import figures

LEFT_OUT: Final = Key("ring", "ink-3", "left out")


@dataclass(frozen=True, slots=True)
class AcceptanceLevels:
    """What the windows are held against; ``None`` where it is not known. All in tokens per step.

    ``value``, ``low``, ``high``: this run and its interval; ``healthy``, ``promised``: what a
    healthy deployment delivers and what validation implies; ``break_even``: from where it pays;
    ``maximum``: depth + 1.
    """

    value: float | None = None
    low: float | None = None
    high: float | None = None
    healthy: float | None = None
    promised: float | None = None
    break_even: float | None = None
    maximum: float | None = None


def acceptance_length(frame: pd.DataFrame, source: str, levels: AcceptanceLevels) -> Chart | None:
    """Acceptance length of each window; ``None`` where no window has one."""
    known = frame[frame["acceptance_length"].notna()]
    used, out = known[known["counted"]], known[~known["counted"]]
    if used.empty:
        return None
    shown, out = thin(used, "acceptance_length"), thin(out, "acceptance_length")
    of = f" of {levels.maximum:g}" if levels.maximum else ""
    traces = [
        _windows(shown, "acceptance_length", f"length %{{y:.2f}}{of}", source, joined=_alone(used)),
        _left_out(out, "acceptance_length", "length %{y:.2f}", source),
    ]
    highest = (known["acceptance_length"].max(), levels.promised, levels.break_even, levels.high)
    top = max(float(number) for number in highest if number is not None)
    shapes, annotations = acceptance_levels(levels, top, _under_label(shown["acceptance_length"]))
    layout = {
        "xaxis": time_axis(known["at"]),
        "yaxis": {
            "title": {"text": "acceptance length, tokens per step"},
            "range": [1, round(top + 0.12 * (top - 1) + 0.05, 2)],
            "tickformat": decimals(top - 1),
        },
        "shapes": shapes,
        "annotations": annotations,
    }
    keys = [Key("dot", "measured", "window")]
    if levels.low is not None:
        keys.append(Key("band", "measured-soft", "this run, 95%"))
    if levels.healthy is not None:
        keys.append(Key("band", "promised-soft", "healthy to validation"))
    if not out.empty:
        keys.append(LEFT_OUT)
    return Chart(
        id="c-time",
        title="Acceptance length over time",
        sentence=_acceptance_sentence(used, levels, shown=len(shown)),
        figure=finish(traces, layout),
        header=("Time", "Length", "tok/s", "Running", "Line"),
        rows=[
            (
                figures.clock(row.at),
                figures.length(row.acceptance_length),
                _cell(row.generation_throughput),
                _cell(row.running_requests, whole=True),
                str(row.line),
            )
            for row in records(shown)
        ],
        keys=tuple(keys),
        size="tall",
    )


def throughput(frame: pd.DataFrame, source: str, own: float | None, baseline: float | None) -> Chart | None:
    """Throughput of the server in each window, against the level without speculation; ``None`` where none is printed."""
    known = _of_server(frame[frame["generation_throughput"].notna()], "generation_throughput")
    used, out = known[known["steady"]], known[~known["steady"]]
    if used.empty:
        used, out = known, known.iloc[:0]
    if used.empty:
        return None
    shown, out = thin(used, "generation_throughput"), thin(out, "generation_throughput")
    traces = [
        _windows(shown, "generation_throughput", "%{y:.1f} tok/s", source, joined=True),
        _left_out(out, "generation_throughput", "%{y:.1f} tok/s", source),
    ]
    shapes, annotations = [], []
    if own is not None:
        shapes.append(level(own, "measured"))
        below = baseline is not None and baseline > own
        right = _under_label(shown["generation_throughput"])
        clear = min(own, right.min()) if below else max(own, right.max())
        annotations.append(level_label(f"this run {figures.significant(own)}", clear, "measured", below=below))
    if baseline is not None:
        shapes.append(level(baseline, "plain", "dash"))
        annotations.append(
            level_label(
                f"no speculation {figures.significant(baseline)}",
                baseline,
                "plain",
                left=True,
                below=own is not None and baseline <= own,
            )
        )
    top = max(known["generation_throughput"].max(), own or 0.0, baseline or 0.0)
    layout = {
        "xaxis": time_axis(known["at"]),
        "yaxis": {
            "title": {"text": "throughput, tok/s"},
            "range": [0, 1.15 * top],
            "nticks": 6,
            "tickformat": ",d" if top >= 10 else ".1f",
        },
        "shapes": shapes,
        "annotations": annotations,
    }
    keys = [Key("dot", "measured", "window")]
    if baseline is not None:
        keys.append(Key("dash", "plain", "no speculation"))
    if not out.empty:
        keys.append(LEFT_OUT)
    return Chart(
        id="c-throughput",
        title="Throughput over time",
        sentence=_throughput_sentence(used["generation_throughput"], baseline, shown=len(shown)),
        figure=finish(traces, layout),
        header=("Time", "tok/s", "Line"),
        rows=[(figures.clock(row.at), _cell(row.generation_throughput), str(row.line)) for row in records(shown)],
        keys=tuple(keys),
    )


def running_requests(frame: pd.DataFrame, source: str) -> Chart | None:
    """Requests that decode, and those that wait, in each window; ``None`` where no window says."""
    known = _of_server(frame[frame["running_requests"].notna()], "running_requests", "waiting_requests")
    if known.empty:
        return None
    shown = thin(known, "running_requests")
    traces = [_windows(shown, "running_requests", "%{y:.0f} running", source, joined=True)]
    waits = bool((known["waiting_requests"] > 0).any())
    if waits:
        traces.append(
            scatter(
                mode="markers",
                name="waiting",
                x=times(shown["at"]),
                y=numbers(shown["waiting_requests"]),
                marker={"size": 7, "symbol": "diamond-open", "color": colour("ink-2")},
                hovertemplate="%{x|%H:%M:%S}<br>%{y:.0f} waiting<extra></extra>",
            )
        )
    top = max(1.0, float(np.nanmax(known[["running_requests", "waiting_requests"]].to_numpy(dtype=float))))
    layout = {
        "xaxis": time_axis(known["at"]),
        "yaxis": {
            "title": {"text": "requests"},
            "range": [0, 1.2 * top],
            "tickformat": ",d",
            **({"dtick": 1} if top <= 5 else {"nticks": 5}),
        },
    }
    keys = (Key("dot", "measured", "running"), *((Key("ring", "ink-2", "waiting"),) if waits else ()))
    return Chart(
        id="c-running",
        title="Running requests",
        sentence=_running_sentence(known, shown=len(shown)),
        figure=finish(traces, layout),
        header=("Time", "Running", "Waiting", "Line"),
        rows=[
            (
                figures.clock(row.at),
                _cell(row.running_requests, whole=True),
                _cell(row.waiting_requests, whole=True),
                str(row.line),
            )
            for row in records(shown)
        ],
        keys=keys,
    )


def _windows(rows: pd.DataFrame, column: str, label: str, source: str, *, joined: bool) -> Any:
    return scatter(
        mode="lines+markers" if joined else "markers",
        name="window",
        x=times(rows["at"]),
        y=numbers(rows[column]),
        customdata=_places(rows, source),
        line={"color": colour("measured"), "width": 1.25},
        marker={"size": 7 if len(rows) < 120 else 4, "color": colour("measured")},
        hovertemplate=f"%{{x|%H:%M:%S}}<br>{label}<br>%{{customdata}}<extra></extra>",
    )


def _left_out(rows: pd.DataFrame, column: str, label: str, source: str) -> Any:
    return scatter(
        mode="markers",
        name="left out",
        x=times(rows["at"]),
        y=numbers(rows[column]),
        customdata=[
            f"{reason}<br>{place}" for reason, place in zip(rows["left_out"], _places(rows, source), strict=True)
        ],
        marker={"size": 9, "symbol": "circle-open", "color": colour("ink-3"), "line": {"width": 1.5}},
        hovertemplate=f"%{{x|%H:%M:%S}}<br>{label}<br>left out: %{{customdata}}<extra></extra>",
    )


def _alone(rows: pd.DataFrame) -> bool:
    """Whether all windows are of one unit, so that a line may join them."""
    return bool((rows["unit"] == rows["unit"].iloc[0]).all())


def _places(rows: pd.DataFrame, source: str) -> list[str]:
    """Where each window was read; plot text knows a few tags, so a file's name is stripped of what could be one."""
    safe = source.translate({ord(letter): " " for letter in "<>&"})
    return [f"{safe}:{line}" if line else safe for line in rows["line"]]


def _of_server(frame: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Figures of the whole server: units summed over each block that has them all."""
    units = frame["unit"].nunique()
    if units <= 1:
        return frame
    blocks = frame.groupby("block")
    whole = blocks.agg(
        at=("at", "max"),
        line=("line", "first"),
        **{column: (column, _sum) for column in columns},
        steady=("steady", "all"),
        left_out=("left_out", "max"),
        units=("unit", "size"),
    )
    return whole[whole["units"] == units]


def _sum(values: pd.Series) -> float:
    """The sum of what is known; where nothing is, it is not zero."""
    return float(values.sum(min_count=1))


def _under_label(values: pd.Series) -> pd.Series:
    """The windows at the right, over which labels lie."""
    return values.tail(max(1, len(values) // 3))


def acceptance_levels(
    levels: AcceptanceLevels, top: float, right: pd.Series
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Shapes and labels of what lengths are held against; ``right`` are those under the labels, ``top`` the axis's end."""
    shapes: list[dict[str, Any]] = []
    annotations: list[dict[str, Any]] = []
    if levels.low is not None and levels.high is not None:
        shapes.append(band(levels.low, levels.high, "measured", 0.13))
    if levels.healthy is not None and levels.promised is not None:
        shapes += [
            band(levels.healthy, levels.promised, "promised-soft", 0.75),
            level(levels.promised, "promised"),
            level(levels.healthy, "promised", "dash"),
        ]
        annotations += [
            level_label(f"validation implies {figures.length(levels.promised)}", levels.promised, "promised"),
            level_label(f"healthy from {figures.length(levels.healthy)}", levels.healthy, "promised", below=True),
        ]
    if levels.value is not None:
        shapes.append(level(levels.value, "measured"))
        text = f"this run {figures.length(levels.value)}"
        over, under = levels.high or levels.value, levels.low or levels.value
        if levels.low is not None and levels.high is not None:
            text += f" [{figures.length(levels.low)}, {figures.length(levels.high)}]"
        crowded = levels.healthy is not None and over > levels.healthy - 0.15 * (top - 1)
        clear = min(under, right.min()) if crowded else max(over, right.max())
        annotations.append(level_label(text, clear, "measured", below=crowded))
    if levels.break_even is not None:
        shapes.append(level(levels.break_even, "ink", "dot"))
        annotations.append(
            level_label(f"pays from {figures.length(levels.break_even)}", levels.break_even, "ink", left=True)
        )
    return shapes, annotations


def _acceptance_sentence(used: pd.DataFrame, levels: AcceptanceLevels, *, shown: int) -> str:
    steps = used["verify_steps"]
    same = bool(steps.eq(steps.iloc[0]).all())
    parts = [
        f"Each point is one window of {figures.plural(round(steps.iloc[0]), 'step')}."
        if same
        else "Each point is one window."
    ]
    if levels.healthy is None:
        parts.append("No validation figure was given, so there is no healthy level to hold it against.")
    else:
        below, total = int((used["acceptance_length"] < levels.healthy).sum()), len(used)
        parts.append(_compared("healthy", below, total))
    parts.append(thinned_note(len(used), shown))
    return " ".join(filter(None, parts))


def _throughput_sentence(values: pd.Series, baseline: float | None, *, shown: int) -> str:
    if baseline is None:
        first = "No run without speculation was given to hold it against."
    else:
        first = _compared("without speculation", int((values < baseline).sum()), len(values))
    return " ".join(filter(None, (first, thinned_note(len(values), shown))))


def _compared(level_name: str, below: int, total: int) -> str:
    if below == total:
        return f"Lower than {level_name} in every window."
    if below == 0:
        return f"Not lower than {level_name} in any window."
    return f"Lower than {level_name} in {below:,} of {total:,} windows."


def _running_sentence(known: pd.DataFrame, *, shown: int) -> str:
    low, high = known["running_requests"].min(), known["running_requests"].max()
    first = (
        f"{figures.plural(round(low), 'request')} in every window."
        if low == high
        else f"Between {low:g} and {high:g} requests at a time."
    )
    waiting = known["waiting_requests"]
    if waiting.notna().any():
        most = waiting.max()
        first += " None waits." if most == 0 else f" Up to {most:g} wait."
    return " ".join(filter(None, (first, thinned_note(len(known), shown))))


def _cell(value: float, *, whole: bool = False) -> str:
    if not np.isfinite(value):
        return "not printed"
    return f"{value:g}" if whole else figures.significant(value)


def levels_of(quantities: Mapping[str, Mapping[str, Any]]) -> AcceptanceLevels:
    """The levels that a run's quantities (of the diagnosis document) give."""

    def value(key: str, part: str = "value") -> float | None:
        number: Any = quantities.get(key, {}).get(part)
        return float(number) if figures.is_number(number) else None

    return AcceptanceLevels(
        value=value("acceptance_length"),
        low=value("acceptance_length", "low"),
        high=value("acceptance_length", "high"),
        healthy=value("realistic_acceptance_length"),
        promised=value("expected_acceptance_length"),
        break_even=value("break_even_acceptance_length"),
        maximum=value("max_acceptance_length"),
    )
