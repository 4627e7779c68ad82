"""MEA006: too few windows or requests for a verdict."""

from __future__ import annotations

from analysis import words
from analysis.base import Outcome, Rule
from analysis.case import Case
from analysis.figures import Pooled
from analysis.theory.settings import DEFAULTS
from analysis.thresholds import Thresholds
from analysis.view import RunView
from collector.domain.findings import Question, Severity


class InsufficientEvidence(Rule):
    """There are too few windows or requests for the verdict at hand.

    Why it matters:
        One window of one request says little: at batch 1 a single line ranges from 1.9 to 4.3
        around a true length of 3.1. An answer from a handful of lines is a guess.

    How to fix:
        Let it run: 12 steady windows, or 10 requests with counts, decide most questions.

    Example:
        Six decode lines of one request.

    Source:
        Theory section 4.2 and 4.3.
    """

    id, name = "MEA006", "insufficient-evidence"
    question = Question.DATA
    severity = Severity.INFO

    def check(self, speculating: RunView, pooled: Pooled, thresholds: Thresholds, case: Case) -> Outcome:
        """Count what stands behind the figures, and what the divergence test still needs."""
        enough = thresholds.few_windows if pooled.each == "window" else DEFAULTS.minimum_requests
        few = pooled.windows < enough
        needed = enough if few else None
        test = case.divergence
        if test is not None and test.verdict == "inconclusive" and test.windows_needed is not None:
            needed = max(needed or 0, test.windows_needed)
        if not few and needed is None and not pooled.tainted:
            return
        have = pooled.windows
        reason = f"{words.plural(have, pooled.each)} so far; {needed or enough} decide it."
        if pooled.tainted:
            reason = f"Every window has start-up, a pause or nothing running inside its clock, so all {have} were used. {reason}"
        yield self.finding(
            f"{words.plural(have, pooled.each)}: too few to be sure"
            if few or pooled.tainted
            else f"{words.plural(have, pooled.each)} leave the question open",
            reason,
            values={
                "windows": have,
                "windows_needed": needed or enough,
                "verify_steps": pooled.verify_steps,
            },
            evidence=speculating.first_and_last,
            fix=[f"Collect {max(1, (needed or enough) - have)} more {pooled.each}s under steady load."],
            verify=["draftscope diagnose LONGER_LOG"],
        )
