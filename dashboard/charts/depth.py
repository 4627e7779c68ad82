"""Speed-up against draft depth, as far as one measured depth can tell."""

from __future__ import annotations

from analysis.theory.chain import expected_length
from dashboard.charts.base import Chart, Key, colour, finish, level, level_label, scatter
from dashboard.pages import figures


def speedup_by_depth(
    depth: int, rate: float, step_cost: float, speedup: float, baseline_throughput: float | None
) -> Chart:
    """What other depths would give between two extremes: the extra cost of a step is all fixed, or all per draft.

    ``depth``: k as measured; ``rate``: conditional acceptance; ``step_cost``: in plain steps.
    """
    depths = list(range(1, depth + 3))
    lengths = [expected_length(rate, k) for k in depths]
    each = (step_cost - 1) / depth
    fixed = [length / step_cost for length in lengths]
    drafts = [length / (1 + each * k) for length, k in zip(lengths, depths, strict=True)]
    edge = {"color": colour("unknown"), "width": 1.25, "dash": "dot"}
    hover = "depth %{x}: ×%{y:.3f}"
    traces = [
        scatter(
            mode="lines",
            name="all cost per draft",
            x=depths,
            y=[round(y, 4) for y in drafts],
            line=edge,
            hovertemplate=f"{hover}<extra>if all cost is per draft</extra>",
        ),
        scatter(
            mode="lines",
            name="all cost fixed",
            x=depths,
            y=[round(y, 4) for y in fixed],
            line=edge,
            hovertemplate=f"{hover}<extra>if all cost is fixed</extra>",
            fill="tonexty",
            fillcolor=colour("unknown", 0.08),
            fillpattern={"shape": "/", "fgcolor": colour("hatch"), "size": 8, "solidity": 0.2},
        ),
        scatter(
            mode="markers",
            name="measured",
            x=[0, depth],
            y=[1.0, round(speedup, 4)],
            marker={"size": 11, "color": [colour("plain"), colour("measured")]},
            hovertemplate=f"{hover}<extra>measured</extra>",
        ),
    ]
    plain = "no speculation"
    if baseline_throughput is not None:
        plain += f", {figures.significant(baseline_throughput)} tok/s"
    top, bottom = max(*fixed, *drafts, 1.0, speedup), min(*fixed, *drafts, 1.0, speedup)
    margin = 0.18 * (top - bottom)
    layout = {
        "xaxis": {"title": {"text": "draft depth, tokens"}, "dtick": 1, "range": [-0.4, depths[-1] + 0.4]},
        "yaxis": {
            "title": {"text": "speed-up over no speculation"},
            "range": [bottom - margin, top + margin],
            "tickformat": ".1f",
            "tickprefix": "×",
            "nticks": 6,
        },
        "shapes": [level(1.0, "ink")],
        "annotations": [
            level_label(plain, 1.0, "ink-2"),
            {
                "text": f"measured {figures.factor(speedup)}",
                "x": depth,
                "y": speedup - 0.05 * (top - bottom),
                "xanchor": "right" if depth > 1 else "center",
                "yanchor": "top",
                "showarrow": False,
                "font": {"size": 12, "color": colour("measured")},
            },
        ],
    }
    return Chart(
        "c-depth",
        "Speed-up against draft depth",
        _sentence(depths, drafts, fixed),
        finish(traces, layout),
        ("Depth", "if all cost is per draft", "if all cost is fixed"),
        [
            (str(k), figures.factor(low), figures.factor(high))
            for k, low, high in zip(depths, drafts, fixed, strict=True)
        ],
        (
            Key("dot", "measured", "measured"),
            Key("dot", "plain", "no speculation"),
            Key("cannot", "", "cannot tell: depends on the split"),
        ),
    )


def _sentence(depths: list[int], drafts: list[float], fixed: list[float]) -> str:
    """Which depths pay whatever the split, and which never do."""
    lows = [min(pair) for pair in zip(drafts, fixed, strict=True)]
    highs = [max(pair) for pair in zip(drafts, fixed, strict=True)]
    never = [k for k, high in zip(depths, highs, strict=True) if high < 1]
    always = [k for k, low in zip(depths, lows, strict=True) if low > 1]
    parts = ["One depth was measured, so the split of the step cost is unknown."]
    if always:
        parts.append(f"Whatever the split, depth {_listed(always)} pays.")
    elif len(never) == len(depths):
        parts.append("Whatever the split, no depth pays.")
    else:
        if never:
            parts.append(f"Whatever the split, depth {_listed(never)} does not pay.")
        open_depths = [k for k in depths if k not in never]
        first = open_depths[0]
        parts.append(
            f"At depth {first} it lies between {figures.factor(lows[depths.index(first)])} "
            f"and {figures.factor(highs[depths.index(first)])}."
        )
    return " ".join(parts)


def _listed(depths: list[int]) -> str:
    return str(depths[0]) if len(depths) == 1 else f"{depths[0]} to {depths[-1]}"
