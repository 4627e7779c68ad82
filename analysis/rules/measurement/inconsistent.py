"""MEA003: two figures of one source contradict each other."""

from __future__ import annotations

from analysis.base import Outcome, Rule
from analysis.benchmarks import report_contradictions
from analysis.contradictions import contradictions
from analysis.view import RunView
from collector.domain.findings import Question, Severity


class MetricInconsistent(Rule):
    """Two figures of one source contradict each other beyond their printed rounding.

    Why it matters:
        One of them is wrong: another depth runs than assumed, a counter is faulty, or a report
        mixes definitions. What rests on the wrong one is void, so acceptance is not judged.

    How to fix:
        Check the depth and the number of draft tokens that run, and whether a schedule changes
        them; prefer counts to printed ratios.

    Example:
        Length 1.94 with rate 48.5% and length 2.99 with rate 66% in one table: the first is
        length / 4, the second accepted / 3.

    Source:
        Theory section 1.2, self-checks; throughput x time = steps x length.
    """

    id, name = "MEA003", "metric-inconsistent"
    question = Question.DATA
    severity = Severity.WARNING

    def check(self, speculating: RunView) -> Outcome:
        """Rate against length, positions against length, length against the clock; the rows of reports among themselves."""
        own = list(contradictions(speculating))
        for found in own:
            shown = [speculating.window_evidence(found.row)] if found.row is not None else speculating.first_and_last
            yield self.finding(
                found.title,
                found.why,
                values=found.values,
                evidence=shown,
                fix=[found.fix],
                verify=["grep -o 'speculative_num_[a-z_]*=[0-9]*' LOG"],
            )
        for row in report_contradictions(speculating.record.results):
            if any(found.values.get("metric") == "acceptance_rate_at" for found in own):
                return  # the run's figures are that report's
            yield self.finding(
                row.title,
                row.why,
                values=row.values,
                evidence=row.evidence,
                fix=["Prefer the counts; recompute length and rate from them under one definition."],
                verify=[
                    "Length = 1 + accepted / verify steps; rate = accepted / drafted, or (length - 1) / depth for a chain."
                ],
            )
