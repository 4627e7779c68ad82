"""ACC006: acceptance falls as the context grows."""

from __future__ import annotations

import math

import numpy as np
from scipy.special import stdtr

from analysis import words
from analysis.base import Outcome, Rule, cannot_look
from analysis.figures import varying_rows
from analysis.rules.acceptance.below_validation import ACCEPTANCE_VALUES
from analysis.thresholds import Thresholds
from analysis.view import RunView
from collector.domain.findings import Confidence, Question, Severity


class AcceptanceDecaysWithContext(Rule):
    """Acceptance falls as the context grows.

    Why it matters:
        The draft works on short contexts and fails on long ones, so averages hide it and the
        users with long conversations get the slowest server.

    How to fix:
        Compare the draft's window and rotary settings with what is served (DRF005, DRF006);
        train the draft on long contexts, or turn speculation off beyond its window.

    Example:
        Length 2.3 at 2,000 tokens, 1.1 at 16,000.

    Source:
        Theory section 2.7; speculators PR 684.
    """

    id, name = "ACC006", "acceptance-decays-with-context"
    question = Question.ACCEPTANCE
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM

    def check(self, speculating: RunView, thresholds: Thresholds) -> Outcome:
        """Rank correlation with the context, and its top third against its bottom third."""
        frame = speculating.frame
        usable = frame["counted"] & frame["tokens_in_use"].gt(0) & frame["running_requests"].gt(0)
        rows = frame.loc[
            varying_rows(frame) & usable.to_numpy(),
            ["tokens_in_use", "running_requests", "accepted_tokens", "verify_steps"],
        ]
        if len(rows) < thresholds.few_windows:
            raise cannot_look(f"needs {thresholds.few_windows} windows with tokens in use", "a longer log")
        context = rows["tokens_in_use"] / rows["running_requests"]
        accepted = rows["accepted_tokens"] / rows["verify_steps"]
        order = np.argsort(context.to_numpy(), kind="stable")
        third = len(rows) // 3
        low, high = rows.iloc[order[:third]], rows.iloc[order[-third:]]
        spans = float(context.iloc[order[:third]].median()), float(context.iloc[order[-third:]].median())
        if spans[1] < thresholds.context_ratio * spans[0]:
            return
        short, long = (float(part["accepted_tokens"].sum() / part["verify_steps"].sum()) for part in (low, high))
        if short <= 0 or long > thresholds.context_retained * short:
            return
        correlation = float(np.corrcoef(context.rank(), accepted.rank())[0, 1])
        if not correlation < 0 or _p_value(correlation, len(rows)) >= thresholds.context_significance:
            return
        yield self.finding(
            f"Acceptance falls with the context: length {words.length(1 + short)} at {words.count(spans[0])} tokens, "
            f"{words.length(1 + long)} at {words.count(spans[1])}",
            f"{words.percent(1 - long / short)} of the accepted drafts are lost between the short and the long third of the windows.",
            values={
                **speculating.figures(*ACCEPTANCE_VALUES),
                "context_short": spans[0],
                "context_long": spans[1],
                "accepted_per_step_short": short,
                "accepted_per_step_long": long,
                "rank_correlation": correlation,
            },
            evidence=[speculating.window_evidence(int(low.index[0])), speculating.window_evidence(int(high.index[-1]))],
            fix=[
                "Compare the draft's window and rotary settings with the target's.",
                "Train the draft on long contexts, or serve long requests without it.",
            ],
            verify=["Send one long and one short prompt and compare their acceptance."],
        )


def _p_value(correlation: float, size: int) -> float:
    """One-sided, of a rank correlation this negative by chance (t approximation)."""
    if correlation <= -1:
        return 0.0
    t = correlation * math.sqrt((size - 2) / (1 - correlation**2))
    return float(stdtr(size - 2, t))
