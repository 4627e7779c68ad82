"""What every chart is made of: colours by token, thinning, labels, and the finished figure.

Figures are built from plotly's own classes, so a misspelt property fails here and not in a browser. The browser
resolves colours: the server names tokens of the style sheet (``@measured``, ``@promised/0.2``), and the theme decides.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from numpy.typing import NDArray

MAX_POINTS: Final = 400
"""Points of a trace: about what the pixels of a panel can tell apart. Longer runs are thinned, extremes kept."""

TOKENS: Final = (
    "ink",
    "ink-2",
    "ink-3",
    "surface",
    "edge",
    "hatch",
    "measured",
    "measured-soft",
    "promised",
    "promised-soft",
    "plain",
    "earlier",
    "problem",
    "unknown",
)
_STAND_IN: Final = re.compile(r"rgba\(1,2,(\d+),([\d.]+)\)")


@dataclass(frozen=True, slots=True)
class Key:
    """One entry above a plot: a mark (``dot``, ``ring``, ``line``, ``dash``, ``band``, ``hatch``, ``cannot``) and its meaning."""

    mark: str
    token: str
    text: str


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart with all that stands around it.

    ``title`` says what is shown, ``sentence`` what follows from it; ``header`` and ``rows`` hold
    the same figures as a table; ``size`` is ``tall``, ``short`` or "".
    """

    id: str
    title: str
    sentence: str
    figure: Mapping[str, Any]
    header: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    keys: tuple[Key, ...] = ()
    size: str = ""


def colour(token: str, alpha: float = 1.0) -> str:
    """A stand-in for a token's colour that plotly accepts; :func:`finish` puts the token in its place.

    Raises:
        ValueError: the style sheet's plots have no such token.
    """
    if token not in TOKENS:
        raise ValueError(f"no token of plots is named {token!r}")
    return f"rgba(1,2,{TOKENS.index(token)},{alpha:g})"


def scatter(**properties: Any) -> Any:
    """A trace of points or lines."""
    from plotly import graph_objects as go

    return go.Scatter(**properties)


def bar(**properties: Any) -> Any:
    """A trace of bars."""
    from plotly import graph_objects as go

    return go.Bar(**properties)


def finish(traces: Iterable[Any], layout: Mapping[str, Any]) -> dict[str, Any]:
    """The figure as JSON can hold it, colours as token names.

    Raises:
        ValueError: plotly knows no such property.
    """
    from plotly import graph_objects as go

    return {
        "data": [_plain(trace.to_plotly_json()) for trace in traces],
        "layout": _plain(go.Layout(**layout).to_plotly_json()),
    }


def prepare() -> None:
    """Load what building a first figure takes, which is longer than all else of a page."""
    finish([scatter(x=[0], y=[0]), bar(x=[0], y=[0])], {"xaxis": {"title": {"text": ""}}, "shapes": [level(0, "ink")]})


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        match = _STAND_IN.fullmatch(value)
        if match is None:
            return value
        token = f"@{TOKENS[int(match[1])]}"
        return token if match[2] == "1" else f"{token}/{match[2]}"
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    return value


def level(y: float, token: str, dash: str = "solid") -> dict[str, Any]:
    """A horizontal line over the whole plot."""
    return {
        "type": "line",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": y,
        "y1": y,
        "line": {"color": colour(token), "width": 1.5, "dash": dash},
    }


def band(low: float, high: float, token: str, alpha: float) -> dict[str, Any]:
    """A horizontal band over the whole plot."""
    return {
        "type": "rect",
        "xref": "paper",
        "x0": 0,
        "x1": 1,
        "y0": low,
        "y1": high,
        "fillcolor": colour(token, alpha),
        "line": {"width": 0},
        "layer": "below",
    }


def level_label(text: str, y: float, token: str, *, left: bool = False, below: bool = False) -> dict[str, Any]:
    """The name of a level, on its line and in its colour."""
    return {
        "text": text,
        "xref": "paper",
        "x": 0.012 if left else 1,
        "y": y,
        "xanchor": "left" if left else "right",
        "yanchor": "top" if below else "bottom",
        "showarrow": False,
        "font": {"color": colour(token), "size": 12},
    }


def thin(frame: pd.DataFrame, column: str, limit: int = MAX_POINTS) -> pd.DataFrame:
    """At most ``limit`` rows in their order: of each stretch the one with the lowest and the one with the highest figure."""
    if len(frame) <= limit:
        return frame
    values = frame[column].to_numpy(dtype=float)
    kept: list[int] = []
    for stretch in np.array_split(np.arange(len(frame)), limit // 2):
        known = stretch[np.isfinite(values[stretch])]
        if known.size:
            kept += sorted({int(known[values[known].argmin()]), int(known[values[known].argmax()])})
    return frame.iloc[kept]


def records(frame: pd.DataFrame) -> list[Any]:
    """The rows of a frame, each with its columns as attributes."""
    return list(frame.itertuples())


def thinned_note(total: int, shown: int) -> str:
    """What to say where :func:`thin` left points out, "" where it did not."""
    return "" if shown >= total else f"Of {total:,} windows the lowest and the highest of each stretch are drawn."


def times(at: pd.Series) -> list[str]:
    """Instants as plotly reads them without shifting: the server's clock, no zone."""
    moments = pd.to_datetime(at, unit="s")
    whole = bool((at % 1 == 0).all())
    text = moments.dt.strftime("%Y-%m-%d %H:%M:%S" if whole else "%Y-%m-%d %H:%M:%S.%f")
    return [str(moment) for moment in (text if whole else text.str[:-3])]


def time_axis(at: pd.Series) -> dict[str, Any]:
    """The time axis: its title names the day where there is one, its ticks have what the span needs."""
    first, last = (pd.Timestamp(moment, unit="s") for moment in (at.min(), at.max()))
    one_day = first.date() == last.date()
    title = f"time on {first.day} {first:%B %Y}, server clock" if one_day else "time, server clock"
    axis: dict[str, Any] = {"type": "date", "title": {"text": title}, "nticks": 6}
    seconds = (last - first).total_seconds()
    if one_day:
        axis["tickformat"] = "%H:%M:%S" if seconds < 600 else "%H:%M"
    else:
        axis["tickformat"] = "%H:%M\n%e %b" if seconds < 4 * 86_400 else "%e %b\n%Y"
    return axis


def decimals(span: float) -> str:
    """The format of ticks that tell values apart over this span."""
    return ".2f" if span < 0.5 else ".1f"


def numbers(values: pd.Series | NDArray[np.float64], digits: int = 4) -> list[float | None]:
    """Figures for a trace, ``None`` where there is none."""
    return [round(float(value), digits) if math.isfinite(value) else None for value in np.asarray(values, dtype=float)]
