"""FLG010: the engine stopped with an error."""

from __future__ import annotations

from typing import Final

from analysis.base import Outcome, Rule
from analysis.view import RunView
from collector.domain.findings import Question, Severity
from collector.domain.runs import Event

_HINTS: Final = {
    "does not support EAGLE3 interface": "Use a release whose class of this model supports EAGLE-3, or another method.",
    "out of memory": "Leave more memory free: a smaller share for the cache, fewer or smaller graphs, a shorter context. The "
    "draft, its cache and its graphs take what the target alone left over.",
}
"""What to do first, by a part of the message."""


class EngineStopped(Rule):
    """The engine stopped with an error, while it started or while it served.

    Why it matters:
        What stands in the log before it is no sign of health: the server is gone, or was started
        again without what it had learnt.

    How to fix:
        The message tells what failed. If the same command runs without its speculative options, the
        draft or the code that drafts is at fault.

    Example:
        `RuntimeError: Model does not support EAGLE3 interface but aux_hidden_state_outputs was
        requested` while the draft is loaded.

    Source:
        Tracebacks of SGLang and vLLM, assertions of llama.cpp.
    """

    id, name = "FLG010", "engine-stopped"
    question = Question.CONFIG
    severity = Severity.CRITICAL

    def check(self, run: RunView) -> Outcome:
        """The last error that ended the process."""
        for event in run.record.events_of("crashed")[-1:]:
            text = _said(event)
            served = bool(run.record.windows) or bool(run.record.events_of("ready"))
            hints = [fix for part, fix in _HINTS.items() if part in text]
            yield self.finding(
                "The engine stopped with an error",
                f"{'It served, and ended' if served else 'No line shows that it served. It ended'} with: {text.rstrip('. ')}.",
                values={"message": text, "served": served},
                evidence=[event.evidence],
                fix=[*hints, "Look the message up among the reports on this engine and release."],
                verify=["Start once without the speculative options: if that runs, the draft or its path is at fault."],
            )


def _said(event: Event) -> str:
    """The exception and its message, else the line."""
    parts = [str(event.values[key]) for key in ("exception", "message") if event.values.get(key)]
    return ": ".join(parts) or event.evidence.text.strip()
