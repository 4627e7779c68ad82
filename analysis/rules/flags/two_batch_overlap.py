"""FLG003: two-batch overlap together with a draft."""

from __future__ import annotations

from collections.abc import Sequence

from analysis.base import Outcome, Rule
from analysis.capture.sglang import loses_capture_under_two_batch_overlap
from analysis.view import RunView
from collector.domain.arguments import Arguments
from collector.domain.findings import Confidence, Finding, Question, Severity

ACCEPTANCE_LOSS = frozenset({"ACC001", "ACC002", "ACC003"})


class TwoBatchOverlapBypassed(Rule):
    """Two-batch overlap is on, and its path skips the hidden states that the draft needs.

    Why it matters:
        In the split passes the layers run through another loop. For several models that loop
        does not capture hidden states, so the draft is fed too little in some passes, or none.

    How to fix:
        Leave out `--enable-two-batch-overlap` while speculating, or use a model and release
        whose path captures.

    Example:
        DeepSeek-V3 with EAGLE-3 on SGLang 0.5.4 to 0.5.16 and `--enable-two-batch-overlap`:
        one of three states arrives, no error, acceptance near zero.

    Source:
        SGLang 0.5.3 to 0.5.23, `models/deepseek_v2.py`, `qwen2_moe.py`, `glm4_moe.py`,
        `batch_overlap/two_batch_overlap.py`.
    """

    id, name = "FLG003", "two-batch-overlap-bypassed"
    question = Question.CONFIG
    severity = Severity.INFO
    needs = ("ACC001", "ACC002", "ACC003")

    def check(self, speculating: RunView, args: Arguments, findings: Sequence[Finding]) -> Outcome:
        """Rule the suspicion out where the flag is off; weigh it by the loss where it is on."""
        argument = args["enable_two_batch_overlap"]
        if argument.runs is False:
            proof = argument.effective_evidence
            other = args["disable_overlap_schedule"]
            aside = (
                f"; disable_overlap_schedule={other.runs} is the CPU scheduler's overlap, another feature"
                if other.runs in (True, False)
                else ""
            )
            where = f" ({proof.place})" if proof else " (it was not asked for)"
            yield self.ruled_out(f"enable_two_batch_overlap is False{where}{aside}", [proof])
            return
        if argument.runs is not True:
            return
        lost = {finding.rule for finding in findings} & ACCEPTANCE_LOSS
        known = loses_capture_under_two_batch_overlap(speculating.record.target_config, speculating.releases)
        severity = Severity.INFO
        if lost:
            severity = Severity.CRITICAL if known and "ACC002" in lost else Severity.WARNING
        why = "In passes that are split in two, the layers run through a loop of their own."
        why += (
            " For this model that loop does not capture hidden states."
            if known
            else " Whether it captures hidden states for this model and release is not known."
        )
        why += " Acceptance is low, so this is a likely cause." if lost else " No loss of acceptance is seen so far."
        yield self.finding(
            "Two-batch overlap is on while a draft needs hidden states",
            why,
            values={"flag": "enable_two_batch_overlap", "requested": argument.requested is True, "effective": True},
            evidence=[argument.requested_evidence, argument.effective_evidence],
            fix=["Start without --enable-two-batch-overlap."],
            verify=["Compare one run without --enable-two-batch-overlap: acceptance returns if this is the cause."],
            severity=severity,
            confidence=Confidence.HIGH if known else Confidence.MEDIUM,
        )
