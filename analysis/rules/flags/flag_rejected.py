"""FLG009: the engine refuses to start with this combination."""

from __future__ import annotations

import re

from analysis import words
from analysis.base import Outcome, Rule
from analysis.flag_releases import releases_in_words, releases_with
from analysis.resolve import Rejection
from analysis.view import RunView
from collector.domain.evidence import Evidence
from collector.domain.findings import Confidence, Question, Severity

_HINTS = {
    "'>' not supported between instances of 'NoneType' and 'int'": (
        "Steps are given without top-k and draft tokens: SGLang 0.5.3 and later compare a value that is not there.",
        "Give --speculative-eagle-topk and --speculative-num-draft-tokens as well, or leave out all three.",
    ),
    "unknown speculative decoding type without draft model": (
        "Builds of llama.cpp up to b9093 know n-gram types only.",
        "Use b9246 or later for draft-mtp and draft-simple; up to b9093 a draft named with -md needs no --spec-type.",
    ),
    "unknown speculative type": (
        "The build knows no type of that name.",
        "Name it as the build's help does: draft-simple, draft-eagle3, draft-mtp; draft-dflash from b9851, draft-dspark from b10204.",
    ),
    "unknown value for --flash-attn": (
        "The option takes whatever comes next for its value.",
        "Write -fa on (or off, or auto).",
    ),
    "unrecognized arguments: --speculative-model ": (
        "",
        """Put these settings into --speculative-config '{"model": …, "num_speculative_tokens": …}'.""",
    ),
    "the argument has been removed": ("", "Use the option that the message names."),
}


class FlagRejected(Rule):
    """The engine refuses this combination of flags, or did so in this log.

    Why it matters:
        The server does not start, and the message often names neither the flag nor the reason.

    How to fix:
        The finding names the combination where it is known; for an option that the release does
        not have, the releases that have it or the option that was probably meant.

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
                f"It stopped at its start: {text.rstrip('. ')}. {why}".strip(),
                values={"flag": _flag_in(text), "requested": None, "effective": None, "message": text},
                evidence=[event.evidence],
                fix=[fix] if fix else ["Remove the flags that the message names, or use a release that accepts them."],
                verify=["Start again with the corrected command and look for the argument line."],
            )
        resolution = run.resolution
        if refused or resolution is None or run.record.windows:
            return
        args, told = run.arguments, []
        for rejection in resolution.rejections:
            flag = _flag_in(rejection.message)
            told.append(flag)
            yield self.finding(
                "The engine will refuse to start",
                f"{rejection.step.condition[:1].upper()}{rejection.step.condition[1:]}: {(rejection.message or rejection.kind).rstrip('. ')}.",
                values={
                    "flag": flag,
                    "requested": args[flag].requested if flag is not None and args[flag].requested_seen else None,
                    "effective": None,
                    "message": rejection.message,
                },
                evidence=[_place(run, flag)],
                fix=_fixes(run, flag, rejection),
                verify=["Start the server: it stops before it loads the model."],
                confidence=Confidence.MEDIUM,
            )
        for option in run.record.launch.unknown if run.record.launch else ():
            flag = option.lstrip("-").replace("-", "_")
            if flag in told:
                continue
            yield self.finding(
                f"{option} is no option that is known",
                "No release that was read has it. The engine refuses options that it does not know.",
                values={"flag": flag, "requested": args[flag].requested, "effective": None},
                evidence=[_place(run, flag)],
                fix=_fixes(run, flag, None),
                verify=["Look for it in the help text of the release that will run."],
                severity=Severity.WARNING,
                confidence=Confidence.LOW,
            )


def _place(run: RunView, flag: str | None) -> Evidence | None:
    launch = run.record.launch
    if launch is None:
        return None
    return launch.evidence if flag is None else launch.evidence_of(flag)


def _fixes(run: RunView, flag: str | None, rejection: Rejection | None) -> list[str]:
    """What to do instead: the release that has the flag, the option that was meant, or the combination to leave."""
    if rejection is not None and (hint := _hint(rejection.message)):
        return [hint]
    if flag is None:
        return ["Leave out one side of the combination, or use a release that accepts it."]
    option = words.flag(flag)
    engine, launch = run.record.engine, run.record.launch
    having = releases_in_words(engine, flag)
    version = run.record.engine_version
    if having and version is not None and version not in releases_with(engine, flag) and rejection is not None:
        return [f"Use a release that has {option} ({having}), or leave it out."]
    nearest = next(
        (near for name, near in (launch.nearest if launch else {}).items() if words.flag(flag) == name), None
    )
    if nearest is not None:
        releases = releases_in_words(engine, nearest.lstrip("-").replace("-", "_"))
        return [f"Was {nearest} meant?" + (f" It is in {releases}." if releases else "")]
    return [f"Change or leave out {option}, or use a release that accepts it."]


def _hint(text: str) -> str:
    return next((fix for start, (_, fix) in _HINTS.items() if start in text), "")


def _flag_in(text: str) -> str | None:
    found = re.search(r"--[a-z][a-z0-9_.-]+|\b(?:speculative|enable|disable)_[a-z_]+", text)
    return found[0].strip("-.").replace("-", "_") if found else None
