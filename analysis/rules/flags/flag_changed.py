"""FLG004: another flag runs with another value than asked."""

from __future__ import annotations

from analysis import words
from analysis.announced import announcement_about
from analysis.base import Outcome, Rule
from analysis.rules.flags.draft_token_count import COUNT_FLAGS
from analysis.view import RunView
from collector.domain.arguments import METHOD_FLAGS, UNSEEN, Argument, Arguments
from collector.domain.findings import Confidence, Finding, Question, Severity

_OWN_RULE = frozenset({"disable_overlap_schedule", "enable_two_batch_overlap"})


class FlagChanged(Rule):
    """A flag runs with another value than was asked for, or the engine says that it changed one.

    Why it matters:
        A limit such as the number of running requests caps the whole server, and a figure
        measured with it is not the figure of what was planned.

    How to fix:
        Set the flag so that it survives: the finding names the value that runs and, where the
        engine says one, its reason.

    Example:
        Without `--max-running-requests` SGLang runs speculation with 48 for the whole server.

    Source:
        SGLang 0.4.4 to 0.5.23, `server_args.py`.
    """

    id, name = "FLG004", "flag-changed"
    question = Question.CONFIG
    severity = Severity.INFO

    def check(self, run: RunView, args: Arguments) -> Outcome:
        """One finding per flag; flags that other rules speak about are left to them."""
        skip = _OWN_RULE | set(COUNT_FLAGS.get(run.record.engine, ()))
        for name, argument in args.items():
            if name in skip:
                continue
            said = announcement_about(run.record, name)
            if argument.changed:
                yield self._finding(run, argument, said.text if said is not None else run.predicted_line(name))
            elif said is not None and not argument.requested_seen and argument.effective not in (UNSEEN, None, False):
                yield self._finding(run, argument, said.text)

    def _finding(self, run: RunView, argument: Argument, line: str | None) -> Finding:
        seen = argument.effective is not UNSEEN
        effective = argument.effective if seen else argument.predicted
        requested = argument.requested if argument.requested_seen else None
        said = announcement_about(run.record, argument.name)
        asked = f"not {words.value(requested)}" if argument.requested_seen else "which nobody asked for"
        return self.finding(
            f"{'Runs' if seen else 'Will run'} with {argument.name} {words.value(effective)}, {asked}",
            f"The engine says: {line.strip()}" if line else "The engine changes it without a word.",
            values={"flag": argument.name, "requested": requested, "effective": effective},
            evidence=[argument.requested_evidence, said, argument.effective_evidence],
            fix=[
                f"Set {words.flag(argument.name)} to the value you want, and look at the argument line after the start."
            ],
            verify=[f"grep -o '{argument.name}[^,]*' LOG"],
            severity=Severity.WARNING if argument.changed and argument.name in METHOD_FLAGS else None,
            confidence=Confidence.HIGH if seen else Confidence.MEDIUM,
        )
