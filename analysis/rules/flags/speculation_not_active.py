"""FLG006: speculation is configured, and nothing is drafted."""

from __future__ import annotations

from analysis import words
from analysis.base import Outcome, Rule, cannot_look
from analysis.view import RunView
from collector.domain.arguments import Arguments
from collector.domain.findings import Confidence, Question, Severity
from collector.domain.windows import Origin


class SpeculationNotActive(Rule):
    """Speculation is configured or intended, but nothing is drafted.

    Why it matters:
        The server runs as if no draft existed, while the draft may still hold memory. Every
        comparison "with speculation" then compares plain decoding with itself.

    How to fix:
        Check that the method is named and that the engine's line shows it; with a method set
        and no drafts, look for lines that say why drafting was left.

    Example:
        `--speculative-num-steps 3` without `--speculative-algorithm` starts a plain server.

    Source:
        SGLang 0.4.4 to 0.5.23, `server_args.py`: without an algorithm all other speculation
        flags are ignored.
    """

    id, name = "FLG006", "speculation-not-active"
    question = Question.CONFIG
    severity = Severity.CRITICAL

    def check(self, run: RunView, args: Arguments) -> Outcome:
        """Compare intent (flags that were given) with what decodes."""
        intended = [
            name
            for name, argument in args.items()
            if name.startswith("speculative") and argument.requested_seen and argument.requested not in (None, False)
        ]
        if not (intended or run.method):
            return
        if run.resolution is not None and run.resolution.rejections and not run.record.windows:
            return  # it will not start, and FLG009 says so
        decoded = 0
        if run.record.windows:
            if run.frame["printed_length"].notna().any() or run.frame["verify_steps"].gt(0).any():
                return
            scraped = run.frame["origin"].isin((Origin.COUNTERS, Origin.GAUGES)).all()
            if run.method is not None and scraped and run.frame["verify_steps"].isna().all():
                raise cannot_look("this server counts no drafts in its metrics", "a log that covers traffic")
            decoded = int((run.frame["running_requests"] > 0).sum())
        if run.method is not None and not decoded:
            return
        algorithm = args["speculative_algorithm"]
        if run.method is None and intended:
            flags = words.listing([words.flag(name) for name in intended])
            why = f"{flags} given, but no method that runs: the engine ignores the rest without a word."
        else:
            why = "A method is configured, requests were decoded, and no line shows a draft."
        yield self.finding(
            "Speculation is configured, and nothing is drafted",
            why,
            values={
                "flag": "speculative_algorithm",
                "requested": algorithm.requested if algorithm.requested_seen else None,
                "effective": args.value("speculative_algorithm"),
                "windows": decoded,
            },
            evidence=[algorithm.requested_evidence, algorithm.effective_evidence],
            fix=["Name the method (--speculative-algorithm on SGLang) and look for it in the engine's argument line."],
            verify=["grep -o 'speculative_algorithm[^,]*' LOG", "grep -c 'accept len' LOG"],
            confidence=Confidence.HIGH if args.any_effective else Confidence.MEDIUM,
        )
