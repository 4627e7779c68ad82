"""Which algorithm drafts, and with what draft model."""

from __future__ import annotations

from typing import Final

from analysis.resolve.base import Launch
from analysis.resolve.sglang.engine import (
    ALGORITHM,
    DRAFT_PATH,
    EAGLE_FAMILY,
    SPECULATION,
    Stage,
    architecture,
    drafts_with,
    step,
)

_GEMMA_DRAFTS: Final = ("Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM")

_BUILT_IN_DRAFTS: Final = {
    "DeepseekV3ForCausalLM": "0.4.6",
    "Glm4MoeForCausalLM": "0.4.9",
    "DeepseekV32ForCausalLM": "0.5.3",
    "BailingMoeForCausalLM": "0.5.3",
    "BailingMoeV2ForCausalLM": "0.5.3",
    "MistralLarge3ForCausalLM": "0.5.6",
    "PixtralForConditionalGeneration": "0.5.6",
    "Glm4MoeLiteForCausalLM": "0.5.8",
    "GlmMoeDsaForCausalLM": "0.5.9",
    "BailingMoeV2_5ForCausalLM": "0.5.9",
    "HYV3ForCausalLM": "0.5.11",
    "DeepseekV4ForCausalLM": "0.5.12",
    "HYV4ForCausalLM": "0.5.20",
    "Qwen4ExpForConditionalGeneration": "0.5.20",
}
"""Targets that carry their own draft, with the first release that knows."""
_QUIET_ABOUT_DRAFT: Final = ("MistralLarge3ForCausalLM", "PixtralForConditionalGeneration")


def has_built_in_draft(launch: Launch) -> bool:
    """Whether the target carries its own draft and this release knows."""
    since = _BUILT_IN_DRAFTS.get(architecture(launch))
    return since is not None and launch.since(since)


@step(
    "sglang-5",
    "Flags without an algorithm",
    when="speculative_algorithm is not set, other speculative flags are",
    then="they are kept and do nothing: no speculation",
    source=SPECULATION,
    stage=Stage.ALGORITHM,
)
def flags_without_algorithm(launch: Launch) -> None:
    """Nothing drafts without an algorithm."""
    if launch[ALGORITHM] is None:
        for flag in launch.requested:
            if flag.startswith("speculative_"):
                launch.ignore(flag, "no speculative_algorithm is set, so nothing is drafted")


@step(
    "sglang-8",
    "Draft revision",
    when="a draft is given without a revision",
    then="its revision is main",
    releases="0.5.6-",
    source=SPECULATION,
    stage=Stage.ALGORITHM,
    sets=("speculative_draft_model_revision",),
)
def draft_revision(launch: Launch) -> None:
    """A draft without a revision is read from main."""
    if launch[DRAFT_PATH] is not None and launch["speculative_draft_model_revision"] is None:
        launch["speculative_draft_model_revision"] = "main"


@step(
    "sglang-2",
    "Algorithm in capitals",
    when="the algorithm is written in lower case",
    then="it is read in capitals",
    releases="0.5.12-",
    source=SPECULATION,
    stage=Stage.ALGORITHM,
    sets=(ALGORITHM,),
)
def capitals(launch: Launch) -> None:
    """Algorithms are read in capitals."""
    if launch[ALGORITHM] is not None:
        launch[ALGORITHM] = launch[ALGORITHM].upper()


@step(
    "sglang-3",
    "Gemma 4 assistant draft",
    when="the algorithm is EAGLE or NEXTN and the draft is a Gemma 4 assistant",
    then="it runs as FROZEN_KV_MTP",
    says="Detected Gemma4AssistantForCausalLM draft; promoting --speculative-algorithm {} to FROZEN_KV_MTP.",
    releases="0.5.12-",
    source=SPECULATION,
    stage=Stage.ALGORITHM,
)
def gemma_assistant(launch: Launch) -> None:
    """A Gemma 4 assistant shares the target's cache and has an algorithm of its own."""
    if drafts_with(launch, "EAGLE", "NEXTN") and _gemma_draft(launch):
        launch.announce(launch[ALGORITHM])
        launch[ALGORITHM] = "FROZEN_KV_MTP"


@step(
    "sglang-4",
    "Gemma 4 assistant with EAGLE3",
    when="the algorithm is EAGLE3 and the draft is a Gemma 4 assistant",
    then="refused",
    releases="0.5.12-",
    source=SPECULATION,
    stage=Stage.ALGORITHM,
)
def gemma_assistant_as_eagle3(launch: Launch) -> None:
    """A Gemma 4 assistant is no EAGLE-3 head."""
    if drafts_with(launch, "EAGLE3") and _gemma_draft(launch):
        launch.reject(
            "Gemma4AssistantForCausalLM draft requires --speculative-algorithm NEXTN or EAGLE; "
            "EAGLE3 is not supported for this draft architecture."
        )


def _gemma_draft(launch: Launch) -> bool:
    # Without the draft's config it is taken for what nearly every draft is: no Gemma assistant.
    return launch.has_draft and any(name in _GEMMA_DRAFTS for name in launch.draft.architectures)


@step(
    "sglang-1",
    "NEXTN is EAGLE",
    when="the algorithm is NEXTN",
    then="it runs as EAGLE",
    source=SPECULATION,
    stage=Stage.ALGORITHM,
    sets=(ALGORITHM,),
)
def nextn(launch: Launch) -> None:
    """NEXTN is another name of EAGLE."""
    if drafts_with(launch, "NEXTN"):
        launch[ALGORITHM] = "EAGLE"


@step(
    "sglang-6",
    "The target's own draft",
    when="EAGLE, EAGLE3 or STANDALONE, no draft is given, and the target carries one",
    then="the draft is read from the target's path",
    releases="0.4.6-",
    source=SPECULATION,
    stage=Stage.DRAFT,
    sets=(DRAFT_PATH, "speculative_draft_model_revision"),
)
def built_in_draft(launch: Launch) -> None:
    """Targets with their own draft need no draft path."""
    if drafts_with(launch, *EAGLE_FAMILY) and launch[DRAFT_PATH] is None and has_built_in_draft(launch):
        launch[DRAFT_PATH] = launch["model_path"]
        if launch.has("speculative_draft_model_revision"):
            launch["speculative_draft_model_revision"] = launch["revision"]


@step(
    "sglang-7",
    "Draft beside the target's own",
    when="EAGLE, EAGLE3 or STANDALONE, a draft is given, and the target carries one",
    then="the given draft is used; the line the engine prints misleads where the draft is EAGLE-3",
    says="DeepSeek MTP does not require setting speculative_draft_model_path.",
    releases="0.4.6-",
    source=SPECULATION,
    stage=Stage.DRAFT,
)
def draft_beside_built_in(launch: Launch) -> None:
    """A given draft wins over the target's own."""
    if (
        drafts_with(launch, *EAGLE_FAMILY)
        and launch.given(DRAFT_PATH)
        and has_built_in_draft(launch)
        and architecture(launch) not in _QUIET_ABOUT_DRAFT
    ):
        launch.announce()
