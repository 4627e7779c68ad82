"""When the capture of CUDA graphs is on: what was asked, and what stands in its way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from analysis.resolve.base import Launch
from analysis.resolve.sglang.engine import ARGUMENTS, Stage, architecture, step
from analysis.resolve.sglang.graphs import (
    BREAKABLE,
    CONFIG,
    DISABLED,
    PIECEWISE,
    locked,
    phase,
    prefill_sizes,
    set_phase,
)
from analysis.resolve.sglang.models import is_multimodal, uses_latent_attention, uses_sparse_attention
from analysis.resolve.sglang.parallel import spreads_attention

_GRAPHS: Final = "srt/server_args.py; srt/arg_groups/cuda_graph_hook.py from 0.5.19"
_PIECEWISE_OFF: Final = "disable_piecewise_cuda_graph"

_SETTINGS: Final = (
    ("max_bs", None, "0.5.14"),
    ("bs", None, "0.5.14"),
    ("tc_compiler", "eager", "0.5.14"),
    ("full_prefill_max_req", None, "0.5.15"),
    ("full_prefill_prefix_chunk_tokens", None, "0.5.17"),
    ("max_context_size", None, "0.5.21"),
    ("max_seq_len", None, "0.5.21"),
)
"""Settings of a phase beside its backend, with their defaults and the first release that has them."""

_FLAGS: Final = (
    ("disable_cuda_graph", ("decode", "prefill"), "backend", DISABLED),
    ("disable_prefill_cuda_graph", ("prefill",), "backend", DISABLED),
    ("disable_decode_cuda_graph", ("decode",), "backend", DISABLED),
    ("cuda_graph_backend_decode", ("decode",), "backend", None),
    ("cuda_graph_backend_prefill", ("prefill",), "backend", None),
    ("cuda_graph_max_bs_decode", ("decode",), "max_bs", None),
    ("cuda_graph_max_bs_prefill", ("prefill",), "max_bs", None),
    ("cuda_graph_max_seq_len_prefill", ("prefill",), "max_seq_len", None),
    ("cuda_graph_bs_decode", ("decode",), "bs", None),
    ("cuda_graph_bs_prefill", ("prefill",), "bs", None),
    ("cuda_graph_tc_compiler", ("decode", "prefill"), "tc_compiler", None),
    ("cuda_graph_prefill_max_context", ("prefill",), "max_context_size", None),
)
"""Flags that set a phase: flag, phases, setting, and the value where the flag is a switch. Later ones win."""

_NO_PIECEWISE: Final = {
    "Qwen3NextForCausalLM": "",
    "BailingMoeV2_5ForCausalLM": "",
    "LLaDAModelLM": "",
    "DeepseekV32ForCausalLM": "0.5.13",
    "GlmMoeDsaForCausalLM": "0.5.13",
    "DeepseekV4ForCausalLM": "",
}
"""Targets whose prefill is not captured piecewise, with the release that ends it."""

_PIECEWISE_IMAGES: Final = {
    "Cohere2VisionForConditionalGeneration": "0.5.14",
    "KimiK25ForConditionalGeneration": "0.5.16",
    "MiniMaxM3SparseForCausalLM": "0.5.16",
    "MiniMaxM3SparseForConditionalGeneration": "0.5.16",
}
"""Multimodal targets whose prefill is captured piecewise, with the first release."""
_BREAKABLE_IMAGES: Final = {
    "Qwen3_5ForConditionalGeneration": "0.5.16",
    "Qwen3_5MoeForConditionalGeneration": "0.5.16",
    "InternS2MobiusForConditionalGeneration": "0.5.18",
    "KimiK25ForConditionalGeneration": "0.5.18",
    "KimiK3ForConditionalGeneration": "0.5.18",
    "MuseGlimmerForConditionalGeneration": "0.5.18",
    "Cohere2VisionForConditionalGeneration": "0.5.19",
    "PaddleOCRVLForConditionalGeneration": "0.5.19",
    "Glm5NextForConditionalGeneration": "0.5.20",
    "MiniMaxM3SparseForCausalLM": "0.5.22",
    "MiniMaxM3SparseForConditionalGeneration": "0.5.22",
    "Qwen4ExpForConditionalGeneration": "0.5.22",
    "MuseSparkForConditionalGeneration": "0.5.23",
}
"""The same for breakable graphs."""


@step(
    "sglang-137",
    "Graph flags become one",
    when="always",
    then="cuda_graph_config holds backend and sizes of both phases, from its own JSON, else from the single flags",
    releases="0.5.14-",
    source=_GRAPHS,
    stage=Stage.GRAPHS,
    sets=(CONFIG,),
)
def one_config(launch: Launch) -> None:
    """The nested flag wins over the single ones; what was set stays as set."""
    unset = {setting: value for setting, value, since in _SETTINGS if launch.since(since)}
    config: dict[str, dict[str, Any]] = {
        "decode": {"backend": "full", **unset},
        "prefill": {"backend": BREAKABLE if launch.since("0.5.15") else PIECEWISE, **unset},
    }
    chosen: set[tuple[str, str]] = set()

    def choose(name: str, setting: str, value: Any) -> None:
        config[name][setting] = value
        chosen.add((name, setting))

    for flag, phases, setting, switched in _FLAGS:
        if launch[flag]:
            for name in phases:
                choose(name, setting, switched or launch[flag])
    asked = launch.requested.get(CONFIG)
    for name, settings in asked.items() if isinstance(asked, dict) else ():
        for setting, value in settings.items():
            choose(name, setting, value)
    launch.notes["locked graph settings"] = chosen
    launch[CONFIG] = config


def _released(table: dict[str, str], launch: Launch) -> bool:
    since = table.get(architecture(launch))
    return since is not None and launch.since(since)


def _no_piecewise_model(launch: Launch) -> bool:
    until = _NO_PIECEWISE.get(architecture(launch))
    return until is not None and not (until and launch.since(until))


_PIECEWISE_OBSTACLES: Final[tuple[Callable[[Launch], Any], ...]] = (
    _no_piecewise_model,
    lambda launch: launch["speculative_algorithm"] is not None and not launch.since("0.5.11"),
    spreads_attention,
    lambda launch: launch["enable_torch_compile"],
    lambda launch: launch["pp_size"] > 1,
    lambda launch: launch["device"] == "cpu",
    lambda launch: launch["moe_a2a_backend"] != "none",
    lambda launch: launch["lora_paths"] or launch["enable_lora"],
    lambda launch: is_multimodal(launch) and not _released(_PIECEWISE_IMAGES, launch),
    lambda launch: "gguf" in (launch["load_format"], launch["quantization"]),
    lambda launch: launch["dllm_algorithm"] is not None,
    lambda launch: launch["cpu_offload_gb"] > 0 or launch["enable_hierarchical_cache"],
    lambda launch: launch["enable_deterministic_inference"],
    lambda launch: launch["disaggregation_mode"] != "null",
    lambda launch: launch["enable_symm_mem"],
    lambda launch: launch["enable_eplb"] or launch["expert_distribution_recorder_mode"] is not None,
    lambda launch: launch["attn_cp_size"] > 1,
    lambda launch: launch["debug_cuda_graph"],
    lambda launch: launch["enable_dsa_prefill_context_parallel"],
    lambda launch: (launch["dcp_size"] or 1) > 1,
)
"""What keeps prefill from being captured piecewise."""


@step(
    "sglang-138",
    "No piecewise prefill graphs",
    when="something stands in the way: DP attention, expert exchange, pipelines, LoRA, images, determinism, "
    "disaggregation, and others",
    then="disable_piecewise_cuda_graph is on",
    releases="0.5.10-0.5.13",
    source=_GRAPHS,
    stage=Stage.GRAPHS,
    sets=(_PIECEWISE_OFF,),
)
def piecewise_off(launch: Launch) -> None:
    """Piecewise capture is the default where nothing speaks against it."""
    if launch["enforce_piecewise_cuda_graph"]:
        launch[_PIECEWISE_OFF] = False
    elif any(obstacle(launch) for obstacle in _PIECEWISE_OBSTACLES):
        launch[_PIECEWISE_OFF] = True


def _exchange_unknown(launch: Launch) -> bool:
    known = ("none", "deepep", "megamoe", "flashinfer") if launch.since("0.5.17") else ("none",)
    return launch["moe_a2a_backend"] not in known


def _deepseek_v4(launch: Launch) -> bool:
    return architecture(launch) == "DeepseekV4ForCausalLM"


_BREAKABLE_OBSTACLES: Final[tuple[tuple[str, str, str, Callable[[Launch], Any]], ...]] = (
    ("MLA attention", "0.5.14", "0.5.17", uses_latent_attention),
    (
        "MLA attention (non-DSA)",
        "0.5.17",
        "0.5.18",
        lambda launch: uses_latent_attention(launch) and not uses_sparse_attention(launch),
    ),
    (
        "KDA hybrid linear attention",
        "0.5.20",
        "",
        lambda launch: (
            "linear_attn_config" in launch.target.text and architecture(launch) != "Glm5NextForConditionalGeneration"
        ),
    ),
    ("DeepSeek-V4 (heavy capture-pool memory pressure)", "0.5.15", "", _deepseek_v4),
    ("context parallel (attn_cp_size > 1)", "0.5.15", "", lambda launch: launch["attn_cp_size"] > 1),
    ("decode context parallel (dcp_size > 1)", "0.5.16", "", lambda launch: launch["dcp_size"] > 1),
    ("LoRA", "0.5.15", "0.5.17", lambda launch: launch["lora_paths"] or launch["enable_lora"]),
    ("two-batch overlap", "0.5.17", "", lambda launch: launch["enable_two_batch_overlap"]),
    ("MoE A2A backend", "0.5.15", "0.5.17", _exchange_unknown),
    ("unvalidated a2a backend", "0.5.17", "", _exchange_unknown),
    ("DP attention", "0.5.15", "0.5.17", spreads_attention),
    (
        "multimodal model",
        "0.5.15",
        "",
        lambda launch: is_multimodal(launch) and not _released(_BREAKABLE_IMAGES, launch),
    ),
)
"""What keeps prefill from breakable capture: the name in the line, first release, the release that ends it."""


@step(
    "sglang-139",
    "Pipelines do not capture prefill",
    when="pp_size above 1 and the prefill backend is not chosen",
    then="prefill is not captured",
    says="Disabling breakable prefill CUDA graph by default for pipeline parallelism. "
    "Set --cuda-graph-backend-prefill=breakable to opt in.",
    releases="0.5.19-",
    source=_GRAPHS,
    stage=Stage.GRAPHS,
    sets=(CONFIG,),
)
def pipelines_do_not_capture(launch: Launch) -> None:
    """Large buckets lose there."""
    open_choice = not locked(launch, "prefill", "backend") and phase(launch, "prefill")["backend"] == BREAKABLE
    if open_choice and launch["pp_size"] > 1:
        launch.announce()
        set_phase(launch, "prefill", backend=DISABLED)


@step(
    "sglang-140",
    "Piecewise for validated images",
    when="a multimodal target that piecewise capture was tried on",
    then="prefill is captured piecewise",
    says="Using tc_piecewise CUDA graph for validated multimodal decoder prefill.",
    releases="0.5.16-0.5.21",
    source=_GRAPHS,
    stage=Stage.GRAPHS,
    sets=(CONFIG,),
)
def piecewise_for_images(launch: Launch) -> None:
    """Until breakable capture was tried on it too."""
    if locked(launch, "prefill", "backend") or phase(launch, "prefill")["backend"] != BREAKABLE:
        return
    if not is_multimodal(launch) or not _released(_PIECEWISE_IMAGES, launch):
        return
    if launch.since("0.5.18") and _released(_BREAKABLE_IMAGES, launch):
        return
    launch.announce()
    set_phase(launch, "prefill", backend=PIECEWISE)


@step(
    "sglang-141",
    "No piecewise prefill graphs",
    when="the prefill backend is tc_piecewise unasked, and something stands in the way",
    then="prefill is not captured",
    releases="0.5.14-0.5.21",
    source=_GRAPHS,
    stage=Stage.GRAPHS,
    sets=(CONFIG,),
)
def piecewise_obstacles(launch: Launch) -> None:
    """The same obstacles as before 0.5.14."""
    if locked(launch, "prefill", "backend") or phase(launch, "prefill")["backend"] != PIECEWISE:
        return
    if any(obstacle(launch) for obstacle in _PIECEWISE_OBSTACLES):
        set_phase(launch, "prefill", backend=DISABLED)


@step(
    "sglang-100",
    "No breakable prefill graphs",
    when="the prefill backend is breakable unasked, and something stands in the way "
    "(two-batch overlap, an exchange backend, images; up to 0.5.16 also latent attention, LoRA, DP attention)",
    then="prefill is not captured",
    says="Breakable CUDA graph is incompatible with {}; disabling prefill CUDA graph.",
    releases="0.5.14-",
    source=_GRAPHS,
    stage=Stage.GRAPHS,
    sets=(CONFIG,),
)
def breakable_obstacles(launch: Launch) -> None:
    """The first obstacle is named."""
    if locked(launch, "prefill", "backend") or phase(launch, "prefill")["backend"] != BREAKABLE:
        return
    for name, since, until, stands in _BREAKABLE_OBSTACLES:
        if launch.since(since) and not (until and launch.since(until)) and stands(launch):
            launch.announce(name)
            set_phase(launch, "prefill", backend=DISABLED)
            return


@step(
    "sglang-142",
    "Captured prefill in eights",
    when="moe_a2a_backend deepep and breakable prefill graphs",
    then="captured token counts become multiples of 8",
    says="Breakable prefill CUDA graph with DeepEP requires bucket sizes divisible by 8; aligning {} -> {}.",
    releases="0.5.17-",
    source=_GRAPHS,
    stage=Stage.GRAPHS,
    sets=(CONFIG,),
)
def prefill_in_eights(launch: Launch) -> None:
    """Other sizes can hang the exchange while capturing."""
    prefill = phase(launch, "prefill")
    if launch["moe_a2a_backend"] != "deepep" or prefill["backend"] != BREAKABLE:
        return
    sizes = prefill["bs"]
    if sizes is None:
        sizes = prefill_sizes(launch, prefill["max_bs"] or 2048)
    aligned = sorted({(size + 7) // 8 * 8 for size in sizes})
    if aligned != sorted(sizes):
        launch.announce(sorted(sizes), aligned)
        set_phase(launch, "prefill", bs=aligned, max_bs=aligned[-1])


@step(
    "sglang-143",
    "Each server captures its own phase",
    when="disaggregation_mode is prefill or decode",
    then="the other phase is not captured, unless its backend was chosen",
    releases="0.5.16-",
    source=_GRAPHS,
    stage=Stage.GRAPHS,
    sets=(CONFIG,),
)
def own_phase(launch: Launch) -> None:
    """A prefill server does not decode, and the other way round."""
    other = {"prefill": "decode", "decode": "prefill"}.get(launch["disaggregation_mode"])
    if other is not None and not locked(launch, other, "backend"):
        set_phase(launch, other, backend=DISABLED)


@step(
    "sglang-144",
    "No piecewise prefill with bypassed top-k",
    when="moe_runner_backend flashinfer_trtllm or flashinfer_mxfp4 (not for GPT-OSS)",
    then="disable_piecewise_cuda_graph is on",
    says="Piecewise cuda graph is disabled for MoE runner backend '{}' "
    "(bypassed topk is incompatible with torch.compile).",
    releases="0.5.10-0.5.13",
    source=ARGUMENTS,
    stage=Stage.EXPERTS,
    sets=(_PIECEWISE_OFF,),
)
def bypassed_topk(launch: Launch) -> None:
    """The two runners choose experts in a kernel the compiler cannot see."""
    runner = launch["moe_runner_backend"]
    if launch["enforce_piecewise_cuda_graph"] or runner not in ("flashinfer_trtllm", "flashinfer_mxfp4"):
        return
    if architecture(launch) != "GptOssForCausalLM":
        launch.announce(runner)
        launch[_PIECEWISE_OFF] = True
