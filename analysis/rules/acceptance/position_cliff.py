"""ACC005: the shape of the per-position rates points to a cause."""

from __future__ import annotations

from collections.abc import Sequence

from analysis import words
from analysis.base import Outcome, Rule, cannot_look
from analysis.figures import Pooled
from analysis.rules.acceptance.below_validation import ACCEPTANCE_VALUES
from analysis.theory.positions import conditional_from_prefix
from analysis.thresholds import Thresholds
from analysis.view import RunView
from collector.domain.findings import Confidence, Finding, Question, Severity


class PerPositionCliff(Rule):
    """Acceptance breaks off at one position instead of falling gently.

    Why it matters:
        The shape tells where to look. A first position far below its validation means that the
        target's features arrive wrong; a good first and a bad second that the draft's own
        states, positions or cache are wrong from its second step on; exact zeros that these
        positions are never drafted.

    How to fix:
        First position low: captured layers, norm, vocabulary map, tokenizer, chat template.
        Later ones low: hidden-state feedback, position ids and cache of the draft's own steps.

    Example:
        Conditional acceptance .71, then .20: the second step is fed the wrong state.

    Source:
        Theory section 2.7.
    """

    id, name = "ACC005", "per-position-cliff"
    question = Question.ACCEPTANCE
    severity = Severity.WARNING
    confidence = Confidence.MEDIUM
    needs = ("ACC002",)

    def check(
        self,
        speculating: RunView,
        acceptance: Pooled,
        thresholds: Thresholds,
        findings: Sequence[Finding],
    ) -> Outcome:
        """The first cliff among the positions that enough steps reached."""
        prefix = acceptance.prefix
        if not prefix:
            raise cannot_look("no counts per position", "--metrics FILE or --responses FILE")
        if any(finding.rule == "ACC002" for finding in findings):
            return
        validation = speculating.record.validation
        first_expected = (validation.accuracy_at or (validation.accuracy,))[0] if validation else None
        if first_expected is not None and prefix[0] < thresholds.cliff_factor * first_expected:
            yield self._first(speculating, prefix, first_expected)
            return
        conditional = [rate or 0.0 for rate in conditional_from_prefix(prefix)]
        for i in range(1, len(prefix)):
            reached = prefix[i - 1] * acceptance.verify_steps
            enough = prefix[i - 1] >= thresholds.cliff_reach and reached >= thresholds.near_zero_steps
            if enough and conditional[i] < thresholds.cliff_factor * conditional[i - 1]:
                yield self._later(speculating, prefix, conditional, i)
                return

    def _first(self, run: RunView, prefix: Sequence[float], expected: float) -> Finding:
        return self.finding(
            f"The first draft is accepted {words.percent(prefix[0])} of the time; validation says {words.percent(expected)}",
            "The first position already fails, so what the target hands over is wrong: captured layers, norm, vocabulary "
            "map, tokenizer or chat template.",
            values={
                **run.figures(*ACCEPTANCE_VALUES),
                "position": 1,
                "acceptance_rate_at": list(prefix),
                "validation_accuracy": expected,
            },
            evidence=run.first_and_last,
            fix=["Check captured layers (DRF001), tokenizer and chat template of draft and target."],
            verify=["Replay the validation prompts at temperature 0 and look at the first position."],
        )

    def _later(self, run: RunView, prefix: Sequence[float], conditional: Sequence[float], i: int) -> Finding:
        dead = conditional[i] == 0
        what = "is never accepted" if dead else f"is accepted {words.rate(conditional[i])} of the time"
        return self.finding(
            f"Acceptance breaks off at position {i + 1}: {what}, after {words.rate(conditional[i - 1])} at the one before",
            "Exact zeros mean that these positions are not drafted or not fed at all."
            if dead
            else "The draft's own later steps fail: its hidden-state feedback, position ids or cache, or it was never trained for depth.",
            values={
                **run.figures(*ACCEPTANCE_VALUES),
                "position": i + 1,
                "acceptance_rate_at": list(prefix),
                "conditional_acceptance_rate_at": list(conditional),
            },
            evidence=run.first_and_last,
            fix=[
                f"Lower the depth to {i} for now: the positions after it earn nothing.",
                "Check hidden-state feedback, position ids and cache of the draft's steps after the first.",
            ],
            verify=[f"Run once with depth {i}: the length should stay, the step should get cheaper."],
        )
