"""The draft beside its target: parallelism, vocabulary, what it inherits, and how it is verified."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from typing import Final

from analysis.resolve.base import Launch
from analysis.resolve.vllm.engine import (
    BATCH_LIMIT,
    DRAFT_RANKS,
    SPECULATIVE,
    TOKENS,
    Stage,
    draft_config,
    drafts_with,
    field_of,
    loads_draft,
    speculates,
    step,
)

_RANKS: Final = "tensor_parallel_size"
_HETEROGENEOUS: Final = field_of("use_heterogeneous_vocab")
_SAMPLING: Final = field_of("draft_sample_method")
_REJECTION: Final = field_of("rejection_sample_method")
_RATES: Final = field_of("synthetic_acceptance_rates")
_LENGTH: Final = field_of("synthetic_acceptance_length")


@step(
    "vllm-32",
    "Ranks of the draft",
    when="draft_tensor_parallel_size is not given",
    then="it becomes tensor_parallel_size; 1 for mlp_speculator",
    says="mlp_speculator cannot currently be run with tp>1; setting speculative_draft_tensor_parallel_size=1",
    source=SPECULATIVE,
    stage=Stage.PARALLEL,
    sets=(DRAFT_RANKS,),
)
def ranks_of_draft(launch: Launch) -> None:
    """The draft is split like its target."""
    if not speculates(launch) or launch[DRAFT_RANKS] is not None or not loads_draft(launch):
        return
    alone = drafts_with(launch, "mlp_speculator")
    if alone and launch[_RANKS] > 1:
        launch.announce()
    launch[DRAFT_RANKS] = 1 if alone else launch[_RANKS]


@step(
    "vllm-33",
    "One rank or all",
    when="draft_tensor_parallel_size is neither 1 nor tensor_parallel_size",
    then="refused",
    source=SPECULATIVE,
    stage=Stage.PARALLEL,
)
def one_rank_or_all(launch: Launch) -> None:
    """Nothing in between."""
    if loads_draft(launch) and launch.given(DRAFT_RANKS) and launch[DRAFT_RANKS] not in (1, launch[_RANKS]):
        launch.reject(
            f"speculative_draft_tensor_parallel_size={launch[DRAFT_RANKS]} cannot be other value than 1 or target "
            "model tensor_parallel_size"
        )


@step(
    "vllm-34",
    "One rank in vain",
    when="draft_tensor_parallel_size 1 with tensor_parallel_size above 1 and a method that drafts from hidden states",
    then="ignored: the draft runs on all of the target's ranks",
    source="vllm/v1/spec_decode",
    stage=Stage.LOAD,
)
def one_rank_in_vain(launch: Launch) -> None:
    """The V1 engine reads it for no such method."""
    if not loads_draft(launch) or drafts_with(launch, "draft_model", "mlp_speculator"):
        return
    if launch.given(DRAFT_RANKS) and launch[DRAFT_RANKS] == 1 and launch[_RANKS] > 1:
        launch.ignore(DRAFT_RANKS, "the draft runs on all of the target's ranks")


@step(
    "vllm-35",
    "A model drafts on the target's ranks",
    when="draft_model with another draft_tensor_parallel_size than tensor_parallel_size",
    then="refused while the draft loads",
    releases="0.15-",
    source="vllm/v1/spec_decode/draft_model.py",
    stage=Stage.LOAD,
)
def same_ranks(launch: Launch) -> None:
    """One rank alone would corrupt the compiled graphs."""
    if drafts_with(launch, "draft_model") and launch[DRAFT_RANKS] != launch[_RANKS]:
        launch.reject(
            "Currently, 'draft_tensor_parallel_size' and 'tensor_parallel_size' must be the same. "
            f"Got {launch[DRAFT_RANKS]} and {launch[_RANKS]}. Please pass 'draft_tensor_parallel_size' in the "
            "speculative_config."
        )


@step(
    "vllm-109",
    "Settings of one method",
    when="index_share_for_mtp_iteration (from 0.29) without mtp or a draft, or enable_adaptive_verification without "
    "dspark (from 0.30 only with use_local_argmax_reduction)",
    then="refused",
    releases="0.28-",
    source=SPECULATIVE,
    stage=Stage.VERIFY,
)
def settings_of_a_method(launch: Launch) -> None:
    """Each is read by one drafter alone."""
    if not speculates(launch):
        return
    module = drafts_with(launch, "mtp") and loads_draft(launch)
    if launch[field_of("index_share_for_mtp_iteration")] is not None and not module:
        launch.reject("index_share_for_mtp_iteration is only supported with method='mtp'")
    if drafts_with(launch, "dspark") or not launch[field_of("enable_adaptive_verification")]:
        return
    if not launch.since("0.30"):
        launch.reject("Adaptive verification only supported with DSpark")
    if launch[field_of("use_local_argmax_reduction")]:
        launch.reject(
            "Adaptive verification estimates per-position acceptance from the draft logits, which "
            "use_local_argmax_reduction never materializes. Disable one of them."
        )


@step(
    "vllm-36",
    "Ranks by the wrong name",
    when="tensor_parallel_size inside speculative_config",
    then="refused",
    releases="0.15-",
    source=SPECULATIVE,
    stage=Stage.VERIFY,
)
def ranks_by_wrong_name(launch: Launch) -> None:
    """The setting exists for this message alone."""
    if speculates(launch) and launch[field_of(_RANKS)] is not None:
        launch.reject(
            "'tensor_parallel_size' is not a valid argument in the speculative_config. "
            "Please pass 'draft_tensor_parallel_size' instead."
        )


@step(
    "vllm-37",
    "The draft has no pipeline",
    when="pipeline_parallel_size above 1 and a draft model is loaded",
    then="the draft runs on one stage; up to 0.29 it was split like the target",
    releases="0.30.0-",
    source=SPECULATIVE,
    stage=Stage.PARALLEL,
)
def no_pipeline(launch: Launch) -> None:
    """A draft is small enough for one stage."""
    if loads_draft(launch) and launch["pipeline_parallel_size"] > 1:
        launch.remark("pipeline_parallel_size", "the draft runs whole on one stage")


_COPIED: Final = ("dtype", "tokenizer", "seed", "trust_remote_code", "config_format", "tokenizer_mode")


@step(
    "vllm-39",
    "The draft follows the target",
    when="a draft model is loaded, and dtype, tokenizer, tokenizer_mode, seed, trust_remote_code or config_format is "
    "given",
    then="the draft takes the same; it cannot have its own",
    source=SPECULATIVE,
    stage=Stage.PARALLEL,
)
def draft_follows(launch: Launch) -> None:
    """Settings of the target that are copied to the draft."""
    if loads_draft(launch):
        for flag in _COPIED:
            if launch.given(flag):
                launch.remark(flag, "holds for the draft too, which cannot have its own")


_INHERITED: Final = {"moe_backend": "0.19", "kv_cache_dtype": "0.26"}


@step(
    "vllm-46",
    "Kernels of the target",
    when="a draft model is loaded, moe_backend or kv_cache_dtype (from 0.26) is given for the target and not in "
    "speculative_config",
    then="the draft takes the target's; an attention backend (from 0.21) is chosen for it anew",
    releases="0.19-",
    source=SPECULATIVE,
    stage=Stage.PARALLEL,
)
def kernels_of_target(launch: Launch) -> None:
    """What fits the target need not fit the draft."""
    if not loads_draft(launch):
        return
    for flag, first in _INHERITED.items():
        if launch.since(first) and launch.given(flag) and launch[field_of(flag)] is None:
            launch.remark(field_of(flag), f"not given: the draft takes the target's {launch[flag]}")


@step(
    "vllm-47",
    "Overrides of the target's config",
    when="hf_overrides is given and a draft model is loaded",
    then="not applied to the draft's config",
    source=SPECULATIVE,
    stage=Stage.PARALLEL,
)
def overrides(launch: Launch) -> None:
    """A dictionary is about the target; a function (from 0.25, from Python only) is applied to both."""
    if loads_draft(launch) and launch.given("hf_overrides"):
        launch.remark("hf_overrides", "not applied to the draft's config")


@step(
    "vllm-99",
    "Tokens missing",
    when="num_speculative_tokens is neither given nor known from the draft",
    then="refused",
    source=SPECULATIVE,
    stage=Stage.VERIFY,
)
def tokens_missing(launch: Launch) -> None:
    """Every method needs a number."""
    if not speculates(launch):
        return
    if launch[TOKENS] is None:
        launch.reject(
            "num_speculative_tokens must be provided with speculative model unless the draft model config contains an "
            "n_predict parameter."
        )
    if launch[TOKENS] <= 0:
        launch.reject(f"Expected num_speculative_tokens to be greater than zero ({launch[TOKENS]}).")


@step(
    "vllm-98",
    "Figures in range",
    when="disable_by_batch_size below 2",
    then="refused",
    releases="-0.11.0",
    source=SPECULATIVE,
    stage=Stage.VERIFY,
)
def batch_limit_in_range(launch: Launch) -> None:
    """From 0.11.1 the setting itself is checked."""
    limit = launch[BATCH_LIMIT] if speculates(launch) else None
    if limit is not None and limit < 2:
        launch.reject(
            "Expect the batch size threshold of disabling speculative decoding is > 1, but got "
            f"self.disable_by_batch_size={limit}"
        )


@step(
    "vllm-49",
    "Acceptance made up",
    when="rejection_sample_method synthetic",
    then="drafts are accepted by chance at the given rate: figures and outputs mean nothing",
    releases="0.19-0.19.1",
    source=SPECULATIVE,
    stage=Stage.VERIFY,
)
@step(
    "vllm-49",
    "Acceptance made up",
    when="rejection_sample_method synthetic",
    then="drafts are accepted by chance at synthetic_acceptance_rates, which synthetic_acceptance_length is turned "
    "into: figures and outputs mean nothing; refused without either, or with either and another method",
    releases="0.20-",
    source=SPECULATIVE,
    stage=Stage.VERIFY,
    sets=(_RATES, _LENGTH),
)
def made_up(launch: Launch) -> None:
    """A way to measure the engine without a good draft."""
    if not speculates(launch):
        return
    synthetic = launch[_REJECTION] == "synthetic"
    if synthetic:
        launch.remark(_REJECTION, "drafts are accepted by chance: acceptance figures and outputs mean nothing")
    if not launch.since("0.20"):
        return
    rates, length = launch[_RATES], launch[_LENGTH]
    if not synthetic:
        if rates is not None or length is not None:
            launch.reject(
                "synthetic_acceptance_rates / synthetic_acceptance_length are only valid with "
                "rejection_sample_method='synthetic'."
            )
        return
    launch[_RATES] = _synthetic_rates(launch, launch[TOKENS], rates, length)
    launch[_LENGTH] = None


def _synthetic_rates(launch: Launch, tokens: int, rates: list[float] | None, length: float | None) -> list[float]:
    if (rates is None) == (length is None):
        launch.reject(
            "rejection_sample_method='synthetic' requires exactly one of synthetic_acceptance_rates or "
            "synthetic_acceptance_length."
        )
    if rates is not None:
        if len(rates) != tokens:
            launch.reject(f"synthetic_acceptance_rates must have length {tokens}, got {rates}.")
        if not all(0.0 <= rate <= 1.0 for rate in rates):
            launch.reject(f"synthetic_acceptance_rates entries must be in [0, 1], got {rates}.")
        if any(later > earlier for earlier, later in pairwise(rates)):
            launch.reject(f"synthetic_acceptance_rates must be non-increasing, got {rates}.")
        return list(rates)
    assert length is not None
    if not 1.0 <= length <= tokens + 1:
        launch.reject(f"synthetic_acceptance_length must be in [1, {tokens + 1}], got {length}.")
    accepted = length - 1
    whole = int(accepted)
    return ([1.0] * whole + [accepted - whole] + [0.0] * tokens)[:tokens]


@step(
    "vllm-41",
    "Vocabularies that differ",
    when="use_heterogeneous_vocab with another method than draft_model, or with a draft_sample_method other than greedy",
    then="refused",
    releases="0.25-",
    source=SPECULATIVE,
    stage=Stage.VERIFY,
)
def different_vocabularies(launch: Launch) -> None:
    """Only a greedy model can draft in the tokens that both share."""
    if not speculates(launch) or not launch[_HETEROGENEOUS]:
        return
    if not drafts_with(launch, "draft_model"):
        launch.reject("use_heterogeneous_vocab only works with method='draft_model'")
    if launch[_SAMPLING] != "greedy":
        launch.reject(
            "use_heterogeneous_vocab currently only supports greedy draft sampling. Set draft_sample_method='greedy' "
            "(the default) or omit it."
        )


def _vocabularies(launch: Launch) -> tuple[float | None, float | None]:
    return launch.target.number("vocab_size"), draft_config(launch).number("vocab_size")


@step(
    "vllm-40",
    "Vocabularies of the same size",
    when="draft_model, and vocab_size of draft and target differ (unless use_heterogeneous_vocab, from 0.25)",
    then="refused; token ids themselves are not compared, and the target's tokenizer is used for both",
    releases="0.15-",
    source=SPECULATIVE,
    stage=Stage.VERIFY,
)
def same_vocabulary(launch: Launch) -> None:
    """Equal size with other ids passes, and accepts nothing."""
    if not drafts_with(launch, "draft_model") or launch[_HETEROGENEOUS]:
        return
    target, draft = _vocabularies(launch)
    if target != draft:
        launch.reject(
            "Target and draft model should have the same vocabulary size. "
            f"Target model vocab_size={target}. Draft model vocab_size={draft}. "
            "Using models with different tokenizers can cause out-of-bounds errors during speculative decoding."
        )


@step(
    "vllm-84",
    "Watermarks need sampled drafts",
    when="watermark_config with speculation whose draft_sample_method is not probabilistic, rejection_sample_method "
    "not standard, or whose method is not eagle, eagle3, mtp or dspark",
    then="refused",
    releases="0.30.0-",
    source="vllm/config/vllm.py",
    stage=Stage.LOAD,
)
def watermarks(launch: Launch) -> None:
    """A watermark lives in how tokens are sampled."""
    if not speculates(launch) or not launch.given("watermark_config"):
        return
    if launch[_SAMPLING] != "probabilistic":
        launch.reject("Speculative decoding with watermarking requires draft_sample_method='probabilistic'.")
    if launch[_REJECTION] != "standard":
        launch.reject("Speculative decoding with watermarking requires rejection_sample_method='standard'.")
    if launch[field_of("parallel_drafting")] and not drafts_with(launch, "dspark"):
        launch.reject("Parallel speculative drafting is not supported with watermarking.")
    if not drafts_with(launch, "dspark", "eagle", "eagle3", "mtp"):
        launch.reject("Watermarking supports only autoregressive model-based speculative decoding.")


@step(
    "vllm-75",
    "No drafts on this hardware",
    when="speculation on a TPU (up to 0.13), HPU or Neuron device (up to 0.9), or XPU (up to 0.9)",
    then="refused",
    releases="-0.13.0",
    source="vllm/platforms",
    stage=Stage.LOAD,
)
def no_drafts_on_hardware(launch: Launch) -> None:
    """Only some platforms verify drafts."""
    words: Mapping[str, str] = {"tpu": "Speculative decoding is not yet supported for TPU backend"}
    if not launch.since("0.10.0"):
        words = {
            **words,
            "hpu": "Speculative decoding is not implemented for HPU",
            "xpu": "XPU does not support speculative decoding",
            "neuron": "Speculative decoding not yet supported for Neuron backend.",
        }
    device = str(launch["device"]).lower()
    if speculates(launch) and device in words:
        launch.reject(words[device], "AssertionError")
