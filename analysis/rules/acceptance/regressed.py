"""ACC003: lower than in a comparable earlier run."""

from __future__ import annotations

import math

from analysis import words
from analysis.base import Outcome, Rule, cannot_look
from analysis.differences import argument_differences
from analysis.figures import Pooled
from analysis.rules.acceptance.below_validation import ACCEPTANCE_VALUES
from analysis.theory.chain import implied_rate_error
from analysis.theory.intervals import CONSERVATIVE
from analysis.thresholds import Thresholds
from analysis.traffic import MixShift
from analysis.view import RunView
from collector.domain.findings import Confidence, Question, Severity


class AcceptanceRegressed(Rule):
    """Acceptance is lower than in an earlier run of the same target, beyond the intervals.

    Why it matters:
        The same draft did better before. Whatever changed between the two runs (release, flags,
        layout, checkpoint, traffic) is where to look. Where both runs have request results, a fall
        that another mixture of temperatures, routes or lengths explains is a note.

    How to fix:
        Undo the differences one at a time, the release first. The finding lists them.

    Example:
        Length 2.20 on SGLang 0.5.4, 1.04 on 0.5.5 with the same draft and flags.

    Source:
        Theory section 4.3: the difference must exceed both intervals together and a tenth of
        the earlier accepted drafts. False alarms in simulation: 0.7 to 8%.
    """

    id, name = "ACC003", "acceptance-regressed"
    question = Question.ACCEPTANCE
    severity = Severity.WARNING

    def check(self, speculating: RunView, acceptance: Pooled, previous: RunView, thresholds: Thresholds) -> Outcome:
        """Lengths at equal depth, conditional rates otherwise."""
        before = previous.pooled
        if before is None:
            raise cannot_look("the earlier run shows no acceptance figures", "--previous LOG of a run that speculates")
        same_depth = speculating.depth is None or previous.depth is None or speculating.depth == previous.depth
        if same_depth:
            fell = before.accepted_per_step - acceptance.accepted_per_step
            half = math.hypot(before.interval.half, acceptance.interval.half)
            lost = fell / before.accepted_per_step if before.accepted_per_step > 0 else 0.0
            was, now, unit = before.length, acceptance.length, "length"
        else:
            pairs = [(view, pooled) for view, pooled in ((previous, before), (speculating, acceptance))]
            rates = [view.value("conditional_acceptance_rate") for view, _ in pairs]
            if rates[0] is None or rates[1] is None:
                raise cannot_look("the runs differ in depth and their conditional acceptance is not known")
            halves = [
                implied_rate_error(pooled.length, pooled.interval.half, view.depth or 1) for view, pooled in pairs
            ]
            was, now, unit = rates[0], rates[1], "conditional acceptance"
            fell, half = was - now, math.hypot(*halves)
            lost = fell / was if was > 0 else 0.0
        if fell <= half or lost < thresholds.regression_share:
            return
        changed = argument_differences(previous, speculating)
        shift = self._shift(speculating, previous) if same_depth else None
        mixed = shift is not None and shift.within < max(half, thresholds.regression_share * before.accepted_per_step)
        weak = CONSERVATIVE in (before.interval.method, acceptance.interval.method) or bool(
            acceptance.interval.approximate
        )
        yield self.finding(
            f"Acceptance fell: {unit} {was:.3g} before, {now:.3g} now",
            f"{words.percent(lost)} of the accepted drafts are gone, more than both intervals together. "
            + ("" if shift is None else _of_mixture(shift, mixed=mixed))
            + (
                f"The runs also differ in {words.listing(changed)}."
                if changed
                else "No other difference of the runs is known."
            ),
            values={
                **speculating.figures(*ACCEPTANCE_VALUES),
                "previous": was,
                "lost_share": lost,
                "differences": changed,
                **({} if shift is None else {"mixture": shift.by, "lost_to_mixture": shift.from_mixture}),
            },
            evidence=[*speculating.first_and_last, *previous.first_and_last],
            fix=[
                "Undo what differs one thing at a time, the release first, and compare after each.",
                "Nothing differs: compare the traffic (prompt format, language, output length, temperature).",
            ],
            verify=["draftscope diagnose NEW_LOG --previous OLD_LOG"],
            severity=Severity.INFO if mixed else None,
            confidence=Confidence.LOW if weak else Confidence.HIGH,
        )

    @staticmethod
    def _shift(now: RunView, before: RunView) -> MixShift | None:
        """What a change of the mixture of traffic explains, where acceptance of both runs is that of requests."""
        both = now.traffic, before.traffic
        if both[0] is None or both[1] is None or not (both[0].stand and both[1].stand):
            return None
        return both[0].shift_from(both[1])


def _of_mixture(shift: MixShift, *, mixed: bool) -> str:
    what = words.respect(shift.by)
    if mixed:
        return f"Another mixture of {what} explains it: within each, no more is lost than the intervals allow. "
    return (
        f"Another mixture of {what} accounts for {shift.from_mixture:.2f} of the "
        f"{shift.from_mixture + shift.within:.2f} drafts a step that are lost. "
    )
