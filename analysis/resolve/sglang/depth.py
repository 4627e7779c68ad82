"""Depth and width of the draft: steps, topk, draft tokens."""

from __future__ import annotations

from typing import Final

from analysis.resolve.base import Launch
from analysis.resolve.sglang.engine import (
    EAGLE_FAMILY,
    SPECULATION,
    STEPS,
    TOKENS,
    TOPK,
    Stage,
    architecture,
    drafts_with,
    step,
)
from analysis.resolve.sglang.parallel import spreads_attention

_DEEP: Final = (5, 4, 8)
_CHAIN: Final = (3, 1, 4)

_CHAIN_SINCE: Final = {
    "DeepseekV2ForCausalLM": "0.4.7",
    "DeepseekV3ForCausalLM": "0.4.7",
    "GptOssForCausalLM": "0.5.1",
    "DeepseekV32ForCausalLM": "0.5.3",
    "BailingMoeForCausalLM": "0.5.3",
    "BailingMoeV2ForCausalLM": "0.5.3",
    "Glm4MoeForCausalLM": "0.5.6",
    "MistralLarge3ForCausalLM": "0.5.6",
    "PixtralForConditionalGeneration": "0.5.6",
    "MiMoV2FlashForCausalLM": "0.5.7",
}
"""Targets that get a chain instead of a tree when nothing is asked, with the first release."""
_STILL_DEEP: Final = ("LlamaForCausalLM", "Grok1ForCausalLM", "Grok1VForCausalLM")


def _chosen(launch: Launch) -> tuple[int, int, int]:
    """Steps, topk and draft tokens the release takes when none is asked."""
    if drafts_with(launch, "STANDALONE"):
        return _CHAIN
    name = architecture(launch)
    if name in _STILL_DEEP:
        return _DEEP
    since = _CHAIN_SINCE.get(name)
    if launch.since("0.5.8") or (since is not None and launch.since(since)):
        return _CHAIN
    return _DEEP


@step(
    "sglang-14",
    "Depth and width unasked",
    when="EAGLE and none of steps, topk, draft tokens is set",
    then="they become 5, 8, 64",
    releases="0.4.1",
    source=SPECULATION,
    stage=Stage.DRAFT,
    sets=(STEPS, TOPK, TOKENS),
)
@step(
    "sglang-15",
    "Depth and width unasked",
    when="EAGLE and none of steps, topk, draft tokens is set",
    then="they become 5, 4, 8",
    releases="0.4.3",
    source=SPECULATION,
    stage=Stage.DRAFT,
    sets=(STEPS, TOPK, TOKENS),
)
def early_defaults(launch: Launch) -> None:
    """Before the choice by architecture the three were plain defaults."""
    if drafts_with(launch, "EAGLE"):
        deep = (5, 4, 8) if launch.since("0.4.3") else (5, 8, 64)
        for flag, value in zip((STEPS, TOPK, TOKENS), deep, strict=True):
            if launch[flag] is None:
                launch[flag] = value


@step(
    "sglang-16",
    "Nothing chosen, and a crash",
    when="EAGLE or EAGLE3 and none of steps, topk, draft tokens is set",
    then="it does not start: the engine looks for an attribute it does not have",
    releases="0.4.4-0.4.5",
    source=SPECULATION,
    stage=Stage.DRAFT,
)
def choice_crashes(launch: Launch) -> None:
    """The first releases that choose by architecture crash doing so."""
    if drafts_with(launch, *EAGLE_FAMILY) and (launch[STEPS], launch[TOPK], launch[TOKENS]) == (None, None, None):
        launch.reject("'ServerArgs' object has no attribute 'decrypted_config_file'", "AttributeError")


@step(
    "sglang-17",
    "Topk or draft tokens without steps",
    when="EAGLE, EAGLE3 or STANDALONE, topk or draft tokens are set, steps are not",
    then="refused, with an empty message",
    releases="0.4.4-",
    source=SPECULATION,
    stage=Stage.DRAFT,
)
def width_without_depth(launch: Launch) -> None:
    """All three or none: the engine does not guess one from another."""
    if _chooses(launch) and not (launch[TOPK] is None and launch[TOKENS] is None):
        launch.reject("", "AssertionError")


@step(
    "sglang-16",
    "Depth and width chosen by architecture",
    when="EAGLE, EAGLE3 or STANDALONE and steps are not set",
    then="steps, topk and draft tokens become 5, 4, 8 or 3, 1, 4, by the target's architecture",
    releases="0.4.6-",
    source=SPECULATION,
    stage=Stage.DRAFT,
    sets=(STEPS, TOPK, TOKENS),
)
def chosen_by_architecture(launch: Launch) -> None:
    """Unless asked, the engine chooses by the target's architecture."""
    if _chooses(launch):
        launch[STEPS], launch[TOPK], launch[TOKENS] = _chosen(launch)


def _chooses(launch: Launch) -> bool:
    adaptive = launch.since("0.5.14") and launch["speculative_adaptive"]
    return drafts_with(launch, *EAGLE_FAMILY) and launch[STEPS] is None and not adaptive


@step(
    "sglang-20",
    "No trees with pages",
    when="EAGLE or EAGLE3, page_size above 1 and topk above 1",
    then="topk becomes 1; 0.4.4 leaves the draft tokens as they were",
    says="speculative_eagle_topk is changed to 1 when page_size > 1",
    releases="0.4.4",
    source=SPECULATION,
    stage=Stage.DRAFT,
    sets=(TOPK,),
)
@step(
    "sglang-20",
    "No trees with pages",
    when="EAGLE or EAGLE3, page_size above 1 and topk above 1",
    then="topk becomes 1, and the draft tokens follow",
    says="speculative_eagle_topk is adjusted to 1 when page_size > 1",
    releases="0.4.5-0.4.8",
    source=SPECULATION,
    stage=Stage.DRAFT,
    sets=(TOPK,),
)
def chain_with_pages(launch: Launch) -> None:
    """Pages and trees exclude each other."""
    if drafts_with(launch, *EAGLE_FAMILY) and launch["page_size"] > 1:
        _require_topk(launch)
        if launch[TOPK] > 1:
            launch.announce()
            launch[TOPK] = 1


@step(
    "sglang-24",
    "trtllm_mha verifies chains only",
    when="EAGLE, EAGLE3 or STANDALONE, an attention backend is trtllm_mha and topk is above 1",
    then="refused",
    releases="0.5.1-",
    source=SPECULATION,
    stage=Stage.DRAFT,
)
def tree_on_trtllm(launch: Launch) -> None:
    """trtllm_mha cannot verify a tree."""
    backends = ("attention_backend", "decode_attention_backend", "prefill_attention_backend")
    if drafts_with(launch, *EAGLE_FAMILY) and "trtllm_mha" in [launch[backend] for backend in backends]:
        _require_topk(launch)
        if launch[TOPK] > 1:
            launch.reject("trtllm_mha backend only supports topk = 1 for speculative decoding.")


@step(
    "sglang-18",
    "Draft tokens follow the steps",
    when="EAGLE, EAGLE3 or STANDALONE, topk is 1 and draft tokens are not steps + 1",
    then="draft tokens become steps + 1, in both directions",
    says="speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when speculative_eagle_topk == 1",
    releases="0.4.5-",
    source=SPECULATION,
    stage=Stage.DRAFT,
    sets=(TOKENS,),
)
def chain_width(launch: Launch) -> None:
    """A chain of k drafts verifies k + 1 tokens, whatever was asked."""
    if drafts_with(launch, *EAGLE_FAMILY) and launch[TOPK] == 1 and launch[TOKENS] != launch[STEPS] + 1:
        launch.announce()
        launch[TOKENS] = launch[STEPS] + 1


@step(
    "sglang-19",
    "Steps without topk",
    when="EAGLE, EAGLE3 or STANDALONE, steps are set, topk is not",
    then="it does not start: the engine compares nothing with a number",
    releases="0.5.2-",
    source=SPECULATION,
    stage=Stage.DRAFT,
)
def depth_without_width(launch: Launch) -> None:
    """A missing topk is no 1."""
    if drafts_with(launch, *EAGLE_FAMILY):
        _require_topk(launch)


def _require_topk(launch: Launch) -> None:
    if launch[TOPK] is None:
        launch.reject("'>' not supported between instances of 'NoneType' and 'int'", "TypeError")


@step(
    "sglang-22",
    "Trees with pages need a backend that can",
    when="EAGLE, EAGLE3 or STANDALONE, topk and page_size above 1, the backend is not flashinfer (nor fa3 from 0.5.6)",
    then="refused",
    releases="0.5.2-0.5.12",
    source=SPECULATION,
    stage=Stage.DRAFT,
)
def tree_with_pages(launch: Launch) -> None:
    """Few backends verify a tree over pages."""
    able = ("flashinfer", "fa3") if launch.since("0.5.6") else ("flashinfer",)
    if drafts_with(launch, *EAGLE_FAMILY) and _paged_tree(launch) and launch["attention_backend"] not in able:
        launch.reject(
            "speculative_eagle_topk > 1 with page_size > 1 is unstable and produces incorrect results for paged "
            "attention backends. This combination is only supported for the 'flashinfer' backend."
        )


@step(
    "sglang-23",
    "Trees with pages need a backend that can",
    when="EAGLE, EAGLE3 or STANDALONE, topk and page_size above 1, the backend is not flashinfer, fa3 or triton",
    then="refused",
    releases="0.5.13-",
    source=SPECULATION,
    stage=Stage.DRAFT,
)
def tree_with_pages_on_three(launch: Launch) -> None:
    """Few backends verify a tree over pages."""
    able = ("flashinfer", "fa3", "triton")
    if drafts_with(launch, *EAGLE_FAMILY) and _paged_tree(launch) and launch["attention_backend"] not in able:
        launch.reject(
            f"speculative_eagle_topk > 1 with page_size > 1 is only supported on {able}; "
            f"got attention_backend={launch['attention_backend']!r}. Use page_size == 1 or one of those backends."
        )


def _paged_tree(launch: Launch) -> bool:
    return bool(launch[TOPK] > 1 and launch["page_size"] > 1)


@step(
    "sglang-30",
    "NGRAM branches by its own flag",
    when="NGRAM",
    then="topk becomes speculative_ngram_max_bfs_breadth, whatever was asked",
    releases="0.5.3-",
    source=SPECULATION,
    stage=Stage.DRAFT,
    sets=(TOPK,),
)
def ngram_breadth(launch: Launch) -> None:
    """NGRAM does not read the topk flag."""
    if drafts_with(launch, "NGRAM"):
        launch[TOPK] = launch["speculative_ngram_max_bfs_breadth"]


@step(
    "sglang-31",
    "NGRAM width",
    when="NGRAM and draft tokens are not set",
    then="draft tokens become speculative_ngram_max_match_window_size",
    releases="0.5.3-0.5.9",
    source=SPECULATION,
    stage=Stage.DRAFT,
    sets=(TOKENS,),
)
def ngram_width_of_window(launch: Launch) -> None:
    """The match window was the default width."""
    if drafts_with(launch, "NGRAM") and launch[TOKENS] is None:
        launch[TOKENS] = launch["speculative_ngram_max_match_window_size"]


@step(
    "sglang-32",
    "NGRAM width",
    when="NGRAM and draft tokens are not set",
    then="draft tokens become 12",
    says="speculative_num_draft_tokens is set to 12 by default for ngram speculative decoding. "
    "You can override this by explicitly setting --speculative-num-draft-tokens.",
    releases="0.5.10-",
    source=SPECULATION,
    stage=Stage.DRAFT,
    sets=(TOKENS,),
)
def ngram_width(launch: Launch) -> None:
    """Twelve tokens unless asked."""
    if drafts_with(launch, "NGRAM") and launch[TOKENS] is None:
        launch.announce()
        launch[TOKENS] = 12


@step(
    "sglang-33",
    "NGRAM steps",
    when="NGRAM and steps are not set",
    then="steps become draft tokens divided by topk, rounded down; 0 is possible and drafting works all the same",
    releases="0.5.14-",
    source=SPECULATION,
    stage=Stage.DRAFT,
    sets=(STEPS,),
)
def ngram_steps(launch: Launch) -> None:
    """A figure for display: NGRAM has no steps."""
    if drafts_with(launch, "NGRAM") and launch[STEPS] is None:
        launch[STEPS] = launch[TOKENS] // launch[TOPK]


@step(
    "sglang-62",
    "NGRAM without overlap and mixed chunks, said",
    when="NGRAM",
    then="only a line; overlap and mixed chunks are off already",
    says="The overlap scheduler and mixed chunked prefill are disabled because of using ngram speculative decoding.",
    releases="0.5.3-0.5.13",
    source=SPECULATION,
    stage=Stage.DRAFT,
)
@step(
    "sglang-63",
    "NGRAM without mixed chunks, said",
    when="NGRAM",
    then="only a line; mixed chunks are off already",
    says="The mixed chunked prefill are disabled because of using ngram speculative decoding.",
    releases="0.5.14-",
    source=SPECULATION,
    stage=Stage.DRAFT,
)
def ngram_says_so(launch: Launch) -> None:
    """Printed whether or not anything changed."""
    if drafts_with(launch, "NGRAM"):
        launch.announce()


@step(
    "sglang-22",
    "NGRAM trees with pages",
    when="NGRAM, topk and page_size above 1, the backend is not flashinfer",
    then="refused",
    releases="0.5.3-",
    source=SPECULATION,
    stage=Stage.DRAFT,
)
def ngram_tree_with_pages(launch: Launch) -> None:
    """Only flashinfer verifies an NGRAM tree over pages."""
    if drafts_with(launch, "NGRAM") and _paged_tree(launch) and launch["attention_backend"] != "flashinfer":
        launch.reject(
            f"speculative_eagle_topk({launch[TOPK]}) > 1 with page_size({launch['page_size']}) > 1 is unstable "
            "and produces incorrect results for paged attention backends. "
            "This combination is only supported for the 'flashinfer' backend."
        )


@step(
    "sglang-78",
    "NGRAM under DP attention",
    when="NGRAM and enable_dp_attention",
    then="refused",
    releases="0.5.3-",
    source=SPECULATION,
    stage=Stage.DRAFT,
)
def ngram_dp(launch: Launch) -> None:
    """NGRAM cannot run under DP attention."""
    if drafts_with(launch, "NGRAM") and spreads_attention(launch):
        launch.reject("Currently ngram speculative decoding does not support dp attention.")
