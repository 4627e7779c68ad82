"""How drafts are verified, and flags that have no say in it."""

from __future__ import annotations

from typing import Final

from analysis.resolve.base import Launch
from analysis.resolve.sglang.engine import (
    ALGORITHM,
    EAGLE_FAMILY,
    SPECULATION,
    STEPS,
    TOKENS,
    TOPK,
    Stage,
    drafts_with,
    step,
)
from analysis.resolve.sglang.parallel import attention_ranks, spreads_attention

_REJECTION: Final = "speculative_use_rejection_sampling"
_SINGLE: Final = "speculative_accept_threshold_single"
_ACC: Final = "speculative_accept_threshold_acc"
_AUX: Final = "enable_return_aux_hidden_states"


@step(
    "sglang-9",
    "Hidden states instead of drafts",
    when="enable_return_aux_hidden_states with EAGLE3, DFLASH or DSPARK",
    then="speculation is off: the algorithm only names what is captured",
    releases="0.5.23-",
    source="srt/arg_groups/validation_hook.py",
    stage=Stage.PARALLEL_ALIASES,
    sets=(ALGORITHM, "aux_hidden_state_capture"),
)
def hidden_states(launch: Launch) -> None:
    """A server that feeds training drafts nothing."""
    name = launch[ALGORITHM]
    if not launch[_AUX]:
        return
    if (name or "").upper() not in ("EAGLE3", "DFLASH", "DSPARK"):
        launch.reject(
            "--enable-return-aux-hidden-states needs --speculative-algorithm EAGLE3, DFLASH or DSPARK to name the "
            f"capture convention, got {name!r}."
        )
    if launch["speculative_draft_model_path"] is not None:
        launch.reject(
            "--enable-return-aux-hidden-states captures without a draft; drop --speculative-draft-model-path."
        )
    launch[ALGORITHM] = None
    launch["aux_hidden_state_capture"] = name.lower()


@step(
    "sglang-12",
    "Token map in vain",
    when="EAGLE3 with speculative_token_map",
    then="the map is ignored: the draft brings its own",
    says="Speculative token map specified, but EAGLE3 models already have this. Ignoring the specified token map.",
    releases="0.4.4-",
    source="srt/speculative/eagle_worker.py",
    stage=Stage.WORKER,
)
def token_map(launch: Launch) -> None:
    """Printed when the worker starts."""
    if drafts_with(launch, "EAGLE3") and launch["speculative_token_map"] is not None:
        launch.announce()
        launch.ignore("speculative_token_map", "an EAGLE-3 draft brings its own map")


@step(
    "sglang-25",
    "Tree narrower than it is deep",
    when="topk above 1 and draft tokens not above steps",
    then="kept; the surplus depth is drafted and thrown away",
    source=SPECULATION,
    stage=Stage.WORKER,
)
def surplus_depth(launch: Launch) -> None:
    """Steps beyond the width cost time and verify nothing."""
    if not drafts_with(launch, *EAGLE_FAMILY):
        return
    steps, topk, tokens = launch[STEPS], launch[TOPK], launch[TOKENS]
    if None not in (steps, topk, tokens) and topk > 1 and tokens <= steps:
        launch.remark(STEPS, f"{tokens} tokens are verified, so drafts beyond depth {tokens - 1} are thrown away")


@step(
    "sglang-93",
    "Rejection sampling has its conditions",
    when="speculative_use_rejection_sampling with another algorithm than EAGLE or EAGLE3, topk other than 1, "
    "accept thresholds, or deterministic inference (up to 0.5.22)",
    then="refused",
    releases="0.5.14-",
    source=SPECULATION,
    stage=Stage.DRAFT,
)
def rejection_sampling(launch: Launch) -> None:
    """It samples chains from the draft's own distribution."""
    if not launch[_REJECTION] or not drafts_with(launch, *EAGLE_FAMILY):
        return
    flag = "--speculative-use-rejection-sampling"
    if not drafts_with(launch, "EAGLE", "EAGLE3"):
        launch.reject(
            f"{flag} is only supported for EAGLE / EAGLE3 / NEXTN, not speculative_algorithm={launch[ALGORITHM]}.",
            "NotImplementedError",
        )
    if launch[TOPK] != 1:
        launch.reject(f"{flag} requires --speculative-eagle-topk=1.")
    if launch[_SINGLE] != 1.0 or launch[_ACC] != 1.0:
        launch.reject(
            f"{flag} is incompatible with --speculative-accept-threshold-single / --speculative-accept-threshold-acc; "
            "rejection sampling ignores the accept thresholds."
        )
    if launch["enable_deterministic_inference"] and not launch.since("0.5.23"):
        launch.reject(
            f"{flag} is incompatible with --enable-deterministic-inference; "
            "the sampling kernel draws coins from the global RNG and is not batch-invariant."
        )


@step(
    "sglang-96",
    "Thresholds in vain",
    when="an accept threshold below 1 and greedy requests",
    then="no effect: only the verify kernel that samples reads them",
    releases="0.4.3-",
    source="srt/speculative/eagle_info.py",
    stage=Stage.WORKER,
)
def thresholds(launch: Launch) -> None:
    """A note, not a change: requests with a temperature do feel them."""
    for flag in (_SINGLE, _ACC):
        if launch.given(flag) and launch[flag] < 1:
            launch.remark(flag, "no effect on greedy requests (temperature 0); only sampled ones read it")


@step(
    "sglang-90",
    "Verification by the decode kernel",
    when="tokenspeed_mla with an algorithm and speculative_attention_mode prefill",
    then="speculative_attention_mode becomes decode",
    releases="0.5.23-",
    source="srt/arg_groups/serving_hook.py",
    stage=Stage.DEFAULTS,
    sets=("speculative_attention_mode",),
)
def tokenspeed_verifies_as_decode(launch: Launch) -> None:
    """The name lives on as what it implied."""
    backends = (launch["attention_backend"], launch["decode_attention_backend"])
    drafts = launch[ALGORITHM] is not None
    if drafts and "tokenspeed_mla" in backends and launch["speculative_attention_mode"] == "prefill":
        launch["speculative_attention_mode"] = "decode"


@step(
    "sglang-91",
    "Verification over a 4-bit cache",
    when="an nvfp4 cache on SM100 with mixed backends, an algorithm and speculative_attention_mode prefill",
    then="speculative_attention_mode becomes decode",
    says="SM100 mixed NVFP4 speculative decoding routes target verify to trtllm_mha; overriding "
    "--speculative-attention-mode=prefill to decode.",
    releases="0.5.21-",
    source="srt/arg_groups/kv_cache_hook.py",
    stage=Stage.PAGES,
    sets=("speculative_attention_mode",),
)
def four_bit_cache(launch: Launch) -> None:
    """The prefill backend reads a copy that a captured graph cannot refresh."""
    if launch[ALGORITHM] is None or launch["kv_cache_dtype"] != "nvfp4" or launch.gpu.capability[0] != 10:
        return
    prefill = launch["prefill_attention_backend"] or launch["attention_backend"]
    decode = launch["decode_attention_backend"] or launch["attention_backend"]
    mixed = (prefill, decode) == ("flashinfer", "trtllm_mha")
    if mixed and launch["speculative_attention_mode"] == "prefill":
        launch.announce()
        launch["speculative_attention_mode"] = "decode"


@step(
    "sglang-102",
    "Skipping the rank sync",
    when="speculative_skip_dp_mlp_sync with another algorithm than EAGLE",
    then="refused",
    releases="0.5.11-0.5.22",
    source=SPECULATION,
    stage=Stage.ALGORITHM_LAST,
)
def skipping_sync(launch: Launch) -> None:
    """Only EAGLE's draft can do without."""
    if launch["speculative_skip_dp_mlp_sync"] and not drafts_with(launch, "EAGLE"):
        launch.reject(
            "--speculative-skip-dp-mlp-sync is only supported with speculative_algorithm == EAGLE, "
            f"got {launch[ALGORITHM]}.",
            "AssertionError",
        )


@step(
    "sglang-103",
    "LoRA drafts with few",
    when="enable_lora or lora_paths with an algorithm other than NGRAM (EAGLE, EAGLE3, DFLASH, DSPARK too, from 0.5.19)",
    then="refused",
    releases="0.5.5-",
    source="srt/server_args.py; srt/arg_groups/lora_hook.py from 0.5.19",
    stage=Stage.CHECK,
)
def lora(launch: Launch) -> None:
    """A draft knows nothing of the adapters."""
    name = launch[ALGORITHM]
    if not (launch["enable_lora"] or launch["lora_paths"]) or name in (None, "NGRAM"):
        return
    if not launch.since("0.5.19"):
        launch.reject("Currently LoRA is only compatible with NGRAM speculative decoding.")
    if name not in ("EAGLE", "EAGLE3", "DFLASH", "DSPARK"):
        promoted = (
            " (NEXTN/EAGLE with a Gemma4 assistant draft is automatically promoted to FROZEN_KV_MTP, "
            "which does not support LoRA)"
        )
        launch.reject(
            "LoRA is only compatible with NGRAM, EAGLE, NEXTN, EAGLE3, DFLASH, or DSPARK speculative decoding, "
            f"not {name}{promoted if name == 'FROZEN_KV_MTP' else ''}."
        )


@step(
    "sglang-94",
    "Rejection sampling on AMD",
    when="an AMD GPU, EAGLE with topk 1 and thresholds 1, no token map, no deterministic inference",
    then="speculative_use_rejection_sampling is on: without it nothing is sampled",
    says="ROCm needs rejection sampling for EAGLE spec-decode to sample at all; "
    "enabling speculative_use_rejection_sampling by default.",
    releases="0.5.21-",
    source=SPECULATION,
    stage=Stage.DRAFT,
    sets=(_REJECTION,),
)
def rejection_sampling_on_amd(launch: Launch) -> None:
    """The other verify kernel is not built for AMD."""
    if not drafts_with(launch, "EAGLE") or launch[_REJECTION] or not launch.vendor_is("amd"):
        return
    plain = launch["speculative_token_map"] is None and not launch["enable_deterministic_inference"]
    if plain and launch[TOPK] == 1 and launch[_SINGLE] == launch[_ACC] == 1.0:
        launch.announce()
        launch[_REJECTION] = True


@step(
    "sglang-95",
    "Greedy verification off CUDA",
    when="an algorithm drafts on another GPU than NVIDIA's",
    then="drafts are verified greedily at any temperature, and the accept thresholds have no effect",
    says="Tree speculative sampling kernel unavailable (likely AMD/HIP build). Falling back to greedy verification.",
    releases="0.5.1-0.5.13",
    source="srt/speculative/eagle_info.py",
    stage=Stage.WORKER,
)
def greedy_off_cuda(launch: Launch) -> None:
    """The kernel that samples is missing from those builds."""
    if drafts_with(launch, *EAGLE_FAMILY) and launch.vendor_is("amd"):
        launch.announce()
        for flag in (_SINGLE, _ACC):
            launch.ignore(flag, "drafts are verified greedily on this GPU")


@step(
    "sglang-42",
    "Running requests by rank",
    when="attention is data-parallel and max_running_requests is set",
    then="each rank takes its share",
    releases="0.4.4-",
    source="srt/managers/scheduler.py",
    stage=Stage.WORKER,
)
def requests_by_rank(launch: Launch) -> None:
    """The flag counts for the whole server."""
    running, ranks = launch["max_running_requests"], attention_ranks(launch)
    if spreads_attention(launch) and running is not None and ranks > 1:
        launch.remark("max_running_requests", f"{running // ranks} for each of the {ranks} ranks")
