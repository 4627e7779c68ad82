"""Acceptance by position in the draft."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dashboard.charts.base import Chart, Key, bar, colour, finish, scatter
from dashboard.pages import figures


def accepted_up_to(shares: Sequence[float], promised: Sequence[float], *, counted: bool, length: float | None) -> Chart:
    """Share of steps in which all drafts up to each position were accepted.

    ``shares``: position 1 first, 0 to 1; ``counted``: whether the engine counted them, else they
    are implied by the acceptance length ``length`` and drawn hatched. ``promised``: the same as
    validation implies it, may be empty.
    """
    if counted:
        name, key = "this run", Key("band", "measured", "counted by the engine")
        sentence = (
            "One draft a step: its share is the length less one."
            if len(shares) == 1
            else "Falls with the position: a draft counts only when all before it were accepted."
        )
    else:
        name = f"implied by length {figures.length(length)}" if length is not None else "implied by the length"
        key = Key("hatch", "plain", name)
        sentence = (
            "Hatched: worked out from the length with one constant acceptance, since there are no counts per position."
        )
    return _bars(
        "c-positions",
        "Accepted up to each position",
        sentence,
        "share of steps accepted up to here",
        shares,
        promised,
        name=name,
        key=key,
        counted=counted,
    )


def accepted_at(rates: Sequence[float], promised: Sequence[float]) -> Chart:
    """How often the draft at each position was accepted when all before it were; as :func:`accepted_up_to`."""
    return _bars(
        "c-conditional",
        "Accepted at each position, given the one before",
        _shape(rates),
        "accepted, given the one before",
        rates,
        promised,
        name="this run",
        key=Key("band", "measured", "counted by the engine"),
        counted=True,
    )


def _shape(rates: Sequence[float]) -> str:
    if len(rates) < 2:
        return "Only one position is drafted."
    first, later = rates[0], sum(rates[1:]) / len(rates[1:])
    return (
        f"The first guess is accepted in {figures.ratio(first)} of steps, "
        f"later ones in {figures.ratio(later)} of the steps that reach them."
    )


def _bars(
    chart_id: str,
    title: str,
    sentence: str,
    axis: str,
    values: Sequence[float],
    promised: Sequence[float],
    *,
    name: str,
    key: Key,
    counted: bool,
) -> Chart:
    positions = list(range(1, len(values) + 1))
    promised = promised[: len(values)]
    solid: dict[str, Any] = {"color": colour("measured")}
    hatched: dict[str, Any] = {
        "color": colour("measured-soft"),
        "line": {"color": colour("measured"), "width": 1.5},
        "pattern": {
            "shape": "/",
            "fgcolor": colour("measured"),
            "bgcolor": colour("surface"),
            "size": 6,
            "solidity": 0.28,
        },
    }
    traces = [
        bar(
            name=name,
            x=positions,
            y=[round(value, 5) for value in values],
            marker=solid if counted else hatched,
            hovertemplate=f"position %{{x}}: %{{y:.1%}}<extra>{name}</extra>",
        )
    ]
    keys = [key]
    if promised:
        traces.append(
            scatter(
                mode="lines+markers",
                name="validation",
                x=positions[: len(promised)],
                y=[round(value, 5) for value in promised],
                line={"color": colour("promised"), "width": 1.5, "dash": "dash"},
                marker={"symbol": "line-ew", "size": 26, "line": {"color": colour("promised"), "width": 2.5}},
                hovertemplate="position %{x}: %{y:.1%}<extra>validation implies</extra>",
            )
        )
        keys.append(Key("dash", "promised", "validation implies"))
    top = max([*values, *promised, 0.05])
    beside = 0.6 + max(0, 4 - len(positions)) / 2  # few bars stay slim
    layout = {
        "xaxis": {
            "title": {"text": "draft position"},
            "range": [1 - beside, len(positions) + beside],
            "tickvals": positions,
            "ticktext": [f"{i}<br>{figures.share(v)}" for i, v in zip(positions, values, strict=True)],
        },
        "yaxis": {"title": {"text": axis}, "tickformat": ".0%", "range": [0, min(1.12 * top, 1.05)]},
    }
    header = ("Position", name, *(("validation implies",) if promised else ()))
    rows = [
        (
            str(position),
            figures.share(value),
            *(
                (figures.share(promised[position - 1]) if position <= len(promised) else "not stated",)
                if promised
                else ()
            ),
        )
        for position, value in zip(positions, values, strict=True)
    ]
    return Chart(chart_id, title, sentence, finish(traces, layout), header, rows, tuple(keys))
