"""MEA008: the baseline ran under other conditions."""

from __future__ import annotations

from analysis import words
from analysis.base import Outcome, Rule
from analysis.differences import argument_differences
from analysis.theory.payoff import PayOff
from analysis.thresholds import Thresholds
from analysis.view import RunView
from collector.domain.findings import Question, Severity


class BaselineNotComparable(Rule):
    """The run without speculation had another load, other flags, or gives an impossible step cost.

    Why it matters:
        A speed-up holds at equal load only: plain decoding gains from every further request of
        the batch. A step cost below one plain step is impossible and proves a mismatch.

    How to fix:
        Run the baseline with the same flags, prompts and number of concurrent requests.

    Example:
        32 running requests with the draft, 8 without.

    Source:
        Theory section 5.2.
    """

    id, name = "MEA008", "baseline-not-comparable"
    question = Question.DATA
    severity = Severity.INFO

    def check(self, speculating: RunView, baseline: RunView, payoff: PayOff, thresholds: Thresholds) -> Outcome:
        """Load, flags and the step cost itself."""
        doubts = []
        loads = speculating.value("running_requests"), baseline.value("running_requests")
        if loads[0] and loads[1] and abs(loads[1] / loads[0] - 1) > thresholds.load_difference:
            doubts.append(
                f"{words.significant(loads[0])} requests ran with the draft, {words.significant(loads[1])} without"
            )
        if not payoff.baseline_comparable:
            doubts.append(
                f"the step cost comes out at {words.significant(payoff.step_cost_ratio)} plain steps, and none costs less than 1"
            )
        flags = [
            text
            for text in argument_differences(baseline, speculating)
            if "speculative" not in text and not text.startswith("draft")
        ]
        if not doubts:
            return
        if flags:
            doubts.append(f"the runs also differ in {words.listing(flags)}")
        yield self.finding(
            "The baseline ran under other conditions",
            f"{'; '.join(doubts)[0].upper()}{'; '.join(doubts)[1:]}. The speed-up is no more than a hint.",
            scope="baseline",
            values={
                **speculating.figures("running_requests", "step_cost_ratio", "speedup"),
                "baseline_running_requests": loads[1],
            },
            evidence=[*speculating.first_and_last, *baseline.first_and_last_plain],
            fix=["Repeat the baseline with the same flags, prompts and number of concurrent requests."],
            verify=["draftscope diagnose LOG --baseline NEW_BASELINE"],
        )
