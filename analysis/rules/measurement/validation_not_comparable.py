"""MEA007: validation and serving measure different things."""

from __future__ import annotations

from analysis.base import Outcome, Rule
from analysis.promise import Promise
from analysis.view import RunView
from collector.domain.drafts import Measure
from collector.domain.findings import Question, Severity

_MEASURE = {
    Measure.UNKNOWN: "what it counts is not stated; it is read as one constant accuracy",
    Measure.MARGINAL: "it counts each position whatever came before, so a chain of them is an approximation",
}


class ValidationNotComparable(Rule):
    """The validation figure and this server's figures measure different things, or may do so.

    Why it matters:
        Prefix, conditional and marginal accuracies of one draft differ by a factor; sampling
        lowers acceptance by 4 to 17%. A gap that is one of definition is no fault.

    How to fix:
        State what the figure counts (`--training FILE` with the log that printed it), and the
        temperature of the traffic (`--temperature`).

    Example:
        0.633/0.404/0.264 read as prefix shares give length 2.30, as conditional ones 1.96.

    Source:
        Theory sections 1.3 and 2.5.
    """

    id, name = "MEA007", "validation-not-comparable"
    question = Question.DATA
    severity = Severity.INFO

    def check(self, speculating: RunView, promise: Promise) -> Outcome:
        """What is unknown or differs: measure, temperature, vocabulary."""
        validation = promise.validation
        doubts, fix = [], []
        if validation.measure in _MEASURE:
            doubts.append(_MEASURE[validation.measure])
            fix.append(
                "Give the training log itself (--training FILE), or a figure given that all earlier drafts are right."
            )
        temperature = speculating.record.temperature
        if temperature is None:
            doubts.append("the temperature of the traffic is not known and taken as 0")
            fix.append("State it: --temperature T.")
        elif validation.temperature is not None and validation.temperature != temperature:
            doubts.append(
                f"it was measured at temperature {validation.temperature:g}, the traffic runs at {temperature:g}"
            )
            fix.append("Validate at the temperature of the traffic, or replay the prompts at temperature 0.")
        coverage = validation.draft_vocabulary_coverage
        if coverage is not None and coverage < 1:
            doubts.append(
                f"it looks inside a draft vocabulary that covers {100 * coverage:.3g}% of the target's tokens"
            )
            fix.append("Count targets outside the draft vocabulary as misses.")
        if not doubts:
            return
        yield self.finding(
            "The validation figure compares with some doubt",
            f"{validation.accuracy:g}: {'; '.join(doubts)}.",
            values={
                "validation_accuracy": validation.accuracy,
                "measure": str(validation.measure),
                "temperature": temperature,
                "validation_temperature": validation.temperature,
            },
            evidence=validation.evidence,
            fix=fix,
            verify=["draftscope diagnose LOG --training FILE --temperature T"],
        )
