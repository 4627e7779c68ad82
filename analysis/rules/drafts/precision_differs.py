"""DRF007: precision of draft, target or cache differ."""

from __future__ import annotations

from analysis.base import Outcome, Rule, cannot_look
from analysis.models import precision
from analysis.view import RunView
from collector.domain.arguments import Arguments
from collector.domain.drafts import ModelConfig
from collector.domain.findings import Confidence, Question, Severity


class DraftPrecisionDiffers(Rule):
    """Precision or quantisation of draft, target or cache differ.

    Why it matters:
        A draft learned the hidden states of an unquantised target agrees less with a quantised
        one (0.68 to 0.87 of the accepted drafts in one report), and a cache of low precision
        feeds both. Usually it is harmless; where acceptance is low it is a candidate.

    How to fix:
        Validate the draft against the target as it is served; try one run with the cache in the
        model's own precision.

    Example:
        Draft bfloat16, target AWQ 4 bit on float16, cache fp8.

    Source:
        Theory section 2.7.
    """

    id, name = "DRF007", "draft-precision-differs"
    question = Question.CONFIG
    severity = Severity.INFO
    confidence = Confidence.LOW

    def check(self, speculating: RunView, args: Arguments, draft: ModelConfig, target: ModelConfig) -> Outcome:
        """What configs and flags state."""
        del speculating
        own, theirs = precision(draft), precision(target)
        if own is None or theirs is None:
            raise cannot_look("one of the configs states no precision")
        cache = args.value("kv_cache_dtype")
        low_cache = isinstance(cache, str) and cache != "auto" and cache not in own
        if own == theirs and not low_cache:
            return
        stated = f", cache {cache}" if low_cache else ""
        yield self.finding(
            f"Precision differs: draft {own}, target {theirs}{stated}",
            "Usually harmless; where acceptance is low it is one candidate among others.",
            values={"draft": own, "target": theirs, "cache": cache if isinstance(cache, str) else None},
            evidence=[
                draft.evidence("quantization_config", "torch_dtype", "dtype"),
                target.evidence("quantization_config", "torch_dtype", "dtype"),
                args["kv_cache_dtype"].effective_evidence or args["kv_cache_dtype"].requested_evidence
                if low_cache
                else None,
            ],
            fix=["Validate the draft against the target as it is served.", "Try one run with --kv-cache-dtype auto."],
            verify=["Compare acceptance of both runs on the same prompts at temperature 0."],
        )
