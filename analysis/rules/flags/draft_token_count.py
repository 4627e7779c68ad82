"""FLG001: the engine runs with another number of draft tokens than asked."""

from __future__ import annotations

from analysis import words
from analysis.announced import announcement_about
from analysis.base import Outcome, Rule, cannot_look
from analysis.case import Case
from analysis.view import RunView
from collector.domain.arguments import UNSEEN, Arguments
from collector.domain.findings import Confidence, Question, Severity

COUNT_FLAGS = {
    "sglang": ("speculative_num_draft_tokens", "speculative_num_steps"),
}


class DraftTokenCountOverridden(Rule):
    """The engine runs with another number of draft tokens, or another depth, than was asked for.

    Why it matters:
        Every step then drafts and verifies another amount than planned: 16 draft tokens asked
        for with one step become 2, and the draft's later positions are never used.

    How to fix:
        Ask for what you want to run. On SGLang with top-k 1 the number of draft tokens is
        always steps + 1, so set the steps; for a tree set a top-k above 1.

    Example:
        `--speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 16`
        runs with 2 draft tokens.

    Source:
        SGLang 0.4.5 to 0.5.23, `server_args.py` and `arg_groups/speculative_hook.py`.
    """

    id, name = "FLG001", "draft-token-count-overridden"
    question = Question.CONFIG
    severity = Severity.WARNING

    def check(self, speculating: RunView, args: Arguments, case: Case) -> Outcome:
        """Compare each count that was given with what runs or is predicted to run.

        Without the launch command the engine's own line still tells that it replaced a count.
        """
        record = speculating.record
        if not args.any_requested:
            yield from self._announced(speculating, args)
            return
        compared_args = case.compared_args
        for name in COUNT_FLAGS.get(record.engine, ()):
            argument = compared_args[name]
            if not argument.changed:
                continue
            seen = argument.effective is not UNSEEN
            effective = argument.effective if seen else argument.predicted
            said = announcement_about(record, name)
            line = said.text if said is not None else None if seen else speculating.predicted_line(name)
            chain = compared_args.value("speculative_eagle_topk") == 1 and name == "speculative_num_draft_tokens"
            reason = (
                "With top-k 1 the engine verifies one chain, so it sets the number of draft tokens to steps + 1."
                if chain
                else "The engine replaces the value while it reads its arguments."
            )
            steps = compared_args.value("speculative_num_steps")
            fix = [f"Leave out {words.flag(name)}, or set it to {effective}, if {effective} is what you want."]
            if chain and isinstance(argument.requested, int):
                fix.insert(
                    0,
                    f"For {argument.requested - 1} drafts a step in a chain ask for {words.flag('speculative_num_steps')} "
                    f"{argument.requested - 1}; for a tree of {argument.requested} set {words.flag('speculative_eagle_topk')} above 1.",
                )
                reason += f" It drafts {steps} and adds one token of its own."
            yield self.finding(
                f"{'Runs' if seen else 'Will run'} with {effective} {_noun(name)}, not {argument.requested}",
                f"{reason} {'The engine says so in one line that is easily missed.' if line else 'It does so without a word.'}",
                values={"flag": name, "requested": argument.requested, "effective": effective},
                evidence=[argument.requested_evidence, said, argument.effective_evidence],
                fix=fix,
                verify=[f"grep -o '{name}[^,]*' LOG   # the engine's own argument line"],
                confidence=Confidence.HIGH if seen else Confidence.MEDIUM,
            )

    def _announced(self, run: RunView, args: Arguments) -> Outcome:
        replaced = [
            (name, said)
            for name in COUNT_FLAGS.get(run.record.engine, ())
            if (said := announcement_about(run.record, name))
        ]
        if not replaced:
            raise cannot_look("the launch command is not known", "--launch FILE")
        for name, said in replaced:
            effective = args.value(name)
            yield self.finding(
                f"The engine replaced the number of {_noun(name)}; it runs with {effective}",
                "Its own line says so. What was asked for is not in the log.",
                values={"flag": name, "requested": None, "effective": effective},
                evidence=[said, args[name].effective_evidence],
                fix=[
                    "Give the launch command (--launch FILE) to see what was asked for, and ask for what you want to run."
                ],
                verify=[f"grep -o '{name}[^,]*' LOG   # the engine's own argument line"],
            )


def _noun(name: str) -> str:
    return "draft tokens" if name == "speculative_num_draft_tokens" else "draft steps"
