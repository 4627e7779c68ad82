"""PAY003: far more is drafted than can be accepted."""

from __future__ import annotations

from collections.abc import Sequence

from analysis import words
from analysis.base import Outcome, Rule
from analysis.case import Case
from analysis.figures import Pooled
from analysis.thresholds import Thresholds
from analysis.view import RunView
from collector.domain.findings import Confidence, Finding, Question, Severity


class DraftLengthWasteful(Rule):
    """Far more is drafted than can be accepted, or a shorter draft would be faster.

    Why it matters:
        Drafted tokens cost draft passes and verification whether or not they are accepted.
        Beyond the best depth every further position makes the server slower.

    How to fix:
        Lower the depth, or the number of draft tokens of a tree, to what the finding names and
        measure again.

    Example:
        60 draft tokens a step for a length of 3.2: 4% of the drafted tokens are accepted.

    Source:
        Theory section 5.5: add a position only while its share of accepted steps exceeds the
        speed-up times its cost.
    """

    id, name = "PAY003", "draft-length-wasteful"
    question = Question.PAYOFF
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM
    needs = ("ACC002",)

    def check(
        self,
        speculating: RunView,
        acceptance: Pooled,
        depth: int,
        thresholds: Thresholds,
        case: Case,
        findings: Sequence[Finding],
    ) -> Outcome:
        """Drafted against accepted tokens, and the best depth against the one in use."""
        if any(finding.rule == "ACC002" for finding in findings):
            return
        width = speculating.width
        rate = speculating.value("draft_acceptance_rate")
        best = case.best_depth
        wide = (
            width is not None
            and rate is not None
            and width - 1 >= thresholds.wasteful_drafted
            and rate < thresholds.wasteful_rate
        )
        shorter = None
        if best is not None and speculating.drafting.chain and depth < len(best.speedups):
            faster = max(range(1, depth + 1), key=lambda k: best.speedups[k])
            if faster < depth and best.speedups[faster] >= thresholds.better_depth_gain * best.speedups[depth]:
                shorter = faster
        if not wide and shorter is None:
            return
        parts, fix = [], []
        if wide and width is not None and rate is not None:
            parts.append(
                f"{words.count(width - 1)} tokens are drafted a step and {words.percent(rate)} of them accepted"
            )
            fix.append(f"Lower --speculative-num-draft-tokens: no step can accept more than {depth} of {width - 1}.")
        if shorter is not None and best is not None:
            gain = best.speedups[shorter] / best.speedups[depth] - 1
            parts.append(f"depth {shorter} would be {words.percent(gain)} faster than depth {depth}")
            fix.append(f"Set the depth to {shorter} (--speculative-num-steps on SGLang).")
        title = " and ".join(parts)
        turn_off = best is not None and best.turn_off
        yield self.finding(
            title[0].upper() + title[1:],
            f"Length {words.length(acceptance.length)} of at most {depth + 1}. "
            + ("At today's cost no depth pays, so turn speculation off until the step is cheaper. " if turn_off else "")
            + ("The draft's own cost is taken from its class, an assumption." if shorter is not None else ""),
            values={
                **speculating.figures("draft_depth", "verify_width", "acceptance_length", "draft_acceptance_rate"),
                "best_draft_depth": best.depth if best is not None else shorter,
            },
            evidence=speculating.first_and_last,
            fix=fix,
            verify=["Run once with the smaller value at the same load and compare tokens per second."],
        )
