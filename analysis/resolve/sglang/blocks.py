"""Drafts that come as one block: DFLASH, DSPARK, UNO."""

from __future__ import annotations

from typing import Final

from analysis.resolve.base import Launch, Unsettled
from analysis.resolve.sglang.engine import DRAFT_PATH, SPECULATION, STEPS, TOKENS, TOPK, Stage, drafts_with, step
from analysis.resolve.sglang.parallel import spreads_attention

_DRAFT_BACKEND: Final = "speculative_draft_attention_backend"
_DFLASH_BLOCK: Final = "speculative_dflash_block_size"
_DSPARK_BLOCK: Final = "speculative_dspark_block_size"
_WINDOW: Final = "speculative_draft_window_size"
_DEFAULT_BLOCK: Final = 16
_DEFAULT_GAMMA: Final = 7


@step(
    "sglang-79",
    "DFLASH has its limits",
    when="DFLASH with DP attention, with pp_size above 1 or without a draft",
    then="refused; from 0.5.23 DP attention goes with enable_dp_lm_head",
    releases="0.5.11-",
    source=SPECULATION,
    stage=Stage.SCHEDULING_FIRST,
)
def dflash_limits(launch: Launch) -> None:
    """What DFLASH cannot be combined with."""
    if not drafts_with(launch, "DFLASH"):
        return
    if spreads_attention(launch):
        if not launch.since("0.5.23"):
            suffix = " on non-NPU devices" if launch.since("0.5.20") else ""
            launch.reject(f"Currently DFLASH speculative decoding does not support dp attention{suffix}.")
        if not launch["enable_dp_lm_head"]:
            launch.reject("DFLASH with dp attention requires --enable-dp-lm-head.")
    if launch["pp_size"] != 1:
        launch.reject("Currently DFLASH speculative decoding only supports pp_size == 1.")
    if launch[DRAFT_PATH] is None:
        launch.reject("DFLASH speculative decoding requires setting --speculative-draft-model-path.")


@step(
    "sglang-26",
    "A block is one step",
    when="DFLASH and steps are not 1",
    then="steps become 1",
    says="DFLASH only supports speculative_num_steps == 1; overriding speculative_num_steps={} to 1.",
    releases="0.5.11-",
    source=SPECULATION,
    stage=Stage.SCHEDULING_FIRST,
    sets=(STEPS,),
)
@step(
    "sglang-26",
    "A block is one step",
    when="DSPARK and steps are not 1",
    then="steps become 1",
    says="DSpark only supports speculative_num_steps == 1; overriding speculative_num_steps={} to 1.",
    releases="0.5.16-",
    source=SPECULATION,
    stage=Stage.SCHEDULING_FIRST,
    sets=(STEPS,),
)
def one_step(launch: Launch) -> None:
    """The whole block is drafted at once."""
    _to_one(launch, STEPS)


@step(
    "sglang-26",
    "A block does not branch",
    when="DFLASH and topk is not 1",
    then="topk becomes 1",
    says="DFLASH only supports speculative_eagle_topk == 1; overriding speculative_eagle_topk={} to 1.",
    releases="0.5.11-",
    source=SPECULATION,
    stage=Stage.SCHEDULING_FIRST,
    sets=(TOPK,),
)
@step(
    "sglang-26",
    "A block does not branch",
    when="DSPARK and topk is not 1",
    then="topk becomes 1",
    says="DSpark only supports speculative_eagle_topk == 1; overriding speculative_eagle_topk={} to 1.",
    releases="0.5.16-",
    source=SPECULATION,
    stage=Stage.SCHEDULING_FIRST,
    sets=(TOPK,),
)
def no_branches(launch: Launch) -> None:
    """A block is a chain."""
    _to_one(launch, TOPK)


def _to_one(launch: Launch, flag: str) -> None:
    # The step says for which of the two algorithms it is: its line begins with the name.
    wanted = (launch.step.announced or "").split()[0].upper()
    if not drafts_with(launch, wanted) or launch[flag] == 1:
        return
    if launch[flag] is not None:
        launch.announce(launch[flag])
    launch[flag] = 1


@step(
    "sglang-28",
    "Two names of the block",
    when="DFLASH and speculative_dflash_block_size is given",
    then="draft tokens become it; refused where both are given and differ",
    releases="0.5.11-",
    source=SPECULATION,
    stage=Stage.SCHEDULING_FIRST,
    sets=(TOKENS,),
)
def dflash_block(launch: Launch) -> None:
    """Draft tokens and block are the same figure."""
    block = launch[_DFLASH_BLOCK]
    if not drafts_with(launch, "DFLASH") or block is None:
        return
    if block <= 0:
        launch.reject(f"DFLASH requires --speculative-dflash-block-size to be positive, got {block}.")
    if launch[TOKENS] is not None and launch[TOKENS] != block:
        launch.reject(
            "Both --speculative-num-draft-tokens and --speculative-dflash-block-size are set but they differ. "
            f"For DFLASH they must match. speculative_num_draft_tokens={launch[TOKENS]}, "
            f"speculative_dflash_block_size={block}."
        )
    launch[TOKENS] = block


@step(
    "sglang-27",
    "Block of the draft",
    when="DFLASH and draft tokens are not set",
    then="they become the draft's block_size, 16 where it states none",
    says="speculative_num_draft_tokens is not set; defaulting to {} for DFLASH.",
    releases="0.5.11-",
    source=SPECULATION,
    stage=Stage.SCHEDULING_FIRST,
    sets=(TOKENS,),
)
def dflash_tokens(launch: Launch) -> None:
    """The draft was trained for one block size."""
    if not drafts_with(launch, "DFLASH") or launch[TOKENS] is not None:
        return
    block = _stated(launch, "block_size")
    if block is None:
        launch.announce(_DEFAULT_BLOCK)
    launch[TOKENS] = block or _DEFAULT_BLOCK


def _stated(launch: Launch, key: str) -> int | None:
    raw = launch.draft.raw
    nested = raw.get("dflash_config")
    value = nested.get(key) if isinstance(nested, dict) and key in nested else raw.get(key)
    return value if isinstance(value, int) else None


@step(
    "sglang-145",
    "Backend of the DFLASH draft",
    when="DFLASH and speculative_draft_attention_backend is not set or cannot draft",
    then="the target's prefill backend where that can, else flashinfer",
    releases="0.5.15-",
    source=SPECULATION,
    stage=Stage.SCHEDULING_FIRST,
    sets=(_DRAFT_BACKEND,),
)
def dflash_backend(launch: Launch) -> None:
    """Few backends draft a block."""
    if not drafts_with(launch, "DFLASH"):
        return
    able = ("flashinfer", "fa3", "fa4", "triton", "ascend")
    backend = launch[_DRAFT_BACKEND] or launch["prefill_attention_backend"] or launch["attention_backend"]
    if backend == "trtllm_mha" and launch.since("0.5.18"):
        raise Unsettled("whether every layer of the draft slides or is causal")
    launch[_DRAFT_BACKEND] = backend if backend in able else "flashinfer"


@step(
    "sglang-146",
    "No mixed chunks with a block",
    when="DFLASH or DSPARK with enable_mixed_chunk",
    then="mixed chunked prefill is turned off",
    says="Mixed chunked prefill is disabled because of using {} speculative decoding.",
    releases="0.5.11-0.5.18",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=("enable_mixed_chunk",),
)
def blocks_do_not_mix(launch: Launch) -> None:
    """Until 0.5.19 a block and a prefill chunk do not share a batch."""
    if drafts_with(launch, "DFLASH", "DSPARK") and launch["enable_mixed_chunk"]:
        launch.announce(launch["speculative_algorithm"].lower())
        launch["enable_mixed_chunk"] = False


@step(
    "sglang-29",
    "DSPARK verifies gamma + 1",
    when="DSPARK",
    then="draft tokens become gamma + 1; gamma is the block size given, else the draft's, else 7; "
    "refused where other draft tokens are given",
    releases="0.5.16-",
    source=SPECULATION,
    stage=Stage.SCHEDULING_FIRST,
    sets=(TOKENS,),
)
def dspark_tokens(launch: Launch) -> None:
    """One token more than is drafted."""
    if not drafts_with(launch, "DSPARK"):
        return
    gamma = launch[_DSPARK_BLOCK]
    if gamma is not None and gamma <= 0:
        launch.reject(f"DSpark requires --speculative-dspark-block-size to be positive, got {gamma}.")
    if gamma is None:
        gamma = _stated(launch, "block_size")
    if gamma is None:
        if launch[TOKENS] is not None:
            return
        gamma = _DEFAULT_GAMMA
    window = gamma + 1
    if launch[TOKENS] is not None and launch[TOKENS] != window:
        launch.reject(
            f"DSpark speculative_num_draft_tokens must equal gamma + 1 (= {window} for gamma={gamma}), "
            f"but got speculative_num_draft_tokens={launch[TOKENS]}."
        )
    launch[TOKENS] = window


@step(
    "sglang-37",
    "UNO has its limits",
    when="UNO with a draft, without uno_lora_path, without draft tokens or with several ranks",
    then="refused",
    releases="0.5.20-",
    source=SPECULATION,
    stage=Stage.SCHEDULING_FIRST,
)
def uno_limits(launch: Launch) -> None:
    """The target itself drafts, through an adapter."""
    if not drafts_with(launch, "UNO"):
        return
    if launch[DRAFT_PATH] is not None:
        launch.reject("UNO reuses the target model and does not accept --speculative-draft-model-path.")
    if launch["uno_lora_path"] is None:
        launch.reject("UNO requires --uno-lora-path.")
    if launch[TOKENS] is None or launch[TOKENS] < 1:
        launch.reject(
            "UNO requires --speculative-num-draft-tokens to be a positive integer denoting the linear width or "
            "tree verify width Q."
        )
    if (launch["tp_size"], launch["pp_size"]) != (1, 1):
        launch.reject("UNO requires TP=PP=1.")


@step(
    "sglang-37",
    "UNO drafts one step",
    when="UNO with topk 1 or none",
    then="steps and topk become 1",
    releases="0.5.20-",
    source=SPECULATION,
    stage=Stage.SCHEDULING_FIRST,
    sets=(STEPS, TOPK),
)
def uno_one_step(launch: Launch) -> None:
    """A linear UNO is one step of draft tokens."""
    if drafts_with(launch, "UNO") and launch[TOPK] in (None, 1):
        launch[STEPS] = launch[TOPK] = 1


@step(
    "sglang-101",
    "Draft window in vain",
    when="speculative_draft_window_size with an algorithm other than EAGLE3 or DFLASH (EAGLE too, from 0.5.21)",
    then="ignored",
    says="--speculative-draft-window-size has no effect with speculative_algorithm={} "
    "(honored by Llama EAGLE-3 and DFLASH only).",
    releases="0.5.13-0.5.20",
    source=SPECULATION,
    stage=Stage.ALGORITHM,
)
@step(
    "sglang-101",
    "Draft window in vain",
    when="speculative_draft_window_size with an algorithm other than EAGLE, EAGLE3 or DFLASH",
    then="ignored",
    says="--speculative-draft-window-size has no effect with speculative_algorithm={} (honored by DFLASH, "
    "Llama EAGLE-3, and the EAGLE/MTP/NEXTN draft-decode path on the Triton/FlashInfer draft backends).",
    releases="0.5.21-",
    source=SPECULATION,
    stage=Stage.ALGORITHM,
)
def window_in_vain(launch: Launch) -> None:
    """Only some drafts attend over a window."""
    window = launch[_WINDOW]
    if window is None:
        return
    if window <= 0:
        launch.reject(f"--speculative-draft-window-size must be positive, got {window}.")
    honour = ("EAGLE", "EAGLE3", "DFLASH") if launch.since("0.5.21") else ("EAGLE3", "DFLASH")
    if not drafts_with(launch, *honour, *(("NEXTN",) if launch.since("0.5.21") else ())):
        launch.announce(launch["speculative_algorithm"])
        launch.ignore(_WINDOW, f"no effect with {launch['speculative_algorithm']}")
