"""FLG008: something was changed since the earlier run, and what runs is the same."""

from __future__ import annotations

from analysis.base import Outcome, Rule, cannot_look
from analysis.compare import effects
from analysis.view import RunView
from collector.domain.findings import Question, Severity


class ChangeNotInEffect(Rule):
    """A flag or file was changed since the earlier run, and the effective configuration is the same.

    Why it matters:
        The experiment compares a server with itself. Its outcome, good or bad, says nothing
        about the change.

    How to fix:
        Find out what overrides the change (FLG001, FLG004 name it), or change what decides.

    Example:
        Draft tokens 6, then 16: with top-k 1 both runs verify steps + 1.

    Source:
        The engine's argument line of both runs, else the prediction for both.
    """

    id, name = "FLG008", "change-not-in-effect"
    question = Question.CONFIG
    severity = Severity.WARNING

    def check(self, speculating: RunView, previous: RunView) -> Outcome:
        """Everything that was asked differently and runs the same."""
        if not speculating.arguments.any_requested and speculating.record.draft_config is None:
            raise cannot_look("the launch command is not known", "--launch FILE")
        for effect in effects(previous, speculating):
            if effect.effect != "no":
                continue
            name = effect.what.lstrip("-").replace("-", "_")
            argument = speculating.arguments[name]
            yield self.finding(
                f"{effect.what} was changed from {effect.before} to {effect.after}, and nothing else runs",
                f"{effect.why[:1].upper()}{effect.why[1:]}.",
                values={"flag": name, "requested": effect.after, "previous": effect.before, "effective": effect.why},
                evidence=[argument.requested_evidence, argument.effective_evidence],
                fix=["Find out what overrides it, or change what decides instead."],
                verify=["draftscope compare BEFORE AFTER"],
            )
