"""The engine's last check of its own flags: everything has its final value, and it may still refuse."""

from __future__ import annotations

from typing import Final

from analysis.resolve.base import Launch
from analysis.resolve.sglang.engine import ALGORITHM, OVERLAP_OFF, Stage, step
from analysis.resolve.sglang.parallel import spreads_attention

_CHECKS: Final = "srt/server_args.py: check_server_args; srt/arg_groups/validation_hook.py from 0.5.19"


@step(
    "sglang-68",
    "Pipelines do not draft",
    when="pp_size above 1 with an algorithm or without overlap turned off (or with mixed chunks, up to 0.5.10)",
    then="refused",
    releases="0.4.6-0.5.20",
    source=_CHECKS,
    stage=Stage.CHECK,
)
def pipelines_do_not_draft(launch: Launch) -> None:
    """Stages and drafts do not go together."""
    if launch["pp_size"] <= 1:
        return
    chunks = not launch.since("0.5.11") and launch["enable_mixed_chunk"]
    if launch[ALGORITHM] is not None or not launch[OVERLAP_OFF] or chunks:
        line = "Pipeline parallelism is not compatible with overlap schedule, speculative decoding"
        launch.reject(line if launch.since("0.5.11") else f"{line}, mixed chunked prefill.", "AssertionError")


@step(
    "sglang-68",
    "Few pipelines draft",
    when="pp_size above 1 with an algorithm other than EAGLE, or outside a prefill server",
    then="refused",
    releases="0.5.21-",
    source=_CHECKS,
    stage=Stage.CHECK,
)
def few_pipelines_draft(launch: Launch) -> None:
    """EAGLE may draft behind stages, on prefill servers."""
    if launch["pp_size"] <= 1 or launch[ALGORITHM] is None:
        return
    if launch[ALGORITHM] != "EAGLE" or launch["enable_multi_layer_eagle"]:
        launch.reject(
            "Pipeline parallelism currently only supports EAGLE (non-multi-layer) speculative decoding",
            "AssertionError",
        )
    if launch["disaggregation_mode"] != "prefill":
        launch.reject(
            "PP + speculative decoding (MTP) is only supported on prefill nodes (disaggregation-mode=prefill)",
            "AssertionError",
        )


@step(
    "sglang-136",
    "Chunks of whole pages",
    when="chunked_prefill_size is no multiple of page_size (not where it is negative, from 0.5.1; "
    "not on a decode server, from 0.5.3)",
    then="refused",
    releases="0.4.9-",
    source=_CHECKS,
    stage=Stage.CHECK,
)
def chunks_of_pages(launch: Launch) -> None:
    """A chunk ends with a page."""
    chunk = launch["chunked_prefill_size"]
    decodes = launch.since("0.5.3") and launch["disaggregation_mode"] == "decode"
    whole = chunk > 0 or not launch.since("0.5.1")
    if whole and not decodes and chunk % launch["page_size"]:
        launch.reject("chunked_prefill_size must be divisible by page_size", "AssertionError")


@step(
    "sglang-98",
    "Two-batch overlap needs an exchange",
    when="enable_two_batch_overlap and moe_a2a_backend is none",
    then="refused",
    releases="0.5.7-0.5.14",
    source=_CHECKS,
    stage=Stage.CHECK,
)
@step(
    "sglang-99",
    "Two-batch overlap needs an exchange or DP attention",
    when="enable_two_batch_overlap, moe_a2a_backend is none and attention is not data-parallel",
    then="refused",
    releases="0.5.15-",
    source=_CHECKS,
    stage=Stage.CHECK,
)
def two_batches(launch: Launch) -> None:
    """What it overlaps with is the exchange of tokens between experts."""
    if not launch["enable_two_batch_overlap"] or launch["moe_a2a_backend"] != "none":
        return
    if not launch.since("0.5.15"):
        launch.reject("When enabling two batch overlap, moe_a2a_backend cannot be 'none'.")
    if not spreads_attention(launch):
        wanted = "attention DP (--attn-dp-size)" if launch.since("0.5.22") else "--enable-dp-attention"
        launch.reject(
            "When enabling two batch overlap without an EP a2a backend (moe_a2a_backend='none'), "
            f"{wanted} is required (DeepSeek-V4 non-EP DP TBO path)."
        )


@step(
    "sglang-97",
    "Two-batch overlap that never runs",
    when="enable_two_batch_overlap without an exchange backend and without DP attention",
    then="accepted, and no batch is ever split",
    releases="0.4.7-0.5.6",
    source="srt/two_batch_overlap.py",
    stage=Stage.CHECK,
)
def two_batches_in_vain(launch: Launch) -> None:
    """The split is computed only where ranks are in step."""
    exchanges = launch["enable_deepep_moe"] or launch["moe_a2a_backend"] not in (None, "none")
    if launch["enable_two_batch_overlap"] and not exchanges and not launch["enable_dp_attention"]:
        launch.ignore("enable_two_batch_overlap", "without DP attention or an exchange backend no batch is split")
