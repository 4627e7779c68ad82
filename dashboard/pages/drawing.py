"""From the windows of a run to all that its pages draw of them."""

from __future__ import annotations

import math
from typing import Final

import pandas as pd

from analysis.frame import SCRAPED
from collector.domain.runs import Role
from dashboard.charts import over_time, windows
from dashboard.charts.base import Chart, records
from dashboard.charts.drawn import Drawn, LeftOut, Seen
from dashboard.charts.over_time import AcceptanceLevels, levels_of
from dashboard.charts.overlays import line_of
from dashboard.pages import figures
from dashboard.pages.findings import title_of
from dashboard.store import RunReport, recent_lengths

SHOWN_WINDOWS: Final = 20
"""Left-out windows listed one by one; more are counted."""


def drawn_of(report: RunReport) -> Drawn:
    """What is drawn of a report: as it was stored, else made of its windows.

    Plots over time of an engine that is watched are drawn from its tiers, over the range that the reader picks.
    """
    if report.drawn is not None:
        return report.drawn
    frame, source = report.frame(), report.subject["source"]
    if frame is None:
        return Drawn()
    levels = levels_of(report.subject["quantities"])
    watched = bool(frame["origin"].isin(SCRAPED).all()) if report.watched else False
    left_out, more = _left_out(frame, source)
    return Drawn(
        over_time=None if watched else over_time.acceptance_length(frame, source, levels),
        spread=_spread(report, levels),
        context=windows.by_context(frame, levels, title_of(report, "ACC006")),
        batch=windows.by_batch(frame, levels),
        throughput=None
        if watched
        else over_time.throughput(frame, source, report.number("generation_throughput"), report.baseline_throughput),
        running=None if watched else over_time.running_requests(frame, source),
        lengths=line_of(frame, "acceptance_length", "counted"),
        throughputs=line_of(frame, "generation_throughput", "steady"),
        recent=recent_lengths(frame),
        seen=_seen(frame),
        left_out=left_out,
        more_left_out=more,
    )


def _seen(frame: pd.DataFrame) -> Seen:
    used = frame[frame["counted"]] if frame["counted"].any() else frame
    return Seen(float(used["at"].min()), float(used["at"].max()), len(used))


def _left_out(frame: pd.DataFrame, source: str) -> tuple[list[LeftOut], int]:
    """The first windows that do not count, and how many more there are."""
    out = frame[frame["left_out"] != ""]
    rows = []
    for window in records(out.head(SHOWN_WINDOWS)):
        shown = []
        if math.isfinite(window.acceptance_length):
            shown.append(f"length {figures.length(window.acceptance_length)}")
        if math.isfinite(window.generation_throughput):
            shown.append(f"{figures.significant(window.generation_throughput)} tok/s")
        scope = window.left_out if not window.counted else f"{window.left_out} (still counts for acceptance)"
        place = f"{source}:{window.line}" if window.line else source
        rows.append(LeftOut(figures.clock(window.at), place, ", ".join(shown), scope))
    return rows, max(0, len(out) - SHOWN_WINDOWS)


def _spread(report: RunReport, levels: AcceptanceLevels) -> Chart | None:
    frame, earlier = report.frame(), report.frame(Role.PREVIOUS)
    previous = report.run(Role.PREVIOUS)
    if frame is None or earlier is None or previous is None:
        return None
    earlier_levels = levels_of(previous["quantities"])
    return windows.spread(frame, earlier, levels, earlier_levels, _change(report, levels, earlier_levels))


def _change(report: RunReport, now: AcceptanceLevels, before: AcceptanceLevels) -> str:
    """Whether the two runs differ: the finding says so, else the intervals."""
    found = title_of(report, "ACC003")
    if found or now.value is None or before.value is None:
        return found
    pair = f"{figures.length(before.value)} to {figures.length(now.value)}"
    if now.low is None or now.high is None or before.low is None or before.high is None:
        return f"{pair}."
    if now.low > before.high:
        return f"{pair}: rose."
    counted = (report.quantity("acceptance_length") or {}).get("windows")
    shown = f"that {figures.plural(counted, 'window')} can show" if counted else "that these windows can show"
    return f"{pair}: no fall {shown}."
