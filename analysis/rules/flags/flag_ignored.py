"""FLG005: a flag was accepted and has no effect."""

from __future__ import annotations

from analysis import words
from analysis.base import Outcome, Rule
from analysis.resolve import Resolution
from analysis.view import RunView
from collector.domain.findings import Confidence, Question, Severity


class FlagIgnored(Rule):
    """A flag is accepted by the parser and has no effect in this configuration.

    Why it matters:
        Somebody believes that it acts. Comparisons "with" and "without" it compare the same.

    How to fix:
        Leave it out, or give the flag that makes it act; the finding says which.

    Example:
        `--speculative-token-map` with EAGLE-3: the draft brings its own map.

    Source:
        The engines' own argument processing, by release.
    """

    id, name = "FLG005", "flag-ignored"
    question = Question.CONFIG
    severity = Severity.INFO

    def check(self, run: RunView, resolution: Resolution) -> Outcome:
        """What the prediction says is ignored."""
        args = run.arguments
        for ignored in resolution.ignored:
            argument = args[ignored.flag]
            yield self.finding(
                f"{words.flag(ignored.flag)} has no effect here",
                f"{ignored.reason[:1].upper()}{ignored.reason[1:]}.",
                values={
                    "flag": ignored.flag,
                    "requested": argument.requested if argument.requested_seen else None,
                    "effective": args.value(ignored.flag) if args.any_effective else None,
                },
                evidence=[argument.requested_evidence],
                fix=[f"Leave out {words.flag(ignored.flag)}, or make it act."],
                verify=["Compare one run with and one without it: nothing changes."],
                confidence=Confidence.HIGH if run.record.engine_version is not None else Confidence.MEDIUM,
            )
