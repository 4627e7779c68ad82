"""DRF007: precision of draft, target or cache differ."""

from __future__ import annotations

from analysis.base import Outcome, Rule, cannot_look
from analysis.models import precision, quantised_on_loading
from analysis.view import RunView
from collector.domain.arguments import Arguments
from collector.domain.drafts import ModelConfig
from collector.domain.findings import Confidence, Question, Severity

DRAFT_FLAGS = ("speculative_draft_model_quantization", "speculative_config.quantization")
"""How engines call what the draft is quantised to on loading; where it is not given, the target's flag counts for both."""
REPAIRS = {
    "speculative_draft_model_quantization": "--speculative-draft-model-quantization unquant loads the draft as it is stored.",
}


class DraftPrecisionDiffers(Rule):
    """Precision or quantisation of draft, target or cache differ.

    Why it matters:
        A draft learned the hidden states of an unquantised target agrees less with a quantised
        one (0.68 to 0.87 of the accepted drafts in one report), and a cache of low precision
        feeds both. Usually it is harmless; where acceptance is low it is a candidate. A flag
        that quantises the target on loading does so to the draft as well, unless told otherwise.

    How to fix:
        Validate the draft against the target as it is served; try one run with the cache in the
        model's own precision.

    Example:
        Draft bfloat16, target AWQ 4 bit on float16, cache fp8.

    Source:
        Theory section 2.7; SGLang 0.5.7 and later and vLLM 0.10.2 and later pass `--quantization`
        on to the draft.
    """

    id, name = "DRF007", "draft-precision-differs"
    question = Question.CONFIG
    severity = Severity.INFO
    confidence = Confidence.LOW

    def check(self, speculating: RunView, args: Arguments, draft: ModelConfig, target: ModelConfig) -> Outcome:
        """What configs, stored weights and flags state."""
        del speculating
        own, theirs = precision(draft), precision(target)
        if own is None or theirs is None:
            raise cannot_look("one of the configs states no precision")
        flag = next((name for name in DRAFT_FLAGS if args.seen(name)), None)
        draft_loaded = quantised_on_loading(draft, args.value(flag) if flag else None)
        target_loaded = quantised_on_loading(target, args.value("quantization"))
        cache = args.value("kv_cache_dtype")
        low_cache = isinstance(cache, str) and cache != "auto" and cache not in own
        if own == theirs and not (low_cache or draft_loaded or target_loaded):
            return
        stated = f", cache {cache}" if low_cache else ""
        fix = ["Validate the draft against the target as it is served."]
        if low_cache:
            fix.append("Try one run with --kv-cache-dtype auto.")
        if draft_loaded and flag in REPAIRS:
            fix.append(REPAIRS[flag])
        used = [("kv_cache_dtype", low_cache), (flag or "", draft_loaded), ("quantization", target_loaded)]
        yield self.finding(
            f"Precision differs: draft {_as_loaded(own, draft_loaded)}, target {_as_loaded(theirs, target_loaded)}{stated}",
            "Usually harmless; where acceptance is low it is one candidate among others.",
            values={
                "draft": own,
                "target": theirs,
                "cache": cache if isinstance(cache, str) else None,
                **({"draft_loaded_as": draft_loaded} if draft_loaded else {}),
                **({"target_loaded_as": target_loaded} if target_loaded else {}),
            },
            evidence=[
                draft.evidence("quantization_config", "torch_dtype", "dtype"),
                target.evidence("quantization_config", "torch_dtype", "dtype"),
                *(args[name].effective_evidence or args[name].requested_evidence for name, here in used if here),
            ],
            fix=fix,
            verify=["Compare acceptance of both runs on the same prompts at temperature 0."],
        )


def _as_loaded(stored: str, loaded: str | None) -> str:
    return f"{stored} loaded as {loaded}" if loaded else stored
