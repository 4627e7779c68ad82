"""Attention backends and page sizes."""

from __future__ import annotations

from typing import Final

from analysis.resolve.base import Launch
from analysis.resolve.sglang.engine import ALGORITHM, ARGUMENTS, TOPK, Stage, architecture, step
from analysis.resolve.sglang.graphs import CONFIG, DISABLED, set_phase
from analysis.resolve.sglang.models import uses_latent_attention

_ATTENTION: Final = "srt/server_args.py; srt/arg_groups/attention_hook.py from 0.5.19"
_BACKEND: Final = "attention_backend"
_PAGES: Final = "page_size"
_GRAPHS_OFF: Final = "disable_cuda_graph"
_HOPPER: Final = (9, 0)

_FA3_BY_DEFAULT: Final = (
    "Llama4ForConditionalGeneration",
    "LlamaForCausalLM",
    "Olmo2ForCausalLM",
    "Gemma2ForCausalLM",
    "Gemma3ForConditionalGeneration",
    "Qwen2ForCausalLM",
    "Qwen3ForCausalLM",
    "Qwen3MoeForCausalLM",
    "Qwen3VLForConditionalGeneration",
    "Qwen3VLMoeForConditionalGeneration",
    "Glm4MoeForCausalLM",
    "Glm4vForConditionalGeneration",
    "Glm4vMoeForConditionalGeneration",
    "Step3VLForConditionalGeneration",
)
"""Up to 0.5.7 only these get fa3 on Hopper unasked."""


@step(
    "sglang-130",
    "One backend for both phases",
    when="prefill_attention_backend and decode_attention_backend are the same",
    then="attention_backend becomes it",
    releases="0.5.4-",
    source=_ATTENTION,
    stage=Stage.ATTENTION,
    sets=(_BACKEND,),
)
def same_backend(launch: Launch) -> None:
    """Two equal flags are one."""
    prefill = launch["prefill_attention_backend"]
    if prefill is not None and prefill == launch["decode_attention_backend"]:
        launch[_BACKEND] = prefill


def _plain_or_chain(launch: Launch) -> bool:
    """Whether no tree was asked for; a topk the engine chooses itself comes later."""
    return launch[TOPK] is None or (launch[TOPK] == 1 and launch[_PAGES] in (None, 1))


def _default_backend(launch: Launch) -> str:
    capability = launch.gpu.capability
    if uses_latent_attention(launch):
        if capability == _HOPPER:
            return "fa3"
        return "flashinfer" if capability[0] == 10 else "triton"
    if capability == _HOPPER and _plain_or_chain(launch):
        if launch.since("0.5.8") or architecture(launch) in _FA3_BY_DEFAULT:
            return "fa3"
    elif capability[0] == 10 and launch.since("0.5.6") and _plain_or_chain(launch):
        chosen = launch[ALGORITHM] is None or launch[TOPK] is not None
        if chosen or not launch.since("0.5.7"):
            return "trtllm_mha"
    return "flashinfer"


@step(
    "sglang-84",
    "Backend by GPU and draft",
    when="attention_backend is not set",
    then="fa3 on Hopper; flashinfer there once a topk above 1 is given (rule 85)",
    says="Attention backend not explicitly specified. Use {} backend by default.",
    releases="0.5.4-0.5.6",
    source=_ATTENTION,
    stage=Stage.ATTENTION,
    sets=(_BACKEND,),
)
@step(
    "sglang-84",
    "Backend by GPU and draft",
    when="attention_backend is not set",
    then="fa3 on Hopper; flashinfer there once a topk above 1 is given (rule 85); trtllm_mha on SM100",
    says="Attention backend not specified. Use {} backend by default.",
    releases="0.5.7-",
    source=_ATTENTION,
    stage=Stage.ATTENTION,
    sets=(_BACKEND,),
)
def default_backend(launch: Launch) -> None:
    """A tree silently changes the target's own kernel."""
    if launch[_BACKEND] is None:
        backend = _default_backend(launch)
        launch.announce(backend)
        launch[_BACKEND] = backend


@step(
    "sglang-89",
    "No graphs with torch_native",
    when="attention_backend is torch_native",
    then="CUDA graphs are turned off",
    says="Cuda graph is disabled because of using torch native attention backend",
    source=_ATTENTION,
    stage=Stage.ATTENTION,
    sets=(_GRAPHS_OFF, CONFIG),
)
@step(
    "sglang-88",
    "No graphs with flex_attention",
    when="attention_backend is flex_attention",
    then="CUDA graphs are turned off",
    says="Cuda graph is disabled because of using torch Flex Attention backend",
    releases="0.5.3-",
    source=_ATTENTION,
    stage=Stage.ATTENTION,
    sets=(_GRAPHS_OFF, CONFIG),
)
def without_graphs(launch: Launch) -> None:
    """The two backends of plain torch cannot be captured."""
    wanted = "torch_native" if launch.step.id == "sglang-89" else "flex_attention"
    if launch[_BACKEND] != wanted:
        return
    launch.announce()
    if launch.since("0.5.14"):
        set_phase(launch, "decode", backend=DISABLED)
        set_phase(launch, "prefill", backend=DISABLED)
    else:
        launch[_GRAPHS_OFF] = True


@step(
    "sglang-88",
    "flex_attention does not draft",
    when="attention_backend is flex_attention and an algorithm drafts",
    then="refused",
    releases="0.5.3-",
    source=_ATTENTION,
    stage=Stage.ATTENTION,
)
def flex_does_not_draft(launch: Launch) -> None:
    """No verify kernel there."""
    if launch[_BACKEND] == "flex_attention" and launch[ALGORITHM] is not None:
        launch.reject("Speculative decoding is currently not supported with Flex Attention backend", "AssertionError")


@step(
    "sglang-87",
    "Pages of FlashMLA",
    when="attention_backend or decode_attention_backend is flashmla",
    then="page_size becomes 64, also against the flag",
    says="FlashMLA only supports a page_size of 64, change page_size to 64.",
    releases="0.4.5-",
    source=_ATTENTION,
    stage=Stage.ATTENTION,
    sets=(_PAGES,),
)
@step(
    "sglang-87",
    "Pages of FlashMLA",
    when="enable_flashmla",
    then="page_size becomes 64, also against the flag",
    says="FlashMLA only supports a page_size of 64, change page_size to 64.",
    releases="0.4.4",
    source=_ATTENTION,
    stage=Stage.ATTENTION,
    sets=(_PAGES,),
)
def flashmla_pages(launch: Launch) -> None:
    """FlashMLA has one page size."""
    if launch["enable_flashmla"] or "flashmla" in (launch[_BACKEND], launch["decode_attention_backend"]):
        launch.announce()
        launch[_PAGES] = 64


@step(
    "sglang-87",
    "Pages of Cutlass MLA",
    when="attention_backend or decode_attention_backend is cutlass_mla",
    then="page_size becomes 128, also against the flag",
    says="Cutlass MLA only supports a page_size of 128, change page_size to 128.",
    releases="0.4.6-0.5.19",
    source=_ATTENTION,
    stage=Stage.ATTENTION,
    sets=(_PAGES,),
)
def cutlass_pages(launch: Launch) -> None:
    """Cutlass MLA has one page size."""
    if "cutlass_mla" in (launch[_BACKEND], launch["decode_attention_backend"]):
        launch.announce()
        launch[_PAGES] = 128


@step(
    "sglang-131",
    "Blackwell's own backends",
    when="trtllm_mla or trtllm_mha on a GPU that has no such kernels",
    then="refused",
    releases="0.4.10-",
    source=_ATTENTION,
    stage=Stage.ATTENTION,
)
def blackwell_backends(launch: Launch) -> None:
    """The trtllm kernels are built for few GPUs; trtllm_mha decodes on Hopper from 0.5.10 and prefills from 0.5.19."""
    decode, prefill = launch["decode_attention_backend"], launch["prefill_attention_backend"]
    if "trtllm_mla" in (launch[_BACKEND], decode) and launch.gpu.capability[0] < 10:
        where = "(SM100/SM12x)" if launch.since("0.5.9") else "(SM100)"
        launch.reject(
            f"TRTLLM MLA backend is only supported on Blackwell GPUs {where}. Please use a different backend."
        )
    if "trtllm_mha" not in (launch[_BACKEND], decode, prefill) or launch.gpu.capability[0] >= 10:
        return
    if not launch.since("0.5.10"):
        launch.reject("TRTLLM MHA backend is only supported on Blackwell GPUs (SM100). Please use a different backend.")
    if not launch.since("0.5.19") and (prefill or launch[_BACKEND]) == "trtllm_mha":
        launch.reject(
            "TRTLLM MHA backend for prefill is only supported on Blackwell GPUs (SM100). "
            "Please use a different prefill backend."
        )


@step(
    "sglang-132",
    "Pages of the trtllm backends",
    when="trtllm_mla with page_size other than 32, 64; trtllm_mha with page_size other than 16, 32, 64",
    then="page_size becomes 64",
    releases="0.4.10-",
    source=_ATTENTION,
    stage=Stage.ATTENTION,
    sets=(_PAGES,),
)
def trtllm_pages(launch: Launch) -> None:
    """The trtllm kernels have few page sizes."""
    backends = (launch[_BACKEND], launch["decode_attention_backend"])
    if "trtllm_mla" in backends and launch[_PAGES] not in (32, 64):
        launch[_PAGES] = 64
    if "trtllm_mha" in (*backends, launch["prefill_attention_backend"]) and launch[_PAGES] not in (16, 32, 64):
        launch[_PAGES] = 64


@step(
    "sglang-133",
    "Single-token pages",
    when="page_size is not set",
    then="it becomes 1",
    releases="0.4.9-",
    source=_ATTENTION,
    stage=Stage.PAGES,
    sets=(_PAGES,),
)
def single_pages(launch: Launch) -> None:
    """One token a page unless asked or needed."""
    if launch[_PAGES] is None:
        launch[_PAGES] = 1


@step(
    "sglang-134",
    "Chunks of whole pages",
    when="chunked_prefill_size is no multiple of page_size",
    then="refused, with an empty message",
    releases="-0.4.8",
    source=ARGUMENTS,
    stage=Stage.MODEL,
)
def whole_pages(launch: Launch) -> None:
    """Checked before backends change the page size."""
    if launch["chunked_prefill_size"] % launch[_PAGES]:
        launch.reject("", "AssertionError")
