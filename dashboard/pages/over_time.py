"""Figures of a watched run, or of a group of them, over a range that the reader picks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

from collector.storage.traces import ACCEPTANCE, STEP, Trace
from dashboard.charts import traces
from dashboard.charts.base import Chart
from dashboard.charts.over_time import AcceptanceLevels, levels_of
from dashboard.pages import figures

HOUR: Final = 3600.0
DAY: Final = 24 * HOUR
RANGES: Final[Mapping[str, float | None]] = {
    "1h": HOUR, "6h": 6 * HOUR, "24h": DAY, "7d": 7 * DAY, "30d": 30 * DAY, "all": None,
}  # fmt: skip
"""Seconds back from now by the name in addresses; ``all`` is everything that is kept."""
USUAL: Final = "24h"
WORDS: Final[Mapping[str, str]] = {
    "1h": "1 hour", "6h": "6 hours", "24h": "24 hours", "7d": "7 days", "30d": "30 days", "all": "All",
}  # fmt: skip
_SAID: Final = {**WORDS, "1h": "hour"}
SHOWN: Final = (ACCEPTANCE, "generation_throughput", STEP)
POINTS: Final = 600
"""Points of a trace: about what a wide screen can tell apart."""


@dataclass(frozen=True, slots=True)
class Subject:
    """What is shown: a run or a group.

    ``home`` is the page that it stands on, ``own`` the address of the figures alone, ``api`` that of a trace in the API.
    """

    title: str
    home: str
    own: str
    api: str
    figures: Mapping[str, Mapping[str, Any]]
    baseline: float | None = None

    @classmethod
    def run(
        cls, run_id: str, title: str, figures_: Mapping[str, Mapping[str, Any]], baseline: float | None = None
    ) -> Subject:
        """A watched run."""
        path = f"/runs/{quote(run_id, safe='')}"
        return cls(title, path, f"{path}/over-time", f"/api/v1{path}/trace", figures_, baseline)

    @classmethod
    def group(cls, name: str) -> Subject:
        """All watched runs of a group."""
        asked = urlencode({"group": name})
        return cls(name, f"/groups?{asked}", f"/groups?{asked}", f"/api/v1/trace?{asked}", {})


@dataclass(frozen=True, slots=True)
class Choice:
    """One range to pick: its words, the address of the figures alone, and that of the page with it."""

    name: str
    words: str
    own: str
    home: str
    chosen: bool


@dataclass(frozen=True, slots=True)
class OverTime:
    """Everything the template shows; without charts ``missing`` says why, and ``last`` when there were windows."""

    title: str
    home: str
    own: str
    choices: tuple[Choice, ...]
    charts: tuple[Chart, ...] = ()
    missing: str = ""
    last: str = ""
    data: tuple[tuple[str, str], ...] = ()


def range_named(name: str, last: float | None, now: float) -> str:
    """A range by its name; where it is none, the usual one, or everything where that would be empty."""
    if name in RANGES:
        return name
    return USUAL if last is not None and last >= now - DAY else "all"


def since(chosen: str, now: float) -> float | None:
    """Where a range begins, seconds since 1970."""
    back = RANGES[chosen]
    return None if back is None else now - back


def over_time(subject: Subject, found: Sequence[Trace], chosen: str, last: float | None, now: float) -> OverTime:
    """The section for the traces of :data:`SHOWN`; ``last`` is the instant of the last window there is."""
    acceptance, throughput, step = found
    begins = since(chosen, now)
    levels = _levels(subject.figures)
    charts = (
        traces.acceptance(acceptance, levels),
        traces.throughput(throughput, subject.baseline),
        traces.step_time(step),
    )
    drawn = tuple(chart for chart in charts if chart is not None)
    asked = {} if begins is None else {"since": f"{begins:.0f}"}
    return OverTime(
        title=subject.title,
        home=subject.home,
        own=subject.own,
        choices=tuple(
            Choice(name, words, _with(subject.own, range=name), _with(subject.home, range=name), name == chosen)
            for name, words in WORDS.items()
        ),
        charts=drawn,
        missing="" if drawn else _missing(chosen, last),
        last="" if drawn or last is None else f"The last one is from {figures.instant(last)}.",
        data=tuple((one.quantity, _with(subject.api, quantity=one.quantity, **asked)) for one in found if one.at),
    )


def _missing(chosen: str, last: float | None) -> str:
    if last is None:
        return "No window was seen of it yet"
    return "None of its windows has these figures" if chosen == "all" else f"No windows in the last {_SAID[chosen]}"


def _levels(known: Mapping[str, Mapping[str, Any]]) -> AcceptanceLevels:
    """What lengths are held against; the run's own figure is of all its windows and would hide those of the range."""
    levels = levels_of(known)
    return AcceptanceLevels(
        healthy=levels.healthy, promised=levels.promised, break_even=levels.break_even, maximum=levels.maximum
    )


def _with(address: str, **parameters: str) -> str:
    return f"{address}{'&' if '?' in address else '?'}{urlencode(parameters)}"
