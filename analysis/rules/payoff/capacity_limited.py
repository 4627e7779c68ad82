"""PAY004: queue or cache limits throughput, not speculation."""

from __future__ import annotations

import math

import pandas as pd

from analysis import words
from analysis.base import Outcome, Rule, cannot_look
from analysis.thresholds import Thresholds
from analysis.view import RunView
from collector.domain.findings import Question, Severity


class CapacityLimited(Rule):
    """Requests wait because the cache is full or the limit of running requests is reached.

    Why it matters:
        Throughput is then set by how many requests fit, so a better draft shows up as nothing.
        Speculation itself may be the reason: it lowers the limit and takes memory.

    How to fix:
        Raise the limit of running requests if memory allows (SGLang sets 48 for the whole
        server while speculating), give the cache more memory, or add replicas.

    Example:
        12 requests waiting in most windows, 48 running of 48.

    Source:
        SGLang 0.4.4 to 0.5.23: `max_running_requests` is reset to 48 under speculation.
    """

    id, name = "PAY004", "capacity-limited"
    question = Question.PAYOFF
    severity = Severity.WARNING

    def check(self, run: RunView, windows: pd.DataFrame, thresholds: Thresholds) -> Outcome:
        """Waiting requests together with a full cache or the limit."""
        windows = windows[windows["waiting_requests"].notna()]
        if windows.empty:
            raise cannot_look("no window states how many requests wait")
        waits = windows["waiting_requests"] >= 0.5  # one request; a window of an hour has the mean of many
        queued = float(waits.mean())
        if queued < thresholds.queue_share:
            return
        limit = run.arguments.value("max_running_requests")
        per_unit = limit / max(1, windows["unit"].nunique()) if isinstance(limit, (int, float)) and limit else None
        at_limit = per_unit is not None and float(windows["running_requests"].median()) >= per_unit
        full = float(windows["kv_cache_usage"].median()) >= thresholds.cache_full
        if not at_limit and not full:
            return
        what = "the limit of running requests is reached" if at_limit else "the cache is full"
        figures = {
            "waiting_requests": float(windows["waiting_requests"].mean()),
            "running_requests": float(windows["running_requests"].mean()),
            "kv_cache_usage": float(windows["kv_cache_usage"].median()),
        }
        known = {key: value for key, value in figures.items() if math.isfinite(value)}
        beside = f" while {words.significant(known['running_requests'])} run" if "running_requests" in known else ""
        yield self.finding(
            f"Requests wait in {words.percent(queued)} of the windows: {what}",
            f"{words.significant(known['waiting_requests'])} requests wait on average{beside}. "
            "Capacity, not drafting, sets the throughput.",
            values={**known, "max_running_requests": limit, "queued_share": queued},
            evidence=[run.window_evidence(windows.index[int(waits.to_numpy().argmax())])],
            fix=[
                "Raise --max-running-requests if memory allows."
                if at_limit
                else "Give the cache more memory or add a replica."
            ],
            verify=["The queue empties and throughput rises at the same acceptance."],
        )
