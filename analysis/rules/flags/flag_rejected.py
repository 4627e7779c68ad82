"""FLG009: the engine refuses to start with this combination."""

from __future__ import annotations

from analysis.base import Outcome, Rule
from analysis.view import RunView
from collector.domain.findings import Confidence, Question, Severity

_HINTS = {
    "'>' not supported between instances of 'NoneType' and 'int'": (
        "Steps are given without top-k and draft tokens: SGLang 0.5.3 and later compare a value that is not there.",
        "Give --speculative-eagle-topk and --speculative-num-draft-tokens as well, or leave out all three.",
    ),
}


class FlagRejected(Rule):
    """The engine refuses this combination of flags, or did so in this log.

    Why it matters:
        The server does not start, and the message often names neither the flag nor the reason.

    How to fix:
        The finding names the combination where it is known.

    Example:
        `--speculative-num-steps 3` alone ends in `TypeError: '>' not supported between
        instances of 'NoneType' and 'int'`.

    Source:
        SGLang 0.5.3 to 0.5.23, `server_args.py`.
    """

    id, name = "FLG009", "flag-rejected"
    question = Question.CONFIG
    severity = Severity.CRITICAL

    def check(self, run: RunView) -> Outcome:
        """What the log says first; else what is predicted for the command."""
        refused = run.record.events_of("refused")
        for event in refused[-1:]:
            text = event.evidence.text.strip()
            why, fix = next((pair for start, pair in _HINTS.items() if start in text), ("", ""))
            yield self.finding(
                "The engine refused to start",
                f"It stopped while reading its arguments: {text}. {why}".strip(),
                values={"flag": _flag_in(text), "requested": None, "effective": None, "message": text},
                evidence=[event.evidence],
                fix=[fix] if fix else ["Remove the flags that the message names, or use a release that accepts them."],
                verify=["Start again with the corrected command and look for the argument line."],
            )
        resolution = run.resolution
        if refused or resolution is None or run.record.windows:
            return
        for rejection in resolution.rejections:
            yield self.finding(
                "The engine will refuse to start",
                f"{rejection.step.condition}: {rejection.message or rejection.kind}",
                values={
                    "flag": _flag_in(rejection.message),
                    "requested": None,
                    "effective": None,
                    "message": rejection.message,
                },
                evidence=[run.record.launch.evidence if run.record.launch else None],
                fix=[rejection.step.effect],
                verify=["Start the server: it stops before it loads the model."],
                confidence=Confidence.MEDIUM,
            )


def _flag_in(text: str) -> str | None:
    import re

    found = re.search(r"--[a-z][a-z0-9-]+|\b(?:speculative|enable|disable)_[a-z_]+", text)
    return found[0].lstrip("-").replace("-", "_") if found else None
