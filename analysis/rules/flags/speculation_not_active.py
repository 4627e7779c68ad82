"""FLG006: speculation is configured, and nothing is drafted."""

from __future__ import annotations

from typing import Final

from analysis import words
from analysis.base import Outcome, Rule, cannot_look
from analysis.drafting import concerns_drafts
from analysis.view import RunView
from collector.domain.arguments import METHOD_FLAG, Arguments
from collector.domain.findings import Confidence, Question, Severity
from collector.domain.windows import Origin

_OFF: Final = ("none", "NONE")
_SIGNS: Final = ("draft-loading", "vocabulary-mismatch", "speculation-failed")
"""Events that say that somebody wanted drafts: what loads, and what was given up."""
_SHOWN: Final = 3
"""Flags and lines that are quoted."""
_FIXES: Final = {
    "sglang": "Name the method with --speculative-algorithm and look for it in the engine's argument line.",
    "llamacpp": "Add --spec-type draft-simple, or the type of the draft: -md alone enables nothing since b9246.",
}
_CONFIGURED: Final = {
    "llamacpp": "Start with -lv 4: the start names each type that is added, and why one is left out.",
}
"""What to do where a method is configured and nothing says why it does not draft."""
_CHECKS: Final = {
    "sglang": ("grep -o 'speculative_algorithm[^,]*' LOG", "grep -c 'accept len' LOG"),
    "vllm": ("grep -c 'SpecDecoding metrics' LOG",),
    "llamacpp": ("grep -c 'draft acceptance' LOG",),
}


SHORT_ANSWER = 2
"""Tokens of an answer up to which it needs no draft: one of the prompt's pass, one of the target's own."""


class SpeculationNotActive(Rule):
    """Speculation is configured or intended, but nothing is drafted.

    Why it matters:
        The server runs as if no draft existed, while the draft may still hold memory. Every
        comparison "with speculation" then compares plain decoding with itself.

    How to fix:
        Check that the method is named and that the engine's line shows it; with a method set
        and no drafts, look for lines that say why drafting was left.

    Example:
        `--speculative-num-steps 3` without `--speculative-algorithm` starts a plain server on
        SGLang; so does a draft model without `--spec-type` on llama.cpp since b9246.

    Source:
        SGLang 0.4.4 to 0.5.23, `server_args.py`: without an algorithm all other speculation
        flags are ignored. llama.cpp, `common/arg.cpp`: the type is none unless given.
    """

    id, name = "FLG006", "speculation-not-active"
    question = Question.CONFIG
    severity = Severity.CRITICAL

    def check(self, run: RunView, args: Arguments) -> Outcome:
        """Compare intent (flags that were given, a draft that was loaded) with what decodes."""
        method = METHOD_FLAG.get(run.record.engine, "speculative_algorithm")
        if args[method].requested in _OFF:
            return
        intended = [
            name
            for name, argument in args.items()
            if concerns_drafts(name) and argument.requested_seen and argument.requested not in (None, False)
        ]
        said = [event for kind in _SIGNS for event in run.record.events_of(kind)]
        if not (intended or run.method or said):
            return
        hangs_on = run.resolution.depends.get(method) if run.resolution is not None else None
        if run.method is None and not args.seen(method) and hangs_on is not None:
            raise cannot_look(f"whether it drafts depends on {hangs_on}", "--engine-version RELEASE")
        if run.resolution is not None and run.resolution.rejections and not run.record.windows:
            return  # it will not start, and FLG009 says so
        if any(result.speculated for result in run.record.requests):
            return
        decoded = sum(
            result.verify_steps == 0 and (result.output_tokens or 0) > SHORT_ANSWER for result in run.record.requests
        )
        if run.record.windows:
            if run.frame["printed_length"].notna().any() or run.frame["verify_steps"].gt(0).any():
                return
            scraped = run.frame["origin"].isin((Origin.COUNTERS, Origin.GAUGES)).all()
            if run.method is not None and scraped and run.frame["verify_steps"].isna().all():
                raise cannot_look("this server counts no drafts in its metrics", "a log that covers traffic")
            decoded += int((run.frame["running_requests"] > 0).sum())
        if run.method is not None and not decoded:
            return
        algorithm = args[method]
        failed = [event for event in said if event.kind != "draft-loading"]
        if failed:
            why = "The engine gave drafting up, says why in its log, and serves on without."
        elif run.method is not None:
            why = "A method is configured, requests were decoded, and no line shows a draft."
        elif not intended:
            why = "The engine loads a draft model, and no method uses it."
        else:
            flags = words.listing([words.flag(name) for name in intended])
            why = f"{flags} given, but no method that runs: the engine ignores the rest without a word."
        yield self.finding(
            "Speculation is configured, and nothing is drafted",
            why,
            values={
                "flag": method,
                "requested": algorithm.requested if algorithm.requested_seen else None,
                "effective": args.value(method),
                "windows": decoded,
            },
            evidence=[
                algorithm.requested_evidence,
                algorithm.effective_evidence,
                *(args[name].requested_evidence for name in intended[:_SHOWN]),
                *(event.evidence for event in said[-_SHOWN:]),
            ],
            fix=["Use a draft that the engine takes for this target." if failed else _fix(run, method)],
            verify=_CHECKS.get(run.record.engine, ()),
            confidence=Confidence.HIGH if args.any_effective else Confidence.MEDIUM,
        )


def _fix(run: RunView, method: str) -> str:
    """Name the method; where one is named, look for why it was left."""
    engine = run.record.engine
    if run.method is not None and engine in _CONFIGURED:
        return _CONFIGURED[engine]
    named = f"Name the method ({words.flag(method)}) and look for it in what the engine prints at its start."
    return _FIXES.get(engine, named)
