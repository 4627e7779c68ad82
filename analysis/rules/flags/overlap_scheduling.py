"""FLG002: the overlap scheduler was turned off by the engine."""

from __future__ import annotations

from analysis.announced import announcement_about
from analysis.base import Outcome, Rule, cannot_look
from analysis.view import RunView
from collector.domain.arguments import UNSEEN, Arguments
from collector.domain.findings import Confidence, Question, Severity

_OFF = ("is disabled", "are disabled", "Disabling overlap", "Non-overlap", "not implemented", "incompatible")


class OverlapSchedulingForcedOff(Rule):
    """The engine turned its overlap scheduler off although nobody asked for that.

    Why it matters:
        Without overlap the GPU waits while the CPU prepares the next batch. Small models and
        small batches feel it most, and it adds to the cost of every speculative step.

    How to fix:
        On SGLang 0.5.4 to 0.5.10 set `SGLANG_ENABLE_SPEC_V2=True` and keep top-k at 1; later
        releases overlap by default. With n-gram drafts on old releases there is no way.

    Example:
        `--speculative-algorithm EAGLE3` on SGLang 0.5.9 without the variable runs with
        `disable_overlap_schedule=True`.

    Source:
        SGLang 0.4.4 to 0.5.23, `server_args.py` and `arg_groups/speculative_hook.py`.
    """

    id, name = "FLG002", "overlap-scheduling-forced-off"
    question = Question.CONFIG
    severity = Severity.INFO

    def check(self, speculating: RunView, args: Arguments) -> Outcome:
        """Look at the effective value, else at the engine's own line, else at the prediction."""
        argument = args["disable_overlap_schedule"]
        if argument.requested is True:
            return
        said = announcement_about(speculating.record, "disable_overlap_schedule")
        told_off = said is not None and any(word in said.text for word in _OFF)
        seen = argument.effective is not UNSEEN
        if argument.effective is False or not (argument.runs is True or told_off):
            return
        if not told_off and not args.any_requested:
            raise cannot_look("it is off, and whether that was asked for is not known", "--launch FILE")
        yield self.finding(
            "The overlap scheduler is off, and nobody asked for that",
            "The engine turns it off for this kind of speculation on this release. "
            "It is the CPU scheduler's overlap, not two-batch overlap.",
            values={
                "flag": "disable_overlap_schedule",
                "requested": argument.requested if argument.requested_seen else None,
                "effective": True,
            },
            evidence=[said, argument.effective_evidence],
            fix=[
                "SGLang 0.5.4 to 0.5.10: start with SGLANG_ENABLE_SPEC_V2=True and top-k 1.",
                "SGLang 0.5.11 and later overlap by default.",
            ],
            verify=["grep -o 'disable_overlap_schedule=[A-Za-z]*' LOG"],
            confidence=Confidence.HIGH if seen or told_off else Confidence.MEDIUM,
        )
