"""PAY001: speculation is slower than plain decoding."""

from __future__ import annotations

from analysis import words
from analysis.base import Outcome, Rule
from analysis.case import Case
from analysis.plain import Throughputs
from analysis.theory.payoff import PayOff
from analysis.thresholds import Thresholds
from analysis.view import RunView
from collector.domain.findings import Confidence, Finding, Question, Severity

PAYOFF_VALUES = ("speedup", "step_cost_ratio", "break_even_acceptance_length", "acceptance_length")


class SlowerThanBaseline(Rule):
    """Speculation makes this server slower than plain decoding at equal load.

    Why it matters:
        Every user waits longer than without the draft, and the draft's memory is spent on top.

    How to fix:
        Turn speculation off until it pays. Then repair what the loss is made of: the finding
        says what acceptance repaired alone, step cost repaired alone and both would give.

    Example:
        54.8 tok/s with a draft, 90.0 without: x0.609. A step yields 1.80 tokens and costs 2.96
        plain steps.

    Source:
        Theory section 5: speed-up = acceptance length / step cost.
    """

    id, name = "PAY001", "slower-than-baseline"
    question = Question.PAYOFF
    severity = Severity.WARNING

    def check(self, speculating: RunView, gain: Throughputs, thresholds: Thresholds, case: Case) -> Outcome:
        """The speed-up, or the upper end of its interval, against break-even."""
        payoff = case.payoff_or_none
        if payoff is None:
            if gain.ratio <= thresholds.loss_speedup:
                yield self._bare(speculating, gain, critical=gain.certain and gain.ratio <= thresholds.critical_speedup)
            return
        certain = payoff.speedup_high is not None and payoff.speedup_high < 1
        if payoff.speedup > thresholds.loss_speedup and not certain:
            return
        both = gain
        enough = both.certain
        speed = words.factor if both.relative else words.speed
        critical = payoff.speedup <= thresholds.critical_speedup and enough
        repairs = [repair for repair in payoff.repairs if repair.name != "as_it_is"]
        told = [
            f"{_REPAIR[repair.name]}: {speed(repair.throughput)} ({words.factor(repair.speedup)}"
            f"{', the usual step cost is an assumption' if repair.assumed else ''}), "
            f"{'gains' if repair.speedup > 1 else 'still a loss'}"
            for repair in repairs
        ]
        yield self.finding(
            f"Speculation makes this server {words.percent(1 - payoff.speedup)} slower: "
            f"{speed(payoff.throughput)}, {speed(payoff.baseline_throughput)} without",
            f"A step yields {words.length(payoff.length)} tokens and costs {words.significant(payoff.step_cost_ratio)} plain steps: "
            f"{words.factor(payoff.speedup)}. It would pay from length {words.length(payoff.break_even_length)} on"
            + (
                f", or conditional acceptance {words.rate(payoff.break_even_rate)}."
                if payoff.break_even_rate is not None
                else "."
            )
            + (f" {'. '.join(told)}." if told else ""),
            values={
                **speculating.figures(*PAYOFF_VALUES),
                "generation_throughput": payoff.throughput,
                "baseline_throughput": payoff.baseline_throughput,
                "break_even_conditional_acceptance_rate": payoff.break_even_rate,
                **{f"throughput_if_{repair.name}": repair.throughput for repair in repairs},
                **{f"speedup_if_{repair.name}": repair.speedup for repair in repairs},
            },
            evidence=[*both.evidence],
            fix=[
                f"Turn speculation off for now: {speed(payoff.baseline_throughput)} instead of {speed(payoff.throughput)}.",
                *(_plan(payoff)),
            ],
            verify=[_VERIFY],
            severity=Severity.CRITICAL if critical else Severity.WARNING,
            confidence=Confidence.HIGH if enough else Confidence.MEDIUM,
        )

    def _bare(self, run: RunView, both: Throughputs, *, critical: bool) -> Finding:
        """The loss where nothing says how many tokens a step yields."""
        speed = words.factor if both.relative else words.speed
        return self.finding(
            f"Speculation makes this server {words.percent(1 - both.ratio)} slower: {speed(both.speculative)}, {speed(both.plain)} without",
            f"{words.factor(both.ratio)}. Acceptance length and depth are not known, so what of it is acceptance and what the cost "
            "of a step cannot be told.",
            values={
                **run.figures(*PAYOFF_VALUES),
                "speedup": both.ratio,
                "generation_throughput": both.speculative,
                "baseline_throughput": both.plain,
            },
            evidence=[*both.evidence],
            fix=[
                f"Turn speculation off for now: {speed(both.plain)} instead of {speed(both.speculative)}.",
                "Give acceptance length and depth (a log, a scrape, or columns of the table) to find the cause.",
            ],
            verify=[_VERIFY],
            severity=Severity.CRITICAL if critical else Severity.WARNING,
            confidence=Confidence.MEDIUM,
        )


_VERIFY = "draftscope diagnose LOG --baseline LOG_WITHOUT_SPECULATION   # same flags, same number of requests"
_REPAIR = {
    "acceptance_repaired": "Acceptance repaired alone",
    "step_cost_repaired": "Step cost repaired alone",
    "both_repaired": "Both",
}


def _plan(payoff: PayOff) -> list[str]:
    if payoff.loss_share_acceptance is None or payoff.loss_share_step_cost is None:
        return ["Give validation figures and the target's config to split the loss into acceptance and step cost."]
    first = "acceptance" if payoff.loss_share_acceptance >= payoff.loss_share_step_cost else "the step cost"
    shares = f"acceptance {words.percent(payoff.loss_share_acceptance)}, step cost {words.percent(payoff.loss_share_step_cost)}"
    return [f"The loss against a healthy server: {shares}. Repair {first} first."]
