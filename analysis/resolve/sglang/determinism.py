"""Deterministic inference: the same prompt gives the same tokens, whatever shares the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from analysis.resolve.base import Launch
from analysis.resolve.sglang.engine import Stage, architecture, step

_SOURCE: Final = "srt/server_args.py; srt/arg_groups/attention_hook.py from 0.5.19"
_DETERMINISTIC: Final = "enable_deterministic_inference"
_BACKEND: Final = "attention_backend"

_REPEATING: Final = (
    ("0.5.19", ["ascend", "fa3", "fa4", "flashinfer", "intel_xpu", "triton"]),
    ("0.5.16", ["ascend", "fa3", "fa4", "flashinfer", "triton"]),
    ("0.5.13", ["flashinfer", "fa3", "triton", "ascend"]),
    ("0.5.3", ["flashinfer", "fa3", "triton"]),
)
"""Backends that repeat, with the first release of each list, newest first. The order is that of the engine's line."""
_CACHING: Final = (
    ("0.5.16", ["ascend", "fa3", "fa4", "triton"]),
    ("0.5.13", ["fa3", "triton", "ascend"]),
    ("0.5.4", ["fa3", "triton"]),
)
"""Those of them that keep the radix cache."""

_LATENT: Final = {
    "DeepseekV2ForCausalLM": "0.5.4",
    "DeepseekV3ForCausalLM": "0.5.4",
    "DeepseekV32ForCausalLM": "0.5.4",
    "MistralLarge3ForCausalLM": "0.5.6",
    "PixtralForConditionalGeneration": "0.5.6",
    "GlmMoeDsaForCausalLM": "0.5.9",
    "Glm4MoeLiteForCausalLM": "0.5.18",
    "Glm5NextForConditionalGeneration": "0.5.20",
}
"""Targets with fewer repeating backends, with the first release."""


def _listed(launch: Launch, lists: tuple[tuple[str, list[str]], ...]) -> list[str]:
    return next(names for since, names in lists if launch.since(since))


def _latent(launch: Launch) -> bool:
    since = _LATENT.get(architecture(launch))
    return since is not None and launch.since(since)


def _moved(
    step_id: str, title: str, *, when: str, then: str, since: str, says: str | None = None, sets: tuple[str, ...] = ()
) -> Callable[[Callable[[Launch], None]], Callable[[Launch], None]]:
    """A step that comes after the attention backend up to 0.5.11 and before it from 0.5.12."""

    def mark(apply: Callable[[Launch], None]) -> Callable[[Launch], None]:
        for releases, stage in (
            (f"{since}-0.5.11", Stage.DETERMINISM_LAST),
            ("0.5.12-", Stage.DETERMINISM_FIRST),
        ):
            step(
                step_id,
                title,
                when=when,
                then=then,
                says=says,
                sets=sets,
                releases=releases,
                source=_SOURCE,
                stage=stage,
            )(apply)
        return apply

    return mark


@_moved(
    "sglang-92",
    "Deterministic sampling",
    when="enable_deterministic_inference",
    then="pytorch samples",
    says="Sampling backend is set to pytorch for deterministic inference.",
    since="0.5.3",
    sets=("sampling_backend",),
)
def sampling(launch: Launch) -> None:
    """The fused samplers draw by batch."""
    if launch[_DETERMINISTIC]:
        launch.announce()
        launch["sampling_backend"] = "pytorch"


@step(
    "sglang-92",
    "Deterministic attention",
    when="enable_deterministic_inference and no attention_backend",
    then="fa3, on Blackwell flashinfer (triton for DeepSeek); up to 0.5.11 the usual default is taken before",
    says="Attention backend not specified. Falling back to '{}' for deterministic inference. "
    "You can explicitly set --attention-backend to one of {}.",
    releases="0.5.12-",
    source=_SOURCE,
    stage=Stage.DETERMINISM_FIRST,
    sets=(_BACKEND,),
)
def attention(launch: Launch) -> None:
    """A backend that repeats."""
    if launch[_DETERMINISTIC] and launch[_BACKEND] is None:
        backend = "fa3"
        if launch.gpu.capability[0] in (10, 12):
            backend = "triton" if _latent(launch) else "flashinfer"
        launch.announce(backend, _listed(launch, _REPEATING))
        launch[_BACKEND] = backend


@_moved(
    "sglang-92",
    "Backend that does not repeat",
    when="enable_deterministic_inference with an attention backend whose result depends on the batch",
    then="refused",
    since="0.5.3",
)
def must_repeat(launch: Launch) -> None:
    """Few backends repeat; fewer for targets with latent attention."""
    if not launch[_DETERMINISTIC]:
        return
    backend, able = launch[_BACKEND], _listed(launch, _REPEATING)
    if backend not in able:
        given = f", but you explicitly specified '{backend}'" if launch.since("0.5.4") else ""
        launch.reject(f"Currently only {able} attention backends are supported for deterministic inference{given}.")
    if not launch.since("0.5.4") or not _latent(launch):
        return
    few = _listed(launch, _CACHING) if launch.since("0.5.18") else ["fa3", "triton"]
    if backend not in few:
        named = "absorbed-MLA" if launch.since("0.5.18") else "DeepSeek"
        listed = _listed(launch, _CACHING) if not launch.since("0.5.16") else few
        launch.reject(
            f"Currently only {listed} attention backends are supported for deterministic inference with "
            f"{named} models. But you're using {backend}."
        )


@_moved(
    "sglang-92",
    "No prefix cache with this backend",
    when="enable_deterministic_inference with flashinfer",
    then="the radix cache is turned off",
    says="Currently radix cache is not compatible with {} attention backend for deterministic inference. "
    "It will be supported in the future.",
    since="0.5.4",
    sets=("disable_radix_cache",),
)
def prefixes(launch: Launch) -> None:
    """A cached prefix was computed in another batch."""
    if launch[_DETERMINISTIC] and launch[_BACKEND] not in _listed(launch, _CACHING):
        launch.announce(launch[_BACKEND])
        launch["disable_radix_cache"] = True


@step(
    "sglang-92",
    "Sums in one order",
    when="enable_deterministic_inference over several ranks",
    then="custom all-reduce is off",
    says="NCCL_ALGO is set to 'allreduce:tree' and custom all reduce is disabled for deterministic inference when TP "
    "size > 1.",
    releases="0.5.3-0.5.11",
    source=_SOURCE,
    stage=Stage.DETERMINISM_LAST,
    sets=("disable_custom_all_reduce",),
)
@step(
    "sglang-92",
    "Sums in one order",
    when="enable_deterministic_inference over several ranks",
    then="custom all-reduce is off",
    says="NCCL_ALGO is set to 'allreduce:tree' and custom all reduce is disabled for deterministic inference when TP "
    "size > 1.",
    releases="0.5.12-0.5.17",
    source=_SOURCE,
    stage=Stage.DETERMINISM_FIRST,
    sets=("disable_custom_all_reduce",),
)
@step(
    "sglang-92",
    "Sums in one order",
    when="enable_deterministic_inference over several ranks",
    then="custom and symmetric-memory all-reduce are off",
    says="NCCL_ALGO is set to 'allreduce:tree', the NCCL channel count is pinned, and custom and symmetric-memory all "
    "reduce are disabled for deterministic inference when TP size > 1.",
    releases="0.5.18-",
    source=_SOURCE,
    stage=Stage.DETERMINISM_FIRST,
    sets=("disable_custom_all_reduce", "enable_torch_symm_mem"),
)
def sums(launch: Launch) -> None:
    """Ranks add up in a fixed order."""
    if launch[_DETERMINISTIC] and launch["tp_size"] > 1:
        launch.announce()
        launch["disable_custom_all_reduce"] = True
        if launch.since("0.5.18"):
            launch["enable_torch_symm_mem"] = False
