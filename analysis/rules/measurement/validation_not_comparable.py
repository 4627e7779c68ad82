"""MEA007: validation and serving measure different things."""

from __future__ import annotations

from analysis import words
from analysis.base import Outcome, Rule
from analysis.promise import Promise
from analysis.view import RunView
from collector.domain.drafts import Measure, Reference, Validation, Vocabulary
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
        if validation.measure in _MEASURE and validation.accuracy is not None:
            doubts.append(_MEASURE[validation.measure])
            fix.append(
                "Give the training log itself (--training FILE), or a figure given that all earlier drafts are right."
            )
        temperatures = speculating.temperatures
        if not temperatures:
            doubts.append("the temperature of the traffic is not known and taken as 0")
            fix.append("State it: --temperature T.")
        elif validation.temperature is not None and set(temperatures) != {validation.temperature}:
            shown = words.listing([f"{temperature:g}" for temperature in temperatures])
            doubts.append(f"it was measured at temperature {validation.temperature:g}, the traffic runs at {shown}")
            fix.append("Validate at the temperature of the traffic, or replay the prompts at temperature 0.")
        vocabulary = _vocabulary(validation)
        if vocabulary:
            doubts.append(vocabulary)
            fix.append("Count targets outside the draft vocabulary as misses.")
        if validation.reference is Reference.DATA:
            doubts.append("drafts were compared with the tokens of the data, which this target need not have chosen")
            fix.append("Validate on text that the target itself generated.")
        if validation.held_out is False:
            doubts.append("it is of training batches, not of held-out text")
            fix.append("Give the figures of an evaluation.")
        doubts += validation.remarks
        if not doubts:
            return
        figure = validation.accuracy if validation.accuracy is not None else validation.length
        yield self.finding(
            "The validation figure compares with some doubt",
            f"{figure:g}: {'; '.join(doubts)}.",
            values={
                "validation_accuracy": validation.accuracy,
                "measure": str(validation.measure),
                "vocabulary": str(validation.vocabulary),
                "reference": str(validation.reference),
                "temperature": next(iter(temperatures)) if len(temperatures) == 1 else list(temperatures) or None,
                "validation_temperature": validation.temperature,
            },
            evidence=validation.evidence,
            fix=fix,
            verify=["draftscope diagnose LOG --training FILE --temperature T"],
        )


def _vocabulary(validation: Validation) -> str:
    """What the handling of tokens outside the draft's vocabulary does to the figure; "" if nothing."""
    coverage = validation.draft_vocabulary_coverage
    share = "" if coverage is None else f" ({100 * coverage:.3g}% of the target's tokens are inside)"
    if coverage is not None and coverage >= 1:
        return ""
    if validation.vocabulary is Vocabulary.INSIDE:
        return f"it looks for the target's best token inside the draft's vocabulary{share}, so serving may be lower"
    if validation.vocabulary is Vocabulary.LEFT_OUT:
        return f"tokens outside the draft's vocabulary are left out{share}, so it is higher than serving"
    if validation.vocabulary is Vocabulary.UNKNOWN and coverage is not None:
        return f"the draft's vocabulary covers {100 * coverage:.3g}% of the target's tokens; how others count is not stated"
    return ""
