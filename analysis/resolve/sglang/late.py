"""Defaults that are filled in late or depend on little."""

from __future__ import annotations

from typing import Any, Final

from analysis.resolve.base import Launch
from analysis.resolve.sglang.engine import ARGUMENTS, Stage, architecture, step
from analysis.resolve.sglang.parallel import spreads_attention
from collector.domain.arguments import Value
from collector.domain.drafts import ModelConfig

_FILLED: Final[dict[str, tuple[str, Value, Value]]] = {
    # flag: first release, what counts as not set, what it becomes
    "custom_weight_loader": ("0.4.7", None, []),
    "mm_process_config": ("0.5.6", None, {}),
    "mamba_scheduler_strategy": ("0.5.7", "auto", "no_buffer"),
    "mm_feature_transport": ("0.5.16", None, "cpu"),
    "encoder_transfer_backend": ("0.5.18", "auto", "zmq_to_scheduler"),
    "grpc_worker_threads": ("0.5.19", None, 4),
    "dcp_comm_backend": ("0.5.20", None, "ag_rs"),
    "prefill_decode_interval": ("0.5.20", None, 0),
    "mamba_full_memory_ratio": ("0.5.20", None, 0.9),
    "swa_full_tokens_ratio": ("0.5.20", None, 0.8),
    "enable_tf32_matmul": ("0.5.23", None, False),
    "mm_enable_dp_encoder": ("0.5.23", None, False),
}

_WATCHED: Final = {
    "_speculative_draft_quantization_explicitly_set": "speculative_draft_model_quantization",
    "_swa_full_tokens_ratio_explicitly_set": "swa_full_tokens_ratio",
}
"""Notes the engine keeps beside its flags: whether the user gave one."""

_FUSED_SINCE: Final = {
    "DeepseekV3ForCausalLM": "0.5.7",
    "GptOssForCausalLM": "0.5.7",
    "Glm4MoeForCausalLM": "0.5.7",
    "Qwen3MoeForCausalLM": "0.5.7",
    "Glm4MoeLiteForCausalLM": "0.5.8",
    "KimiK25ForConditionalGeneration": "0.5.9",
    "DeepseekV32ForCausalLM": "0.5.10",
    "GlmMoeDsaForCausalLM": "0.5.10",
    "Qwen3NextForCausalLM": "0.5.10",
    "Qwen3_5MoeForConditionalGeneration": "0.5.10",
    "Qwen3_5ForConditionalGeneration": "0.5.10",
    "MistralLarge3ForCausalLM": "0.5.14",
    "Qwen3VLMoeForConditionalGeneration": "0.5.14",
    "NemotronHForCausalLM": "0.5.14",
}
"""Targets whose all-reduce is fused unasked, with the first release."""
_FUSION: Final = "flashinfer_allreduce_fusion_backend"
_FUSION_SWITCH: Final = "enable_flashinfer_allreduce_fusion"
_NO_FUSION: Final = "enforce_disable_flashinfer_allreduce_fusion"

_REDUCE_ALONE: Final = (
    "KimiK3ForConditionalGeneration",
    "KimiK3LinearForCausalLM",
    "Qwen3ForCausalLM",
    "Qwen3ForSequenceClassification",
    "Qwen3Model",
    "Qwen3ForRewardModel",
    "MossVLForCausalLM",
    "MossVLForConditionalGeneration",
    "Qwen4ExpForConditionalGeneration",
)
_REDUCE_SCATTERED: Final = (
    "BailingMoELinearForCausalLM",
    "BailingMoeV2_5ForCausalLM",
    "LongcatFlashForCausalLM",
    "LongcatFlashForCausalLMNextN",
    "Step3VLForConditionalGeneration",
)


@step(
    "sglang-135",
    "Filled in where not set",
    when="one of: " + ", ".join(_FILLED),
    then="a fixed value, by release",
    source=ARGUMENTS,
    stage=Stage.LOADING,
    sets=tuple(_FILLED),
)
def filled(launch: Launch) -> None:
    """Values that follow from nothing."""
    for flag, (since, unset, value) in _FILLED.items():
        if launch.since(since) and launch.has(flag) and launch[flag] == unset:
            launch[flag] = value


@step(
    "sglang-153",
    "Images between processes",
    when="mm_feature_transport is not set, on one node without disaggregation",
    then="it becomes cuda_ipc",
    releases="0.5.17",
    source=ARGUMENTS,
    stage=Stage.MODEL,
    sets=("mm_feature_transport",),
)
def images_by_ipc(launch: Launch) -> None:
    """One release shares them on the GPU unasked."""
    alone = launch["nnodes"] == 1 and launch["disaggregation_mode"] == "null" and not launch["encoder_only"]
    if launch["mm_feature_transport"] is None and alone and launch["device"] == "cuda":
        launch["mm_feature_transport"] = "cuda_ipc"


@step(
    "sglang-147",
    "Cache on the host",
    when="hicache_ratio is not set",
    then="it becomes 2 times the cache on the GPU (1.2 as a mere buffer, from 0.5.21), except on a decode server",
    releases="0.5.18-",
    source="srt/server_args.py; srt/arg_groups/hicache_hook.py from 0.5.19",
    stage=Stage.PARALLEL_ALIASES,
    sets=("hicache_ratio",),
)
def host_cache(launch: Launch) -> None:
    """A decode server keeps no second cache."""
    if launch["hicache_ratio"] is None and launch["disaggregation_mode"] != "decode":
        launch["hicache_ratio"] = 1.2 if launch["hicache_host_memory_mode"] == "buffer_only" else 2.0


@step(
    "sglang-148",
    "What the user gave",
    when="always",
    then="notes whether the draft's quantization and the share of full attention were given",
    releases="0.5.18-",
    source=ARGUMENTS,
    stage=Stage.LOADING,
    sets=tuple(_WATCHED),
)
def what_was_given(launch: Launch) -> None:
    """Later stages treat a given value and a filled one differently."""
    for note, flag in _WATCHED.items():
        if launch.has(note):
            launch[note] = launch.given(flag)


@step(
    "sglang-149",
    "Fused all-reduce unasked",
    when="a mixture-of-experts target with a fused path, on Hopper or SM100 but not H20, one node, "
    "no DP attention, no exchange backend",
    then="FlashInfer's all-reduce fusion is on",
    releases="0.5.7-0.5.9",
    source=ARGUMENTS,
    stage=Stage.MODEL,
    sets=(_FUSION_SWITCH,),
)
@step(
    "sglang-149",
    "Fused all-reduce unasked",
    when="a mixture-of-experts target with a fused path, on Hopper or SM100 (not H20, up to 0.5.13), one node, "
    "no DP attention, no exchange backend, several ranks",
    then="FlashInfer's all-reduce fusion is on",
    says="Auto-enabling FlashInfer AllReduce Fusion on SM90/SM10X for {}",
    releases="0.5.10-0.5.22",
    source="srt/server_args.py; srt/arg_groups/overrides.py from 0.5.19",
    stage=Stage.MODEL,
    sets=(_FUSION, _FUSION_SWITCH),
)
@step(
    "sglang-149",
    "Fused all-reduce unasked",
    when="a mixture-of-experts target with a fused path, on Hopper or SM100, one node (more on SM100), "
    "no DP attention, no exchange backend, several ranks",
    then="FlashInfer's all-reduce fusion is on",
    says="Auto-enabling FlashInfer AllReduce Fusion (auto) for {}",
    releases="0.5.23-",
    source="srt/arg_groups/overrides.py",
    stage=Stage.MODEL,
    sets=(_FUSION,),
)
def fused(launch: Launch) -> None:
    """Known targets get it where it was measured to pay."""
    since = _FUSED_SINCE.get(architecture(launch))
    if since is None or not launch.since(since):
        return
    several = launch["tp_size"] > 1 or not launch.since("0.5.10")
    if not several or spreads_attention(launch) or launch["moe_a2a_backend"] != "none":
        return
    gpu = launch.gpu
    if gpu.capability[0] not in (9, 10) or (launch["nnodes"] > 1 and gpu.capability[0] == 9):
        return
    if launch.since("0.5.14"):
        if launch[_FUSION] is None:
            launch.announce(architecture(launch))
            launch[_FUSION] = "auto"
    elif gpu.name != "h20" and not launch[_FUSION_SWITCH]:
        launch.announce(architecture(launch))
        launch[_FUSION_SWITCH] = True


@step(
    "sglang-150",
    "No fusion with deterministic inference",
    when="enable_deterministic_inference",
    then="enforce_disable_flashinfer_allreduce_fusion is on",
    releases="0.5.12-",
    source="srt/server_args.py; srt/arg_groups/model_hook.py from 0.5.19",
    stage=Stage.MODEL,
    sets=(_NO_FUSION,),
)
def no_fusion_when_deterministic(launch: Launch) -> None:
    """The fused sum depends on the batch."""
    if launch["enable_deterministic_inference"]:
        launch[_NO_FUSION] = True


@step(
    "sglang-151",
    "No fusion by flag",
    when="enforce_disable_flashinfer_allreduce_fusion",
    then="FlashInfer's all-reduce fusion is off",
    says="FlashInfer allreduce fusion is forcibly disabled via --enforce-disable-flashinfer-allreduce-fusion.",
    releases="0.5.10-",
    source="srt/server_args.py; srt/arg_groups/overrides.py from 0.5.19",
    stage=Stage.MODEL,
    sets=(_FUSION, _FUSION_SWITCH),
)
def no_fusion(launch: Launch) -> None:
    """The flag wins over what the engine knows of the target."""
    if launch[_NO_FUSION]:
        launch.announce()
        if launch.since("0.5.14"):
            launch[_FUSION] = None
        else:
            launch[_FUSION_SWITCH] = False


@step(
    "sglang-152",
    "Sums at layer boundaries",
    when="boundary_reduction is auto",
    then="ar, rsv or rs+rsv by architecture; the draft's own by its architecture",
    releases="0.5.21-",
    source="srt/arg_groups/boundary_reduction.py",
    stage=Stage.LOADING,
    sets=("boundary_reduction", "speculative_boundary_reduction"),
)
def boundary_sums(launch: Launch) -> None:
    """Each model is summed as it was tried."""
    asked = launch["boundary_reduction"]
    target = _reduction(launch.target) if asked == "auto" else asked
    own_draft = launch["speculative_algorithm"] is not None and launch["speculative_draft_model_path"] not in (
        None,
        launch["model_path"],
    )
    draft = _reduction(launch.draft) if asked == "auto" and own_draft else target
    launch["boundary_reduction"] = target
    launch["speculative_boundary_reduction"] = draft


def _reduction(model: ModelConfig) -> str:
    return _reduction_of(model.raw)


def _reduction_of(raw: Any) -> str:
    listed = raw.get("architectures")
    names = [name for name in listed if isinstance(name, str)] if isinstance(listed, list) else []
    if any(name in _REDUCE_SCATTERED for name in names):
        return "rsv"
    if any(name in _REDUCE_ALONE for name in names) or raw.get("model_type") in ("qwen3", "qwen3_vl_text"):
        return "ar"
    nested = next((raw[key] for key in ("text_config", "llm_config", "language_config") if key in raw), None)
    return _reduction_of(nested) if isinstance(nested, dict) else "rs+rsv"
