"""ACC001: far under what validation implies."""

from __future__ import annotations

from analysis import words
from analysis.base import Outcome, Rule, cannot_look
from analysis.figures import Pooled
from analysis.promise import Promise
from analysis.theory.intervals import CONSERVATIVE
from analysis.view import RunView
from collector.domain.findings import Confidence, Question, RivalExplanation, Severity

ACCEPTANCE_VALUES = (
    "acceptance_length",
    "conditional_acceptance_rate",
    "draft_acceptance_rate",
    "accepted_tokens",
    "drafted_tokens",
)


class AcceptanceBelowValidation(Rule):
    """Drafts are accepted far less often than their validation accuracy implies.

    Why it matters:
        The draft was trained and validated to be better than this. A gap beyond what a healthy
        deployment loses (about 18% of the accepted drafts at depth 5) has a cause that can be
        found: other features, other prompts, another temperature, another checkpoint.

    How to fix:
        First find out on which side the fault lies: replay the validation prompts through this
        server at temperature 0. If acceptance is good there, the traffic differs; if it is
        not, the wiring does (captured layers, tokenizer, chat template, vocabulary map).

    Example:
        Validation accuracy 0.747 at depth 5 promises a length of 3.27, of which about 2.86 is
        healthy; the server shows 1.80.

    Source:
        Theory sections 2.4 and 4.4; the margin is 0.9 f_k f_T.
    """

    id, name = "ACC001", "acceptance-below-validation"
    question = Question.ACCEPTANCE
    severity = Severity.WARNING

    def check(self, speculating: RunView, acceptance: Pooled, promise: Promise) -> Outcome:
        """The divergence test with the margin for this depth and temperature."""
        if promise.expected_length <= 1:
            raise cannot_look("the validation figures promise no accepted draft", "--validation-accuracy X")
        test = promise.test(acceptance)
        if test.verdict != "divergent":
            return
        rate = speculating.value("conditional_acceptance_rate")
        accuracy = promise.validation.accuracy
        implied = (
            f", conditional acceptance {words.rate(rate)} against {words.rate(accuracy)}"
            if rate is not None and accuracy is not None
            else ""
        )
        stated = "--training FILE" if accuracy is None else f"--validation-accuracy {accuracy:g}"
        rivals = []
        printed = speculating.printed
        if printed is not None and printed.definition is not None and printed.definition.startswith("length"):
            rivals.append(
                RivalExplanation(
                    f"The printed accept rate {printed.rate:.2f}",
                    f"is {printed.definition} and counts the target's own token, so it compares with no validation figure",
                )
            )
        weak = acceptance.interval.method == CONSERVATIVE or bool(acceptance.interval.approximate)
        yield self.finding(
            f"The draft delivers {words.percent(test.retained_share)} of what its validation promises",
            f"Length {words.length(acceptance.length)} {words.interval(*acceptance.length_ends)}"
            f"{implied}. Validation promises {words.length(promise.expected_length)}; a healthy server would show about "
            f"{words.length(promise.realistic_length)}. A gap this large proves that something differs, not yet what.",
            values={
                **speculating.figures(*ACCEPTANCE_VALUES),
                "expected_acceptance_length": promise.expected_length,
                "realistic_acceptance_length": promise.realistic_length,
                "validation_accuracy": accuracy,
                "retained_share": test.retained_share,
                "p_value": test.p_value,
            },
            evidence=[*speculating.first_and_last, *promise.validation.evidence],
            fix=[
                "Replay the validation prompts through this server at temperature 0.",
                "Acceptance as in training there: the traffic differs (prompt format, thinking mode, language, temperature).",
                "Still low: the wiring differs (captured layers, tokenizer, chat template, vocabulary map, checkpoint).",
            ],
            verify=[f"draftscope diagnose REPLAY_LOG {stated} --temperature 0"],
            confidence=Confidence.MEDIUM if weak else Confidence.HIGH,
            ruled_out=rivals,
        )
