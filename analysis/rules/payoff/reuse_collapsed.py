"""PAY005: the cached share of prompts fell."""

from __future__ import annotations

from analysis import words
from analysis.base import Outcome, Rule, cannot_look
from analysis.case import Case
from analysis.thresholds import Thresholds
from analysis.view import RunView
from collector.domain.findings import Question, Severity


class PrefixReuseCollapsed(Rule):
    """Far less of the prompts is found in the prefix cache than in the run it is compared with.

    Why it matters:
        Some methods and settings turn prefix caching off or make it miss. Prompts are then
        computed again, and the loss shows up as slow decoding because the two share the GPU.

    How to fix:
        Look for a line that disables the radix cache, or for a chunk or page size that the
        engine changed; compare `--disable-radix-cache` of both runs.

    Example:
        62% of the prompt tokens came from the cache before, 4% now.

    Source:
        SGLang: `#cached-token` of the prefill lines.
    """

    id, name = "PAY005", "prefix-reuse-collapsed"
    question = Question.PAYOFF
    severity = Severity.WARNING

    def check(self, run: RunView, thresholds: Thresholds, case: Case) -> Outcome:
        """Against the baseline first, else the earlier run."""
        now = run.value("cached_token_share")
        if now is None:
            raise cannot_look("no prefill lines with cached tokens were read", "a log that covers prompts")
        for view in case.views[1:]:
            before = view.value("cached_token_share")
            if before is not None and before - now >= thresholds.reuse_loss:
                yield self.finding(
                    f"The prefix cache serves {words.percent(now)} of the prompt tokens; {view.role.value}: {words.percent(before)}",
                    "The rest is computed again, and takes time from decoding.",
                    values={"cached_token_share": now, "previous": before},
                    evidence=[],
                    fix=[
                        "Look for lines that disable the radix cache, and compare --disable-radix-cache of both runs."
                    ],
                    verify=["Send one prompt twice: the second prefill line should show its tokens as cached."],
                )
                return
        if len(case.views) == 1:
            raise cannot_look("no run to compare with", "--previous LOG or --baseline LOG")
