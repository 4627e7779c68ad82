"""What drafts do to the cache of keys and values."""

from __future__ import annotations

from typing import Final

from analysis.resolve.base import Launch
from analysis.resolve.vllm.engine import (
    METHOD,
    SPECULATION,
    TOKENS,
    V1,
    WHOLE,
    Stage,
    draft_config,
    drafts_with,
    field_of,
    speculates,
    step,
)
from analysis.resolve.vllm.modules import module_of

_PREFIX: Final = "enable_prefix_caching"
_NO_DROP: Final = field_of("disable_eagle_block_drop")
_COORDINATOR: Final = "vllm/v1/core/kv_cache_coordinator.py (kv_cache_manager.py before 0.10)"


def _from_hidden_states(launch: Launch) -> bool:
    names = ["eagle", "eagle3", "mtp"] if launch.since("0.11.0") else ["eagle", "eagle3", "deepseek_mtp"]
    names += ["ernie_mtp", "qwen3_next_mtp"] if not launch.since("0.11.0") else []
    names += ["dflash"] if launch.since("0.20") else []
    names += ["dspark"] if launch.since("0.25") else []
    return drafts_with(launch, *names) and not (launch.has(V1) and not launch[V1])


@step(
    "vllm-68",
    "No fast prefill with EAGLE",
    when="kv_sharing_fast_prefill with a method that drafts from hidden states",
    then="refused",
    releases="0.10.2-",
    source=WHOLE,
    stage=Stage.CACHE,
)
def no_fast_prefill(launch: Launch) -> None:
    """Fast prefill gives wrong logits for the prompt."""
    if launch["kv_sharing_fast_prefill"] and _from_hidden_states(launch):
        launch.reject(
            "Fast prefill optimization for KV sharing is not compatible with EAGLE as EAGLE requires correct logits "
            "for all tokens while fast prefill gives incorrect logits for prompt tokens."
        )


@step(
    "vllm-66",
    "Last matched block is computed again",
    when="prefix caching with a method that drafts from hidden states",
    then="the last block of a matched prefix is dropped: prefixes of one block never hit",
    releases="-0.29.0",
    source=_COORDINATOR,
    stage=Stage.REQUEST,
)
@step(
    "vllm-66",
    "Last matched block is computed again",
    when="prefix caching with a method that drafts from hidden states, unless disable_eagle_block_drop",
    then="the last block of a matched prefix is dropped: prefixes of one block never hit",
    says="EAGLE trailing prefix-cache block dropping is disabled. This is experimental and may affect "
    "speculative-token acceptance rates.",
    releases="0.30.0-",
    source=_COORDINATOR,
    stage=Stage.REQUEST,
)
def last_block(launch: Launch) -> None:
    """The draft needs the hidden states of the last tokens."""
    if not _from_hidden_states(launch) or launch[_PREFIX] is False:
        return
    if launch[_NO_DROP]:
        launch.announce()
    else:
        launch.remark(
            METHOD, "with prefix caching the last matched block is computed again: prefixes of one block never hit"
        )


@step(
    "vllm-67",
    "Blocks at least as long as a round of modules",
    when="a module of several layers with prefix caching, and block_size is below num_speculative_tokens",
    then="refused",
    releases="0.28.0-",
    source=_COORDINATOR,
    stage=Stage.LOAD,
)
def blocks_long_enough(launch: Launch) -> None:
    """The dropped tail must hold the whole round."""
    block = launch["block_size"]
    if not drafts_with(launch, "mtp") or launch[_PREFIX] is False or block is None or block >= launch[TOKENS]:
        return
    module = module_of(draft_config(launch), launch)
    if module is not None and min(module.predicts or 1, launch[TOKENS]) > 1:
        launch.reject(
            f"Multi-module MTP with prefix caching requires scheduler_block_size (={block}) >= num_speculative_tokens "
            f"(={launch[TOKENS]})."
        )


_RECURRENT: Final = ("mamba", "linear_attn", "ssm_", "layers_block_type", "linear_num")


@step(
    "vllm-69",
    "Recurrent targets keep a state for each draft",
    when="speculation on a target with recurrent layers (Mamba, gated delta nets)",
    then="num_speculative_tokens further states are kept for each request: less room for the cache",
    releases="0.11-",
    source="vllm/v1/core/single_type_kv_cache_manager.py",
    stage=Stage.REQUEST,
)
def states_for_drafts(launch: Launch) -> None:
    """A rejected draft must be undone."""
    if speculates(launch) and launch.has_target and any(key.startswith(_RECURRENT) for key in launch.target.text):
        launch.remark(TOKENS, f"{launch[TOKENS]} further states of the recurrent layers are kept for each request")


@step(
    "vllm-74",
    "Context parallelism in single tokens",
    when="speculation with decode or prefill context parallelism and cp_kv_cache_interleave_size above 1",
    then="refused by attention backends that cannot verify so",
    releases="0.12-",
    source="vllm/v1/worker/cp_utils.py",
    stage=Stage.LOAD,
)
def context_parallelism(launch: Launch) -> None:
    """Which backend runs is known when the model is loaded."""
    spread = launch["decode_context_parallel_size"] > 1 or launch["prefill_context_parallel_size"] > 1
    if speculates(launch) and spread and (launch["cp_kv_cache_interleave_size"] or 1) > 1:
        launch.remark("cp_kv_cache_interleave_size", "refused where the attention backend cannot verify drafts so")


@step(
    "vllm-104",
    "Figures of requests need speculation",
    when="per_request_spec_decode_metrics without speculation",
    then="refused",
    releases="0.29.0-",
    source=WHOLE,
    stage=Stage.SCHEDULE,
)
def figures_need_speculation(launch: Launch) -> None:
    """There would be none to give."""
    if launch["per_request_spec_decode_metrics"] != "none" and SPECULATION in launch.values:
        launch.reject(
            "--per-request-spec-decode-metrics requires speculative decoding to be enabled (via --speculative-config)."
        )
