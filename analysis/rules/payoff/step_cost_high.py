"""PAY002: the step costs clearly more than usual for its class."""

from __future__ import annotations

from analysis import words
from analysis.base import Outcome, Rule
from analysis.case import Case
from analysis.rules.payoff.slower_than_baseline import PAYOFF_VALUES
from analysis.theory.payoff import PayOff, nearest_published_cost, usual_step_cost
from analysis.thresholds import Thresholds
from analysis.view import RunView
from collector.domain.findings import Confidence, Question, Severity


class StepCostHigh(Rule):
    """A speculative step costs clearly more plain steps than is usual for this kind of target.

    Why it matters:
        Speed-up is length over step cost, so a dear step eats what good acceptance earns. It is
        the fault people overlook when they look at acceptance alone.

    How to fix:
        Look for graphs that are off in verification or draft steps, a draft that runs on one
        GPU, another attention kernel, a verify width far above depth + 1. Measure one run at
        depth 1: it splits the step cost into drafting and verification.

    Example:
        A mixture-of-experts target at depth 5: 2.96 plain steps where 2.0 is usual.

    Source:
        Theory section 5.2 and 5.3. The usual cost is an assumption: 1.15 + 0.07 k for dense
        targets, 1.45 + 0.11 k for mixtures of experts.
    """

    id, name = "PAY002", "step-cost-high"
    question = Question.PAYOFF
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM

    def check(self, speculating: RunView, payoff: PayOff, depth: int, thresholds: Thresholds, case: Case) -> Outcome:
        """Step cost against the usual one; without the target's config the dearer class is the yardstick."""
        known = case.mixture_of_experts
        experts = known is not False
        usual = usual_step_cost(depth, experts)
        if payoff.step_cost_ratio < thresholds.step_cost_factor * usual:
            return
        share = payoff.loss_share_step_cost
        severity = Severity.INFO if share is not None and share < 0.5 else Severity.WARNING
        kind = "a mixture of experts" if experts else "a dense target"
        if known is None:
            kind += " (the target's config was not given; a dense target would be cheaper)"
        model, at_depth, batch, ratio = nearest_published_cost(depth, experts)
        part = (
            ""
            if share is None
            else f" It is {words.percent(share)} of the loss{', the larger part' if share >= 0.5 else ''}."
        )
        step = speculating.value("step_seconds")
        time = f" ({words.duration(step)})" if step is not None else ""
        seen = " (cuda graph: True in the decode lines)" if speculating.record.engine == "sglang" else ""
        yield self.finding(
            f"A step costs {words.significant(payoff.step_cost_ratio)} plain steps; {words.significant(usual)} is usual for {kind}",
            f"One step{time} takes as long as {words.significant(payoff.step_cost_ratio)} steps without speculation.{part} "
            f"The usual cost is assumed; nearest published: {model}, depth {at_depth}, batch {batch}: {words.significant(ratio)}.",
            values={
                **speculating.figures(*PAYOFF_VALUES),
                "usual_step_cost": usual,
                "loss_share_step_cost": share,
            },
            evidence=speculating.first_and_last,
            fix=[
                f"Check that verification and draft steps run from captured graphs{seen}.",
                "Check that the draft is spread over the same GPUs as the target.",
                "Lower the depth: each drafted token adds its own pass.",
            ],
            verify=["Run once with depth 1 at the same load: the difference is the cost of drafting."],
            severity=severity,
        )
