"""Targets that the engine treats in a way of their own."""

from __future__ import annotations

from typing import Final

from analysis.resolve.base import Launch, Unsettled
from analysis.resolve.sglang.engine import ALGORITHM, ARGUMENTS, OVERLAP_OFF, TOPK, Stage, architecture, step
from analysis.resolve.sglang.models import knows_architecture, uses_sparse_attention

_MODEL: Final = "srt/server_args.py; srt/arg_groups/model_hook.py and overrides.py from 0.5.19"
_BACKEND: Final = "attention_backend"
_RADIX_OFF: Final = "disable_radix_cache"
_MULTI: Final = "enable_multi_layer_eagle"

_HYBRID: Final = {
    "Qwen3NextForCausalLM": "0.5.5",
    "FalconH1ForCausalLM": "0.5.6",
    "JetNemotronForCausalLM": "0.5.6",
    "JetVLMForConditionalGeneration": "0.5.6",
    "NemotronHForCausalLM": "0.5.6",
}
"""Targets with recurrent layers, with the first release that knows."""

_OWN_WAYS: Final = {
    "GptOssForCausalLM": "0.5.1",
    "Gemma2ForCausalLM": "0.5.1",
    "Gemma3ForCausalLM": "0.5.1",
    "Gemma3ForConditionalGeneration": "0.5.1",
    "Gemma3nForCausalLM": "0.5.1",
    "Gemma3nForConditionalGeneration": "0.5.1",
    "Llama4ForCausalLM": "0.5.4",
    "Llama4ForConditionalGeneration": "0.5.4",
    "DeepseekV32ForCausalLM": "0.5.3",
    "KimiLinearForCausalLM": "0.5.4",
    "Olmo2ForCausalLM": "0.5.4",
    "MistralLarge3ForCausalLM": "0.5.6",
    "PixtralForConditionalGeneration": "0.5.6",
    "Qwen3NextForCausalLM": "0.5.7",
    "FalconH1ForCausalLM": "0.5.7",
    "JetNemotronForCausalLM": "0.5.7",
    "JetVLMForConditionalGeneration": "0.5.7",
    "NemotronHForCausalLM": "0.5.7",
    "MiMoV2FlashForCausalLM": "0.5.7",
    "BailingMoeV2_5ForCausalLM": "0.5.9",
    "Exaone4ForCausalLM": "0.5.9",
    "ExaoneMoEForCausalLM": "0.5.9",
    "GlmMoeDsaForCausalLM": "0.5.9",
    "GraniteMoeHybridForCausalLM": "0.5.9",
    "Lfm2ForCausalLM": "0.5.9",
    "Qwen3_5ForConditionalGeneration": "0.5.9",
    "Qwen3_5MoeForConditionalGeneration": "0.5.9",
    "Step3p5ForCausalLM": "0.5.9",
    "Gemma4ForConditionalGeneration": "0.5.11",
    "MiMoV2ForCausalLM": "0.5.11",
    "MossVLForConditionalGeneration": "0.5.11",
    "DeepseekV4ForCausalLM": "0.5.12",
    "InternS2PreviewForConditionalGeneration": "0.5.12",
    "MiniCPMV4_6ForConditionalGeneration": "0.5.12",
    "Gemma4ForCausalLM": "0.5.13",
    "Gemma4UnifiedForConditionalGeneration": "0.5.13",
    "NemotronHPuzzleForCausalLM": "0.5.13",
    "Step3p7ForConditionalGeneration": "0.5.13",
    "ZayaForCausalLM": "0.5.14",
    "MiniMaxM2ForCausalLM": "0.5.15",
    "HrmTextForCausalLM": "0.5.16",
    "InklingForConditionalGeneration": "0.5.16",
    "LongcatFlashForCausalLM": "0.5.16",
    "MiniMaxM3SparseForCausalLM": "0.5.16",
    "MiniMaxM3SparseForConditionalGeneration": "0.5.16",
    "KimiK3ForConditionalGeneration": "0.5.17",
    "Lfm2MoeForCausalLM": "0.5.17",
    "InternS2MobiusForConditionalGeneration": "0.5.18",
    "MuseGlimmerForCausalLM": "0.5.18",
    "MuseGlimmerForConditionalGeneration": "0.5.18",
    "Cohere2MoeForCausalLM": "0.5.19",
    "Cohere2VisionForConditionalGeneration": "0.5.19",
    "Dots3NoteForCausalLM": "0.5.19",
    "MiniCPMForCausalLM": "0.5.19",
    "MiniCPMSALAForCausalLM": "0.5.19",
    "Glm5NextForConditionalGeneration": "0.5.20",
    "HYV4ForCausalLM": "0.5.20",
    "Qwen4ExpForConditionalGeneration": "0.5.20",
    "BailingMoeV3ForCausalLM": "0.5.21",
    "BailingMoeV3VLForConditionalGeneration": "0.5.21",
    "DiffusionGemmaForBlockDiffusion": "0.5.21",
    "GigaChat35ForCausalLM": "0.5.21",
    "IQuestQ1ForCausalLM": "0.5.21",
    "Ernie4_5_VLMoeForConditionalGeneration": "0.5.22",
    "ExaoneMoeForCausalLM": "0.5.22",
    "BeamForCausalLM": "0.5.23",
    "MiniCPMV4_7ForConditionalGeneration": "0.5.23",
    "MuseSparkForConditionalGeneration": "0.5.23",
}
"""Targets whose own treatment is not followed here, with the first release that has one."""

_RECURRENT: Final = (
    "Qwen3NextForCausalLM",
    "FalconH1ForCausalLM",
    "JetNemotronForCausalLM",
    "JetVLMForConditionalGeneration",
    "NemotronHForCausalLM",
    "NemotronHPuzzleForCausalLM",
    "KimiLinearForCausalLM",
    "KimiK3ForConditionalGeneration",
    "BailingMoeV2_5ForCausalLM",
    "BailingMoeV3ForCausalLM",
    "BailingMoeV3VLForConditionalGeneration",
    "GraniteMoeHybridForCausalLM",
    "Lfm2ForCausalLM",
    "Lfm2MoeForCausalLM",
    "Qwen3_5ForConditionalGeneration",
    "Qwen3_5MoeForConditionalGeneration",
    "Qwen4ExpForConditionalGeneration",
    "InternS2PreviewForConditionalGeneration",
    "InternS2MobiusForConditionalGeneration",
    "MiniCPMV4_6ForConditionalGeneration",
    "MiniCPMV4_7ForConditionalGeneration",
    "MiniCPMSALAForCausalLM",
    "ZayaForCausalLM",
    "GigaChat35ForCausalLM",
)
"""Those of them with recurrent layers, whose cache decides about overlap."""

_LATENT_ON_SM100: Final = {"DeepseekV3ForCausalLM": "0.5.3", "KimiK25ForConditionalGeneration": "0.5.9"}
"""Targets that get trtllm_mla on SM100, with the first release."""


def _since(launch: Launch, table: dict[str, str]) -> bool:
    since = table.get(architecture(launch))
    return since is not None and launch.since(since)


@step(
    "sglang-156",
    "Targets with ways of their own",
    when="the release treats the target's architecture, or the vendor of the GPU, in a way that is not followed here",
    then="what it decides depends on that",
    releases="0.5.1-",
    source=_MODEL,
    stage=Stage.MODEL,
    sets=(
        _BACKEND,
        "page_size",
        _RADIX_OFF,
        "moe_runner_backend",
        "quantization",
        "kv_cache_dtype",
        "dtype",
        "swa_full_tokens_ratio",
        "mamba_scheduler_strategy",
        "mamba_radix_cache_strategy",
        "disable_hybrid_swa_memory",
        "chunked_prefill_size",
    ),
)
def own_ways(launch: Launch) -> None:
    """Better no prediction than a wrong one."""
    if launch.vendor_is("amd"):
        raise Unsettled("what SGLang does on AMD GPUs, which is not followed here")
    if _since(launch, _OWN_WAYS) or (uses_sparse_attention(launch) and launch.since("0.5.3")):
        raise Unsettled(f"what SGLang does for {architecture(launch)}, which is not followed here")


@step(
    "sglang-70",
    "Recurrent targets schedule by their cache",
    when="a target with recurrent layers",
    then="overlap depends on how its states are cached",
    releases="0.5.7-",
    source=_MODEL,
    stage=Stage.MODEL,
    sets=(OVERLAP_OFF,),
)
def recurrent_cache(launch: Launch) -> None:
    """The plain cache of states excludes overlap; the one with spare buffers does not."""
    if _since(launch, _OWN_WAYS) and architecture(launch) in _RECURRENT:
        raise Unsettled(f"how the states of {architecture(launch)} are cached")


@step(
    "sglang-69",
    "Recurrent targets do not overlap",
    when="a target with recurrent layers and the radix cache on",
    then="the overlap scheduler is turned off; EAGLE with the second worker turns it on again later",
    says="Disabling overlap schedule since MambaRadixCache is not compatible with overlap schedule currently, "
    "try to use --disable-radix-cache if overlap schedule is necessary",
    releases="0.5.5-0.5.6",
    source=ARGUMENTS,
    stage=Stage.MODEL,
    sets=(OVERLAP_OFF,),
)
def recurrent_overlap(launch: Launch) -> None:
    """The cache of recurrent states is not built for overlap."""
    if _since(launch, _HYBRID) and not launch[_RADIX_OFF]:
        launch.announce()
        launch[OVERLAP_OFF] = True


@step(
    "sglang-71",
    "Recurrent targets draft without prefixes",
    when="a target with recurrent layers, an algorithm drafts, and the radix cache is on",
    then="the radix cache is turned off",
    says="Disabling radix cache since speculative decoding for {} is not supported with radix cache yet.",
    releases="0.5.9",
    source=ARGUMENTS,
    stage=Stage.MODEL,
    sets=(_RADIX_OFF,),
)
def recurrent_prefixes(launch: Launch) -> None:
    """Rejected drafts leave no state to go back to."""
    if _since(launch, _HYBRID) and launch[ALGORITHM] is not None and not launch.requested.get(_RADIX_OFF):
        launch.announce(architecture(launch))
        launch[_RADIX_OFF] = True


@step(
    "sglang-157",
    "Latent attention on SM100",
    when="DeepSeek-V3 or Kimi-K2.5 on SM100 and no attention backend is given",
    then="trtllm_mla",
    says="Use trtllm_mla as attention backend on sm100 for DeepseekV3ForCausalLM",
    releases="0.5.3-",
    source=_MODEL,
    stage=Stage.MODEL,
    sets=(_BACKEND,),
)
def latent_on_sm100(launch: Launch) -> None:
    """Blackwell has kernels of its own."""
    if not _since(launch, _LATENT_ON_SM100):
        return
    given = (_BACKEND, "prefill_attention_backend", "decode_attention_backend")
    if all(launch[flag] is None for flag in given) and launch.gpu.capability[0] == 10:
        launch.announce()
        launch[_BACKEND] = "trtllm_mla"


@step(
    "sglang-158",
    "Experts on SM100",
    when="a mixture-of-experts target on SM100, no exchange backend, moe_runner_backend auto",
    then="runner and quantization follow the checkpoint",
    releases="0.5.3-",
    source=_MODEL,
    stage=Stage.MODEL,
    sets=("moe_runner_backend", "quantization"),
)
def experts_on_sm100(launch: Launch) -> None:
    """The runner is chosen by how the weights are stored."""
    if launch["moe_runner_backend"] != "auto" or launch["moe_a2a_backend"] not in (None, "none"):
        return
    if launch.target.experts is not None and knows_architecture(launch) and launch.gpu.capability[0] == 10:
        raise Unsettled("how the checkpoint's experts are quantized")


@step(
    "sglang-104",
    "Several draft layers",
    when="MiMo-V2-Flash (Step-3.5 from 0.5.9) with EAGLE",
    then="enable_multi_layer_eagle is on; up to 0.5.10 the second worker is forced too",
    says="Enable multi-layer EAGLE speculative decoding for {} model.",
    releases="0.5.7-",
    source=_MODEL,
    stage=Stage.MODEL,
    sets=(_MULTI,),
)
def several_layers(launch: Launch) -> None:
    """Each draft layer predicts one token further."""
    name = architecture(launch)
    names = {"MiMoV2FlashForCausalLM": "0.5.7", "Step3p5ForCausalLM": "0.5.9", "MiMoV2ForCausalLM": "0.5.11"}
    if launch[ALGORITHM] == "EAGLE" and _since(launch, names):
        launch.announce("MiMoV2" if launch.since("0.5.11") and name.startswith("MiMoV2") else name)
        launch[_MULTI] = True
        if not launch.since("0.5.11"):
            launch.notes["second worker"] = True


@step(
    "sglang-105",
    "DeepSeek-V4 drafts with few",
    when="DeepSeek-V4 with an algorithm other than EAGLE (DSPARK too, from 0.5.16) or EAGLE with topk other than 1",
    then="refused",
    releases="0.5.12-",
    source="srt/arg_groups/deepseek_v4_hook.py",
    stage=Stage.MODEL,
)
def deepseek_v4(launch: Launch) -> None:
    """Its attention verifies chains only."""
    algorithm, name = launch[ALGORITHM], architecture(launch)
    if name != "DeepseekV4ForCausalLM" or algorithm is None:
        return
    if algorithm not in (("EAGLE", "DSPARK") if launch.since("0.5.16") else ("EAGLE",)):
        able = (
            "EAGLE and DSPARK speculative algorithms are"
            if launch.since("0.5.16")
            else "EAGLE speculative algorithm is"
        )
        launch.reject(f"Only {able} supported for {name}", "AssertionError")
    if algorithm == "EAGLE" and launch[TOPK] != 1:
        launch.reject(f"Only EAGLE speculative algorithm with topk == 1 is supported for {name}", "AssertionError")


@step(
    "sglang-72",
    "Diffusion does not overlap",
    when="dllm_algorithm is set",
    then="the overlap scheduler is turned off",
    says="Overlap schedule is disabled because of using diffusion LLM inference",
    releases="0.5.6-",
    source="srt/server_args.py; srt/arg_groups/dllm_hook.py from 0.5.19",
    stage=Stage.LAST,
    sets=(OVERLAP_OFF,),
)
@step(
    "sglang-72",
    "Diffusion keeps no prefixes",
    when="dllm_algorithm is set",
    then="the radix cache is turned off",
    says="Radix cache is disabled because of using diffusion LLM inference",
    releases="0.5.6-",
    source="srt/server_args.py; srt/arg_groups/dllm_hook.py from 0.5.19",
    stage=Stage.LAST,
    sets=(_RADIX_OFF,),
)
def diffusion(launch: Launch) -> None:
    """A block of text is refined as a whole."""
    flag = launch.step.sets[0]
    if launch["dllm_algorithm"] is not None and not launch[flag]:
        launch.announce()
        launch[flag] = True
