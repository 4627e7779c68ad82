"""PAY006: a batch-size schedule for drafting costs throughput."""

from __future__ import annotations

import pandas as pd

from analysis import words
from analysis.base import Outcome, Rule, cannot_look
from analysis.thresholds import Thresholds
from analysis.view import RunView
from collector.domain.findings import Confidence, Question, Severity

SCHEDULE_FLAGS = ("speculative_adaptive", "speculative_disable_by_batch_size", "num_speculative_tokens_per_batch_size")


class DynamicScheduleCollapse(Rule):
    """A schedule that turns drafting off at some batch sizes makes those windows slower.

    Why it matters:
        The schedule is meant to save work under load. Where throughput per window falls when
        drafts stop, it does the opposite.

    How to fix:
        Raise the batch size at which drafting stops, or use a fixed depth, and compare.

    Example:
        In 35% of the windows nothing is drafted, and they are 22% slower.

    Source:
        Theory section 5.4.
    """

    id, name = "PAY006", "dynamic-schedule-collapse"
    question = Question.PAYOFF
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM

    def check(self, speculating: RunView, windows: pd.DataFrame, thresholds: Thresholds) -> Outcome:
        """Throughput per running request with and without drafts."""
        flags = [flag for flag in SCHEDULE_FLAGS if speculating.arguments.value(flag)]
        if not flags:
            raise cannot_look("no schedule for drafting is configured")
        rows = windows[windows["counted"] & windows["running_requests"].gt(0) & windows["generation_throughput"].gt(0)]
        if rows.empty:
            raise cannot_look("no window with throughput counts", "a log that covers traffic")
        without = rows["verify_steps"].fillna(0).eq(0)
        share = float(without.mean())
        if share < thresholds.schedule_idle_share or without.all():
            return
        speed = rows["generation_throughput"].groupby(without).mean()
        lost = 1 - float(speed[True]) / float(speed[False])
        if lost < thresholds.schedule_loss:
            return
        yield self.finding(
            f"Nothing is drafted in {words.percent(share)} of the windows, and they are {words.percent(lost)} slower",
            f"{flags[0]} turns drafting off there.",
            values={"flag": flags[0], "share": share, "lost_share": lost, "generation_throughput": float(speed[True])},
            evidence=[speculating.window_evidence(rows.index[int(without.to_numpy().argmax())])],
            fix=["Raise the batch size at which drafting stops, or use a fixed depth."],
            verify=["Run the same load with a fixed depth and compare throughput."],
        )
