"""FLG007: a draft that could go deeper is used at its shallowest."""

from __future__ import annotations

from analysis import words
from analysis.base import Outcome, Rule, cannot_look
from analysis.theory.chain import expected_length
from analysis.thresholds import Thresholds
from analysis.view import RunView
from collector.domain.arguments import Arguments
from collector.domain.findings import Question, Severity


class DraftDepthShallow(Rule):
    """At most two tokens are verified a step, with a draft that could go deeper.

    Why it matters:
        With one drafted token the length cannot exceed 2, whatever the draft is worth, while
        the draft's own pass and the verification are paid every step.

    How to fix:
        Raise the depth (`--speculative-num-steps` on SGLang) and measure the step cost again.
        A module that predicts one token (MTP) is meant to run this way.

    Example:
        EAGLE-3 with one step: 2 tokens verified, acceptance length 1.48 of at most 2.

    Source:
        Theory section 2.1.
    """

    id, name = "FLG007", "draft-depth-shallow"
    question = Question.CONFIG
    severity = Severity.INFO

    def check(self, speculating: RunView, args: Arguments, thresholds: Thresholds) -> Outcome:
        """Compare the verify width with the least useful one."""
        width, depth = speculating.width, speculating.depth
        if width is None or depth is None:
            raise cannot_look("depth and verify width are not known", "--launch FILE")
        if width > thresholds.shallow_width or speculating.drafting.one_module:
            return
        rate = speculating.value("conditional_acceptance_rate")
        gain = ""
        if rate is not None:
            gain = f" At conditional acceptance {words.rate(rate)} depth 3 would give {words.length(expected_length(rate, 3))} tokens a step."
        yield self.finding(
            f"Only {depth} token{'s' if depth != 1 else ''} drafted a step",
            f"{width} tokens are verified, one of them the target's own, so no step can yield more than {width}.{gain}",
            values={"draft_depth": depth, "verify_width": width},
            evidence=[
                args["speculative_num_steps"].requested_evidence,
                args["speculative_num_steps"].effective_evidence,
            ],
            fix=["Raise the depth to 3 to 5 and measure throughput again: --speculative-num-steps 3 on SGLang."],
            verify=["Run once with depth 3 at the same load and compare tokens per second."],
        )
