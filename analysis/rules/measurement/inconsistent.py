"""MEA003: two figures of one source contradict each other."""

from __future__ import annotations

from analysis import words
from analysis.base import Outcome, Rule
from analysis.printed import PrintedRate
from analysis.view import RunView
from collector.domain.findings import Question, Severity

POSITIONS_ROUNDING = 0.02
"""How far 1 + the sum of printed positions may lie from the length. Tokens. Each is rounded to three decimals."""


class MetricInconsistent(Rule):
    """Two figures of one source contradict each other beyond their printed rounding.

    Why it matters:
        One of them is wrong: another depth runs than assumed, a counter is faulty, or a report
        mixes definitions. What rests on the wrong one is void.

    How to fix:
        Check the depth and the number of draft tokens that run, and whether a schedule changes
        them; prefer counts to printed ratios.

    Example:
        Length 1.94 with rate 48.5% and length 2.99 with rate 66% in one table: the first is
        length / 4, the second accepted / 3.

    Source:
        Theory section 1.2, self-checks.
    """

    id, name = "MEA003", "metric-inconsistent"
    question = Question.DATA
    severity = Severity.WARNING

    def check(self, speculating: RunView, printed: PrintedRate | None = None) -> Outcome:
        """Rate against length, and positions against length."""
        depth, width = speculating.depth, speculating.width
        adaptive = bool(speculating.arguments.value("speculative_adaptive"))
        if printed is not None and printed.definition is None and depth and width and not adaptive:
            yield self.finding(
                f"Printed length {printed.length:g} and rate {printed.rate:g} fit no definition",
                f"With depth {depth} and {width} tokens verified a step none of the known formulas turns one into the other.",
                values={
                    "metric": "accept rate",
                    "printed": printed.rate,
                    **speculating.figures("acceptance_length", "draft_depth", "verify_width"),
                },
                evidence=[speculating.window_evidence(printed.row)],
                fix=["Check the depth and the number of draft tokens that run (argument line)."],
                verify=["grep -o 'speculative_num_[a-z_]*=[0-9]*' LOG"],
            )
        pooled = speculating.pooled
        if pooled is None or not pooled.prefix:
            return
        summed = 1 + sum(pooled.prefix)
        if abs(summed - pooled.length) > POSITIONS_ROUNDING:
            yield self.finding(
                f"Positions add up to length {words.length(summed)}, the counts say {words.length(pooled.length)}",
                "1 + the shares of all positions is the length by definition.",
                values={"metric": "acceptance_rate_at", "acceptance_length": pooled.length, "summed": summed},
                evidence=speculating.first_and_last,
                fix=["Prefer the counts; the list is cut, delayed, or of another meaning."],
                verify=["Compare both over one long interval."],
            )
