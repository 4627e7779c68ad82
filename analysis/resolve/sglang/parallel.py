"""Data, expert and pipeline parallelism."""

from __future__ import annotations

from typing import Final

from analysis.resolve.base import Launch
from analysis.resolve.sglang.engine import ARGUMENTS, OVERLAP_OFF, Stage, step
from analysis.resolve.sglang.graphs import CONFIG, DISABLED, locked, phase, prefill_sizes, set_phase

_PARALLEL: Final = "srt/server_args.py; srt/arg_groups/parallel_hook.py from 0.5.19"
_EXPERTS: Final = "srt/server_args.py; srt/arg_groups/moe_hook.py from 0.5.19"
_DP: Final = "enable_dp_attention"
_RANKS: Final = "attn_dp_size"
_CHUNK: Final = "chunked_prefill_size"

_EXPERT_ENGINES: Final = {
    "deepep": ("0.4.10", "DeepEP MoE"),
    "mooncake": ("0.5.3", "Mooncake MoE"),
    "ascend_fuseep": ("0.5.6", "Ascend fused EP MoE"),
    "flashinfer": ("0.5.9", "Flashinfer MoE A2A"),
    "mori": ("0.5.9", "MoRI MoE"),
    "nixl": ("0.5.10", "Nixl MoE"),
}
"""Ways experts exchange tokens, with the first release and the name in its line."""


def attention_ranks(launch: Launch) -> int:
    """Over how many data-parallel ranks attention is spread; 1 where it is not."""
    if launch.has(_RANKS):
        ranks: int = launch[_RANKS]
    else:
        ranks = launch["dp_size"] if launch[_DP] else 1
    return ranks


def spreads_attention(launch: Launch) -> bool:
    """Whether attention is data-parallel."""
    return launch[_RANKS] > 1 if launch.has(_RANKS) else bool(launch[_DP])


@step(
    "sglang-116",
    "DP attention by the old flags",
    when="enable_dp_attention is given",
    then="attn_dp_size takes the value of dp_size, and dp_size becomes 1",
    says="\x1b[1;33m'--enable-dp-attention' is deprecated and will be removed in a future release. "
    "Use '--attn-dp-size <dp-size>' instead.\x1b[0m",
    releases="0.5.22-",
    source=_PARALLEL,
    stage=Stage.PARALLEL_ALIASES,
    sets=(_RANKS, "dp_size"),
)
def old_dp_attention(launch: Launch) -> None:
    """The old pair of flags still works."""
    if not launch[_DP]:
        return
    launch.announce()
    if launch[_RANKS] == 1:
        launch[_RANKS] = launch["dp_size"]
        launch["dp_size"] = 1


@step(
    "sglang-117",
    "DP attention over one rank",
    when="dp_size is 1",
    then="enable_dp_attention and enable_dp_lm_head are off",
    releases="0.5.2-",
    source=_PARALLEL,
    stage=Stage.DATA_PARALLEL,
    sets=(_DP, "enable_dp_lm_head"),
)
def one_rank(launch: Launch) -> None:
    """One rank shares nothing."""
    ranks = max(launch["dp_size"], launch[_RANKS] if launch.has(_RANKS) else 1)
    if ranks == 1:
        launch[_DP] = False
        if launch.since("0.5.3"):
            launch["enable_dp_lm_head"] = False


@step(
    "sglang-118",
    "DP attention needs ranks",
    when="enable_dp_attention with dp_size 1",
    then="refused",
    releases="-0.5.1",
    source=_PARALLEL,
    stage=Stage.DATA_PARALLEL,
)
def ranks_missing(launch: Launch) -> None:
    """Before 0.5.2 one rank is an error."""
    if launch[_DP] and launch["dp_size"] <= 1:
        launch.reject("Please set a dp-size > 1. You can use 1 < dp-size <= tp-size ", "AssertionError")


@step(
    "sglang-119",
    "DP attention divides the tensor ranks",
    when="attention is data-parallel and tp_size is no multiple of its ranks",
    then="refused, with an empty message",
    source=_PARALLEL,
    stage=Stage.DATA_PARALLEL,
)
def ranks_divide(launch: Launch) -> None:
    """Each data-parallel rank gets the same number of GPUs."""
    if spreads_attention(launch) and launch["tp_size"] % attention_ranks(launch):
        launch.reject("", "AssertionError")


@step(
    "sglang-76",
    "DP attention is cautious",
    when="attention is data-parallel",
    then="schedule_conservativeness is multiplied by 0.3",
    source=_PARALLEL,
    stage=Stage.DATA_PARALLEL,
    sets=("schedule_conservativeness",),
)
def cautious(launch: Launch) -> None:
    """Each rank schedules for itself."""
    if spreads_attention(launch):
        launch["schedule_conservativeness"] = launch["schedule_conservativeness"] * 0.3


@step(
    "sglang-76",
    "DP attention splits the chunk",
    when="attention is data-parallel",
    then="chunked_prefill_size is divided by the ranks",
    says="DP attention is enabled. The chunked prefill size is adjusted to {after} to avoid MoE kernel issues. ",
    releases="-0.5.15",
    source=_PARALLEL,
    stage=Stage.DATA_PARALLEL,
    sets=(_CHUNK,),
)
@step(
    "sglang-76",
    "DP attention splits the chunk",
    when="attention is data-parallel",
    then="chunked_prefill_size is divided by the ranks",
    says="DP attention is enabled. chunked prefill size is adjusted from {before} to {after}.",
    releases="0.5.16-",
    source=_PARALLEL,
    stage=Stage.DATA_PARALLEL,
    sets=(_CHUNK,),
)
def split_chunk(launch: Launch) -> None:
    """The chunk of the server is shared by its ranks."""
    if spreads_attention(launch):
        before = launch[_CHUNK]
        after = before // attention_ranks(launch)
        launch.announce(before=before, after=after)
        launch[_CHUNK] = after


@step(
    "sglang-120",
    "Captured prefill follows the split chunk",
    when="attention is data-parallel and more prefill tokens are captured than a chunk has",
    then="prefill is captured up to the chunk",
    releases="0.5.16-",
    source=_PARALLEL,
    stage=Stage.DATA_PARALLEL,
    sets=(CONFIG,),
)
def split_capture(launch: Launch) -> None:
    """Nothing longer than a chunk comes."""
    if not spreads_attention(launch):
        return
    prefill, chunk = phase(launch, "prefill"), launch[_CHUNK]
    open_limit = prefill["backend"] != DISABLED and not locked(launch, "prefill", "max_bs")
    if open_limit and prefill["max_bs"] is not None and prefill["max_bs"] > chunk:
        set_phase(launch, "prefill", max_bs=chunk)
        if not locked(launch, "prefill", "bs"):
            set_phase(launch, "prefill", bs=prefill_sizes(launch, chunk))


@step(
    "sglang-121",
    "Head over all ranks",
    when="enable_tp_lm_head_all_to_all is not set",
    then="it is on for a decode server whose tensor ranks are all attention ranks",
    releases="0.5.18-",
    source=_PARALLEL,
    stage=Stage.DATA_PARALLEL,
    sets=("enable_tp_lm_head_all_to_all",),
)
def head_over_ranks(launch: Launch) -> None:
    """The head is exchanged where every rank holds a part."""
    if launch["enable_tp_lm_head_all_to_all"] is None:
        launch["enable_tp_lm_head_all_to_all"] = (
            launch["disaggregation_mode"] == "decode"
            and spreads_attention(launch)
            and launch["tp_size"] == attention_ranks(launch)
            and launch["attn_cp_size"] == 1
            and not launch["enable_dp_lm_head"]
        )


@step(
    "sglang-122",
    "Expert parallelism by the old flag",
    when="enable_ep_moe",
    then="ep_size becomes tp_size",
    says="EP MoE is enabled. The expert parallel size is adjusted to be the same as the tensor parallel size[{}].",
    releases="-0.4.9",
    source=_EXPERTS,
    stage=Stage.PARALLEL_ALIASES,
    sets=("ep_size",),
)
@step(
    "sglang-122",
    "Expert parallelism by the old flag",
    when="enable_ep_moe",
    then="ep_size becomes tp_size",
    says="\x1b[33mNOTE: --enable-ep-moe is deprecated. "
    "Please set `--ep-size` to the same value as `--tp-size` instead.\x1b[0m",
    releases="0.4.10-0.5.2",
    source=_EXPERTS,
    stage=Stage.PARALLEL_ALIASES,
    sets=("ep_size",),
)
def old_expert_flag(launch: Launch) -> None:
    """A flag that was renamed."""
    if launch["enable_ep_moe"]:
        launch.announce(launch["tp_size"])
        launch["ep_size"] = launch["tp_size"]


@step(
    "sglang-155",
    "DeepEP by the old flag",
    when="enable_deepep_moe",
    then="moe_a2a_backend becomes deepep",
    says="\x1b[33mNOTE: --enable-deepep-moe is deprecated. Please set `--moe-a2a-backend` to 'deepep' instead.\x1b[0m",
    releases="0.4.10-0.5.2",
    source=_EXPERTS,
    stage=Stage.PARALLEL_ALIASES,
    sets=("moe_a2a_backend",),
)
def old_deepep_flag(launch: Launch) -> None:
    """A flag that was renamed."""
    if launch["enable_deepep_moe"]:
        launch.announce()
        launch["moe_a2a_backend"] = "deepep"


@step(
    "sglang-123",
    "DeepEP auto under DP attention",
    when="enable_deepep_moe, deepep_mode auto and enable_dp_attention",
    then="refused",
    releases="-0.4.8",
    source=_EXPERTS,
    stage=Stage.EXPERTS,
)
def deepep_auto_dp(launch: Launch) -> None:
    """The early releases cannot switch modes per batch under DP attention."""
    if launch["enable_deepep_moe"] and launch["deepep_mode"] == "auto" and launch[_DP]:
        launch.reject("DeepEP MoE `auto` mode is not supported with DP Attention.", "AssertionError")


@step(
    "sglang-82",
    "Experts over all ranks",
    when="experts exchange tokens (enable_deepep_moe, moe_a2a_backend)",
    then="ep_size becomes tp_size",
    says="{name} is enabled. The expert parallel size is adjusted to be the same as the tensor parallel size[{ranks}].",
    releases="-0.5.16",
    source=_EXPERTS,
    stage=Stage.EXPERTS,
    sets=("ep_size",),
)
@step(
    "sglang-82",
    "Experts over all ranks",
    when="experts exchange tokens (moe_a2a_backend)",
    then="ep_size becomes tp_size",
    says="{backend} MoE is enabled. The expert parallel size is adjusted from {before} to the tensor parallel size "
    "[{ranks}].",
    releases="0.5.17-",
    source=_EXPERTS,
    stage=Stage.EXPERTS,
    sets=("ep_size",),
)
def experts_over_ranks(launch: Launch) -> None:
    """Every rank holds experts."""
    backend = "deepep" if launch["enable_deepep_moe"] else launch["moe_a2a_backend"]
    since, name = _EXPERT_ENGINES.get(backend, ("", ""))
    if since and (launch.since(since) or backend == "deepep"):
        ranks = launch["tp_size"]
        if launch["ep_size"] != ranks or not launch.since("0.5.17"):
            launch.announce(name=name, backend=backend, before=launch["ep_size"], ranks=ranks)
        launch["ep_size"] = ranks


@step(
    "sglang-83",
    "No graphs in normal mode",
    when="DeepEP with deepep_mode normal",
    then="CUDA graphs are turned off",
    says="Cuda graph is disabled because deepep_mode=`normal`",
    releases="0.4.6-",
    source=_EXPERTS,
    stage=Stage.EXPERTS,
    sets=("disable_cuda_graph", CONFIG),
)
def deepep_normal(launch: Launch) -> None:
    """Normal mode has dynamic shapes."""
    if (launch["enable_deepep_moe"] or launch["moe_a2a_backend"] == "deepep") and launch["deepep_mode"] == "normal":
        launch.announce()
        if launch.since("0.5.14"):
            set_phase(launch, "decode", backend=DISABLED)
            set_phase(launch, "prefill", backend=DISABLED)
        else:
            launch["disable_cuda_graph"] = True


@step(
    "sglang-124",
    "Recorder size",
    when="expert_distribution_recorder_buffer_size is not set",
    then="it becomes eplb_rebalance_num_iterations",
    releases="0.4.7-",
    source=_PARALLEL,
    stage=Stage.EXPERTS,
    sets=("expert_distribution_recorder_buffer_size",),
)
def recorder_size(launch: Launch) -> None:
    """The recorder holds as much as one rebalance reads."""
    if launch["expert_distribution_recorder_buffer_size"] is None:
        launch["expert_distribution_recorder_buffer_size"] = launch["eplb_rebalance_num_iterations"]


@step(
    "sglang-125",
    "Dispatch by placement",
    when="ep_dispatch_algorithm is not set and experts are placed (enable_eplb; up to 0.5.5 always)",
    then="it becomes static",
    says="EPLB is enabled or init_expert_location is provided. ep_dispatch_algorithm is configured.",
    releases="0.4.7-0.4.10",
    source=_PARALLEL,
    stage=Stage.EXPERTS,
    sets=("ep_dispatch_algorithm",),
)
@step(
    "sglang-125",
    "Dispatch by placement",
    when="ep_dispatch_algorithm is not set and experts are placed (enable_eplb; up to 0.5.5 always)",
    then="it becomes static; from 0.5.23 dynamic where no exchange backend routes tokens",
    releases="0.5.1-",
    source=_PARALLEL,
    stage=Stage.EXPERTS,
    sets=("ep_dispatch_algorithm",),
)
def dispatch(launch: Launch) -> None:
    """Placed experts are dispatched to by a fixed plan."""
    placed = launch["enable_eplb"]
    if launch.has("init_expert_location"):
        unplaced = "trivial" if launch.since("0.5.6") else None
        placed = placed or launch["init_expert_location"] != unplaced
    if placed and launch["ep_dispatch_algorithm"] is None:
        launch.announce()
        alike = launch.since("0.5.23") and launch["moe_a2a_backend"] == "none"
        launch["ep_dispatch_algorithm"] = "dynamic" if alike else "static"


@step(
    "sglang-154",
    "Quantization of the FlashInfer Cutlass experts",
    when="moe_runner_backend flashinfer_cutlass with another quantization than it has kernels for",
    then="refused",
    releases="0.5.1-",
    source=_EXPERTS,
    stage=Stage.EXPERTS,
)
def cutlass_experts(launch: Launch) -> None:
    """Few quantizations have these kernels; none at all (bfloat16) from 0.5.6."""
    quantization = launch["quantization"]
    if launch["moe_runner_backend"] != "flashinfer_cutlass":
        return
    if not launch.since("0.5.6"):
        if quantization != "modelopt_fp4":
            name = "Flashinfer Cutlass MOE" if launch.since("0.5.5") else "Flashinfer MOE"
            launch.reject(f"modelopt_fp4 quantization is required for {name}", "AssertionError")
        return
    able = ["modelopt_fp4", "modelopt_fp8", *(["modelopt_mixed"] if launch.since("0.5.10") else [])]
    if quantization is not None and quantization not in able:
        launch.reject(
            f"Invalid quantization '{quantization}'. \nFlashInfer Cutlass MOE supports only: "
            f"{', '.join(map(repr, able))}, or bfloat16 (None).",
            "AssertionError",
        )


@step(
    "sglang-13",
    "Draft experts as the target's",
    when="speculative_moe_runner_backend is not set",
    then="it becomes moe_runner_backend; auto where the draft cannot use that",
    releases="0.5.7-",
    source=_EXPERTS,
    stage=Stage.ALGORITHM,
    sets=("speculative_moe_runner_backend",),
)
def draft_experts(launch: Launch) -> None:
    """The draft runs its experts as the target does, with a few exceptions."""
    flag, runner = "speculative_moe_runner_backend", launch["moe_runner_backend"]
    if launch[flag] is not None:
        return
    unfit = ("flashinfer_trtllm", "flashinfer_trtllm_routed") if launch.since("0.5.10") else ("flashinfer_trtllm",)
    if not launch.since("0.5.12") and runner in unfit:
        runner = "auto"
    elif launch.since("0.5.20") and runner == "flashinfer_megamoe":
        runner = "flashinfer_trtllm"
    elif launch.since("0.5.20") and runner.startswith("lora_"):
        runner = "auto"
    launch[flag] = runner


@step(
    "sglang-67",
    "Pipelines do not overlap",
    when="pp_size above 1",
    then="the overlap scheduler is turned off",
    says="Pipeline parallelism is incompatible with overlap schedule.",
    releases="0.4.6-",
    source=ARGUMENTS,
    stage=Stage.PIPELINE,
    sets=(OVERLAP_OFF,),
)
def pipeline(launch: Launch) -> None:
    """Stages pass on batches in order."""
    if launch["pp_size"] > 1:
        launch.announce()
        launch[OVERLAP_OFF] = True
