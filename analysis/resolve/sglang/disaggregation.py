"""Servers that only prefill or only decode."""

from __future__ import annotations

from typing import Final

from analysis.resolve.base import Launch
from analysis.resolve.sglang.engine import OVERLAP_OFF, Stage, step

_DISAGGREGATION: Final = "srt/server_args.py; srt/arg_groups/pd_disaggregation_hook.py from 0.5.13"
_MODE: Final = "disaggregation_mode"
_RADIX_OFF: Final = "disable_radix_cache"
_GRAPHS_OFF: Final = "disable_cuda_graph"


@step(
    "sglang-80",
    "No prefix cache on a decode server",
    when="disaggregation_mode is decode (and no radix cache is asked for, from 0.5.11)",
    then="the radix cache is turned off",
    says="KV cache is forced as chunk cache for decode server",
    releases="0.4.5-0.5.10",
    source=_DISAGGREGATION,
    stage=Stage.DISAGGREGATION_LAST,
    sets=(_RADIX_OFF,),
)
@step(
    "sglang-80",
    "No prefix cache on a decode server",
    when="disaggregation_mode is decode and disaggregation_decode_enable_radix_cache is off",
    then="the radix cache is turned off",
    says="KV cache is forced as chunk cache for decode server",
    releases="0.5.11-0.5.21",
    source=_DISAGGREGATION,
    stage=Stage.DISAGGREGATION_FIRST,
    sets=(_RADIX_OFF,),
)
@step(
    "sglang-80",
    "No prefix cache on a decode server",
    when="disaggregation_mode is decode and disaggregation_decode_enable_radix_cache is off",
    then="the radix cache is turned off",
    says="Radix cache is disabled for decode server",
    releases="0.5.22-",
    source=_DISAGGREGATION,
    stage=Stage.DISAGGREGATION_FIRST,
    sets=(_RADIX_OFF,),
)
def decode_without_prefixes(launch: Launch) -> None:
    """A decode server gets its cache from elsewhere."""
    if launch[_MODE] == "decode" and not launch["disaggregation_decode_enable_radix_cache"]:
        launch.announce()
        launch[_RADIX_OFF] = True


@step(
    "sglang-160",
    "Decode ranks want balanced prefill",
    when="disaggregation_mode is decode and dp_size above 1 without prefill_round_robin_balance",
    then="refused",
    releases="0.5.2-0.5.7",
    source=_DISAGGREGATION,
    stage=Stage.DISAGGREGATION_LAST,
)
def balanced_prefill(launch: Launch) -> None:
    """The ranks must find their prefill in turn."""
    if launch[_MODE] == "decode" and launch["dp_size"] > 1 and not launch["prefill_round_robin_balance"]:
        launch.reject(
            "Prefill round robin balance is required when dp size > 1. Please make sure that the prefill instance is "
            "launched with `--load-balance-method round_robin` and `--prefill-round-robin-balance` is set for decode "
            "server.",
            "AssertionError",
        )


@step(
    "sglang-126",
    "No graphs on a prefill server",
    when="disaggregation_mode is prefill",
    then="CUDA graphs are turned off; the line names the wrong role",
    says="KV cache is forced as chunk cache for decode server",
    releases="0.4.4",
    source=_DISAGGREGATION,
    stage=Stage.DISAGGREGATION_LAST,
    sets=(_GRAPHS_OFF,),
)
@step(
    "sglang-126",
    "No prefix cache on a decode server",
    when="disaggregation_mode is decode",
    then="the radix cache is turned off; the line names the wrong role",
    says="Cuda graph is disabled for prefill server",
    releases="0.4.4",
    source=_DISAGGREGATION,
    stage=Stage.DISAGGREGATION_LAST,
    sets=(_RADIX_OFF,),
)
def first_roles(launch: Launch) -> None:
    """The first release with it mixed up its lines."""
    flag = launch.step.sets[0]
    if launch[_MODE] == ("prefill" if flag == _GRAPHS_OFF else "decode"):
        launch.announce()
        launch[flag] = True


@step(
    "sglang-126",
    "No overlap in either role",
    when="disaggregation_mode is prefill or decode",
    then="the overlap scheduler is turned off",
    says="Overlap scheduler is disabled for {} server",
    releases="0.4.4",
    source=_DISAGGREGATION,
    stage=Stage.DISAGGREGATION_LAST,
    sets=(OVERLAP_OFF,),
)
def roles_do_not_overlap(launch: Launch) -> None:
    """Only in the first release with it."""
    if launch[_MODE] != "null":
        launch.announce(launch[_MODE])
        launch[OVERLAP_OFF] = True


@step(
    "sglang-81",
    "No graphs on a prefill server",
    when="disaggregation_mode is prefill",
    then="CUDA graphs are turned off",
    says="Cuda graph is disabled for prefill server",
    releases="0.4.5-0.5.5",
    source=_DISAGGREGATION,
    stage=Stage.DISAGGREGATION_LAST,
    sets=(_GRAPHS_OFF,),
)
@step(
    "sglang-81",
    "No graphs on a prefill server",
    when="disaggregation_mode is prefill and prefill graphs are off",
    then="CUDA graphs are turned off",
    says="Cuda graph is disabled for prefill server when piecewise cuda graph is not enabled.",
    releases="0.5.6-0.5.10",
    source=_DISAGGREGATION,
    stage=Stage.DISAGGREGATION_LAST,
    sets=(_GRAPHS_OFF,),
)
@step(
    "sglang-81",
    "No graphs on a prefill server",
    when="disaggregation_mode is prefill and prefill graphs are off",
    then="CUDA graphs are turned off",
    says="Cuda graph is disabled for prefill server when piecewise cuda graph is not enabled.",
    releases="0.5.11-0.5.12",
    source=_DISAGGREGATION,
    stage=Stage.DISAGGREGATION_FIRST,
    sets=(_GRAPHS_OFF,),
)
@step(
    "sglang-81",
    "No graphs on a prefill server",
    when="disaggregation_mode is prefill",
    then="CUDA graphs are turned off",
    releases="0.5.13-0.5.15",
    source=_DISAGGREGATION,
    stage=Stage.DISAGGREGATION_FIRST,
    sets=(_GRAPHS_OFF,),
)
def prefill_without_graphs(launch: Launch) -> None:
    """A prefill server never decodes."""
    if launch[_MODE] == "prefill" and not _captures_prefill(launch):
        launch.announce()
        launch[_GRAPHS_OFF] = True


def _captures_prefill(launch: Launch) -> bool:
    if launch.since("0.5.13") or not launch.since("0.5.6"):
        return False
    if launch.since("0.5.10"):
        return not launch["disable_piecewise_cuda_graph"]
    return bool(launch["enable_piecewise_cuda_graph"])


@step(
    "sglang-127",
    "The prefill server's idea of the decode side",
    when="disaggregation_mode is prefill",
    then="disaggregation_decode_tp and _dp become the server's own where not set, disaggregation_prefill_pp pp_size",
    releases="0.4.7-0.5.9",
    source=_DISAGGREGATION,
    stage=Stage.DISAGGREGATION_LAST,
    sets=("disaggregation_decode_tp", "disaggregation_decode_dp", "disaggregation_prefill_pp"),
)
def other_side(launch: Launch) -> None:
    """Unless told, the other side looks the same."""
    if launch[_MODE] == "prefill":
        for flag, own in (("disaggregation_decode_tp", "tp_size"), ("disaggregation_decode_dp", "dp_size")):
            if launch.has(flag) and launch[flag] is None:
                launch[flag] = launch[own]
        if launch.has("disaggregation_prefill_pp"):
            launch["disaggregation_prefill_pp"] = launch["pp_size"]


@step(
    "sglang-128",
    "Spare slots on a decode server",
    when="disaggregation_mode is decode and disaggregation_decode_extra_slots is not set",
    then="twice the requested running requests per rank where those are at most 32, else 0",
    releases="0.5.12-",
    source=_DISAGGREGATION,
    stage=Stage.DISAGGREGATION_FIRST,
    sets=("disaggregation_decode_extra_slots",),
)
def spare_slots(launch: Launch) -> None:
    """Small servers keep slots for caches on the way; the cap of speculation comes later and does not count."""
    if launch[_MODE] != "decode" or launch["disaggregation_decode_extra_slots"] is not None:
        return
    running = launch["max_running_requests"]
    ranks = max(1, launch["dp_size"], launch["attn_dp_size"] or 1)
    per_rank = running // ranks if running is not None else None
    launch["disaggregation_decode_extra_slots"] = per_rank * 2 if per_rank is not None and per_rank <= 32 else 0


@step(
    "sglang-129",
    "Routing of requests",
    when="load_balance_method is auto",
    then="a prefill server follows the bootstrap room, any other goes round",
    releases="0.5.7-",
    source=_DISAGGREGATION,
    stage=Stage.PARALLEL_ALIASES,
    sets=("load_balance_method",),
)
def routing(launch: Launch) -> None:
    """Requests meet their prefill in one room."""
    if launch["load_balance_method"] == "auto":
        follows = launch[_MODE] == "prefill"
        launch["load_balance_method"] = "follow_bootstrap_room" if follows else "round_robin"
