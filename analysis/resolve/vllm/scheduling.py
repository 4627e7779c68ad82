"""How many tokens and requests a step takes, and whether it is scheduled ahead of the last one's result."""

from __future__ import annotations

from typing import Final

from analysis.resolve.base import Launch, Unsettled
from analysis.resolve.vllm.engine import (
    ARGUMENTS,
    ASYNC,
    BATCHED,
    METHOD,
    PARALLEL_DRAFTING,
    RUNNER,
    SCHEDULED,
    SEQUENCES,
    TOKENS,
    UNPADDED,
    WHOLE,
    Stage,
    drafts_with,
    module_methods,
    on_cpu,
    speculates,
    step,
    target_length,
)

_GIB: Final = 1024
_LITTLE: Final = 8192
"""Below this many scheduled tokens vLLM warns."""


@step(
    "vllm-100",
    "Batch by GPU memory",
    when="max_num_batched_tokens or max_num_seqs is not given",
    then="8192 tokens and 1024 requests from 70 GiB (not an A100, from 0.9), 16384 tokens from 160 GiB (from 0.28), "
    "else 2048 and 256; on a CPU (from 0.10) 2048 and 128 for each rank; no more tokens than the requests can hold",
    source=ARGUMENTS,
    stage=Stage.BATCH,
    sets=(BATCHED, SEQUENCES),
)
def batch_by_memory(launch: Launch) -> None:
    """What the server (not the offline class) takes by default."""
    tokens, sequences = launch[BATCHED], launch[SEQUENCES]
    if tokens is not None and sequences is not None:
        return
    if launch["performance_mode"] == "throughput":
        raise Unsettled("the batch in performance_mode throughput")
    own_tokens, own_sequences = _batch(launch)
    if sequences is None:
        sequences = own_sequences
    if tokens is None:
        tokens = own_tokens
        if launch.since("0.10.1"):
            tokens = min(sequences * target_length(launch), tokens)
    if launch[SEQUENCES] is None and launch.since("0.10.1"):
        sequences = min(sequences, tokens)
    launch[BATCHED], launch[SEQUENCES] = tokens, sequences


def _batch(launch: Launch) -> tuple[int, int]:
    """Tokens and requests by default."""
    if on_cpu(launch):
        if not launch.since("0.10.0"):
            raise Unsettled("the default batch on a CPU")
        ranks = launch["tensor_parallel_size"] * launch["pipeline_parallel_size"]
        return 2048 * ranks, 128 * ranks
    memory = launch.memory / _GIB
    if memory >= 160 and launch.since("0.28"):
        return 16384, 1024
    if memory >= 70 and not (launch.gpu.name.startswith("a100") and launch.since("0.9")):
        return 8192, 1024
    return 2048, 256


@step(
    "vllm-57",
    "Adapters need room for every draft",
    when="enable_lora with speculation, and max_num_batched_tokens below max_num_seqs * (num_speculative_tokens + 1)",
    then="refused",
    releases="0.11.1-",
    source=ARGUMENTS,
    stage=Stage.ADAPTERS,
)
def adapters(launch: Launch) -> None:
    """Adapters are applied to all drafted tokens of a step at once."""
    if launch["enable_lora"] and speculates(launch) and launch[BATCHED] < launch[SEQUENCES] * (launch[TOKENS] + 1):
        launch.reject("Consider increasing max_num_batched_tokens or decreasing num_speculative_tokens")


@step(
    "vllm-51",
    "No scheduling ahead with drafts",
    when="async_scheduling with speculation",
    then="refused",
    releases="0.10.0-0.11.0",
    source=ARGUMENTS,
    stage=Stage.HEAD,
)
def no_async_drafts(launch: Launch) -> None:
    """At first scheduling ahead knew nothing of drafts."""
    asked = any(flag.startswith("speculative_config") for flag in launch.requested)
    if launch[ASYNC] and asked:
        launch.reject("Currently, speculative decoding is not supported with async scheduling.")


def _ahead(launch: Launch, *, by_default: bool) -> bool:
    """Whether the method can be scheduled ahead: for an explicit request, or by default."""
    method = launch[METHOD]
    able = {"eagle", "eagle3", *module_methods(launch), "mtp"}
    if launch.since("0.17"):
        able.add("extract_hidden_states")
    if launch.since("0.20"):
        able.add("dflash")
    if launch.since("0.18"):
        able.add("ngram_gpu")
    if launch.since("0.25"):
        able.add("dspark")
    if launch.since("0.28" if by_default else "0.16"):
        able.add("draft_model")
    return method in able


def _kinds(launch: Launch) -> str:
    for first, kinds in (
        ("0.31", "EAGLE/MTP/Draft Model/NGram GPU/DSpark/DFlash kind of speculative decoding"),
        ("0.25", "EAGLE/MTP/Draft Model/NGram GPU/DSpark kind of speculative decoding"),
        ("0.18", "EAGLE/MTP/Draft Model/NGram GPU kind of speculative decoding"),
        ("0.16", "EAGLE/MTP/Draft Model kind of speculative decoding."),
        ("0.14", "EAGLE/MTP kind of speculative decoding."),
    ):
        if launch.since(first):
            return kinds
    return "EAGLE/MTP kind of speculative decoding"


@step(
    "vllm-101",
    "Scheduling ahead and pipelines",
    when="async_scheduling by request with pipeline_parallel_size above 1",
    then="refused",
    releases="0.10.0-0.14.1",
    source=WHOLE,
    stage=Stage.SCHEDULE,
)
def ahead_and_pipelines(launch: Launch) -> None:
    """From 0.15 both go together."""
    if launch[ASYNC] and launch["pipeline_parallel_size"] > 1:
        if launch.since("0.11.1"):
            launch.reject("Async scheduling is not yet compatible with pipeline_parallel_size > 1.")
        launch.reject("Async scheduling is not supported with pipeline-parallel-size > 1.")


@step(
    "vllm-51",
    "Scheduling ahead with the wrong method",
    when="async_scheduling by request with ngram, suffix, medusa, mlp_speculator or custom_class (draft_model before "
    "0.16, ngram_gpu before 0.18)",
    then="refused",
    releases="0.11.1-",
    source=WHOLE,
    stage=Stage.SCHEDULE,
)
def ahead_with_wrong_method(launch: Launch) -> None:
    """These methods need the last tokens on the host before they draft."""
    if launch[ASYNC] and speculates(launch) and not _ahead(launch, by_default=False):
        launch.reject(f"Currently, async scheduling is only supported with {_kinds(launch)}")


@step(
    "vllm-52",
    "Scheduling ahead without padding",
    when="async_scheduling by request with disable_padded_drafter_batch",
    then="refused",
    releases="0.11.1-",
    source=WHOLE,
    stage=Stage.SCHEDULE,
)
def ahead_without_padding(launch: Launch) -> None:
    """A batch scheduled ahead does not know how many drafts were accepted."""
    if not launch[ASYNC] or not speculates(launch) or not launch[UNPADDED]:
        return
    if launch.since("0.14"):
        launch.reject("Async scheduling is not compatible with disable_padded_drafter_batch=True.")
    launch.reject(
        "async scheduling for EAGLE/MTP kind of speculative decoding is enabled, but disable_padded_drafter_batch=True "
        "disable_padded_drafter_batch=True is not supported for this situation now. please set "
        "disable_padded_drafter_batch=Fasle"
    )


@step(
    "vllm-101",
    "No scheduling ahead with pipelines",
    when="async_scheduling is not given and pipeline_parallel_size is above 1",
    then="turned off",
    says="Async scheduling is not yet supported with pipeline_parallel_size > 1 and will be disabled.",
    releases="0.14-0.14.1",
    source=WHOLE,
    stage=Stage.SCHEDULE,
    sets=(ASYNC,),
)
def not_ahead_with_pipelines(launch: Launch) -> None:
    """From 0.15 both go together."""
    if launch[ASYNC] is None and launch["pipeline_parallel_size"] > 1:
        launch.announce()
        launch[ASYNC] = False


@step(
    "vllm-50",
    "No scheduling ahead with this method",
    when="async_scheduling is not given, with ngram, suffix, medusa, mlp_speculator or custom_class (draft_model up to "
    "0.27, ngram_gpu before 0.18)",
    then="turned off",
    says="Async scheduling not supported with {}-based speculative decoding and will be disabled.",
    releases="0.14-",
    source=WHOLE,
    stage=Stage.SCHEDULE,
    sets=(ASYNC,),
)
def not_ahead(launch: Launch) -> None:
    """These methods need the last tokens on the host before they draft. Up to 0.13 the default is off for all."""
    if launch[ASYNC] is None and speculates(launch) and not _ahead(launch, by_default=True):
        launch.announce(launch[METHOD])
        launch[ASYNC] = False


@step(
    "vllm-52",
    "No scheduling ahead without padding",
    when="async_scheduling is not given, with disable_padded_drafter_batch",
    then="turned off",
    says="Async scheduling is not compatible with disable_padded_drafter_batch=True and will be disabled.",
    releases="0.14-",
    source=WHOLE,
    stage=Stage.SCHEDULE,
    sets=(ASYNC,),
)
def not_ahead_without_padding(launch: Launch) -> None:
    """A batch scheduled ahead does not know how many drafts were accepted."""
    if launch[ASYNC] is None and speculates(launch) and launch[UNPADDED]:
        launch.announce()
        launch[ASYNC] = False


@step(
    "vllm-72",
    "No scheduling ahead with pipelines on the first model runner",
    when="async_scheduling is not given, pipeline_parallel_size is above 1, and the first model runner runs",
    then="turned off",
    says="Async scheduling is disabled because the V1 model runner does not support it with pipeline parallelism.",
    releases="0.31.0-",
    source=WHOLE,
    stage=Stage.SCHEDULE,
    sets=(ASYNC,),
)
def not_ahead_on_first_runner(launch: Launch) -> None:
    """The first runner broke grammars so."""
    if launch[ASYNC] is None and launch["pipeline_parallel_size"] > 1 and not launch[RUNNER]:
        launch.announce()
        launch[ASYNC] = False


@step(
    "vllm-102",
    "Scheduling ahead by default",
    when="async_scheduling is not given and nothing stands in the way",
    then="turned on",
    says="Asynchronous scheduling is enabled.",
    releases="0.14-0.26.0",
    source=WHOLE,
    stage=Stage.SCHEDULE,
    sets=(ASYNC,),
)
@step(
    "vllm-102",
    "Scheduling ahead by default",
    when="async_scheduling is not given and nothing stands in the way",
    then="turned on",
    releases="0.27-",
    source=WHOLE,
    stage=Stage.SCHEDULE,
    sets=(ASYNC,),
)
def ahead_by_default(launch: Launch) -> None:
    """Executors other than those of one machine (and Ray, from 0.19) cannot."""
    if launch[ASYNC] is not None:
        return
    if launch["distributed_executor_backend"] not in (None, "mp", "uni", "external_launcher"):
        raise Unsettled(f"whether the executor {launch['distributed_executor_backend']} can schedule ahead")
    launch.announce()
    launch[ASYNC] = True


@step(
    "vllm-110",
    "No scheduling ahead on a CPU",
    when="no GPU",
    then="async_scheduling is turned off, also where it was asked for",
    releases="0.14-",
    source="vllm/platforms/cpu.py",
    stage=Stage.CACHE,
    sets=(ASYNC,),
)
def not_ahead_on_cpu(launch: Launch) -> None:
    """There is no second device to keep busy."""
    if on_cpu(launch):
        launch[ASYNC] = False


def draft_slots(launch: Launch) -> int:
    """Slots of a batch that each request's draft takes beyond its own."""
    tokens = launch[TOKENS]
    if launch.since("0.28"):
        if drafts_with(launch, "dflash"):
            return int(tokens)
        if launch[PARALLEL_DRAFTING]:
            return int(tokens) if drafts_with(launch, "draft_model") else int(tokens) - 1
        return 1 if drafts_with(launch, "draft_model") else 0
    slots = int(tokens) - 1 if launch[PARALLEL_DRAFTING] else 0
    return slots + (1 if drafts_with(launch, "draft_model") else 0)


_ADVICE: Final = (
    "max_num_scheduled_tokens is set to {} based on the speculative decoding settings. This may lead to suboptimal "
    "performance. Consider increasing max_num_batched_tokens to accommodate the additional draft token slots, or "
    "decrease num_speculative_tokens{}."
)


@step(
    "vllm-54",
    "Smaller steps with a drafting model",
    when="speculation; draft_model or parallel_drafting take slots of the batch",
    then="max_num_scheduled_tokens becomes max_num_batched_tokens less max_num_seqs times the slots of a draft "
    "(1 for draft_model, num_speculative_tokens - 1 for parallel drafting)",
    releases="0.17-0.19.1",
    source=WHOLE,
    stage=Stage.BUDGET,
    sets=(SCHEDULED,),
)
@step(
    "vllm-54",
    "Smaller steps with a drafting model",
    when="speculation; draft_model or parallel_drafting take slots of the batch",
    then="max_num_scheduled_tokens becomes max_num_batched_tokens less max_num_seqs times the slots of a draft "
    "(1 for draft_model, num_speculative_tokens - 1 for parallel drafting)",
    says=_ADVICE.format("{}", " or max_num_seqs"),
    releases="0.20-0.27.1",
    source=WHOLE,
    stage=Stage.BUDGET,
    sets=(SCHEDULED,),
)
@step(
    "vllm-55",
    "Steps of the whole batch",
    when="speculation; the line is printed where max_num_batched_tokens is below 8192, although nothing is reduced",
    then="max_num_scheduled_tokens becomes max_num_batched_tokens",
    says=_ADVICE,
    releases="0.28-",
    source=WHOLE,
    stage=Stage.BUDGET,
    sets=(SCHEDULED,),
)
def scheduled_tokens(launch: Launch) -> None:
    """What a step may schedule, drafts apart."""
    if not speculates(launch):
        return
    if launch[SCHEDULED] is None:
        taken = 0 if launch.since("0.28") else draft_slots(launch) * launch[SEQUENCES]
        launch[SCHEDULED] = launch[BATCHED] - taken
    if launch.since("0.20") and 0 < launch[SCHEDULED] < _LITTLE:
        launch.announce(launch[SCHEDULED], "")


@step(
    "vllm-56",
    "Not enough slots for drafts",
    when="the batch leaves no token to schedule beside the drafts",
    then="refused",
    releases="0.17-",
    source=WHOLE,
    stage=Stage.BUDGET,
)
def enough_slots(launch: Launch) -> None:
    """Drafts alone would fill the step."""
    if not speculates(launch):
        return
    slots, batched, scheduled = draft_slots(launch), launch[BATCHED], launch[SCHEDULED]
    if scheduled <= 0 and launch.since("0.20"):
        also = "" if launch.since("0.28") else " or max_num_seqs"
        launch.reject(
            f"max_num_scheduled_tokens is set to {scheduled} based on the speculative decoding settings, which does "
            "not allow any tokens to be scheduled. Increase max_num_batched_tokens to accommodate the additional draft "
            f"token slots, or decrease num_speculative_tokens{also}."
        )
    if launch.since("0.28"):
        if batched <= slots:
            launch.reject(
                "VllmConfig does not have enough slots to schedule a token and support the speculative decoding "
                f"settings. Got max_num_batched_tokens={batched} and scheduled_token_delta={slots}."
            )
        return
    delta = slots * launch[SEQUENCES]
    if batched < scheduled + delta:
        launch.reject(
            "VllmConfig received max_num_scheduled_tokens but it does not have enough slots to support the speculative "
            f"decoding settings. It should be greater by at least {delta}, but got max_num_batched_tokens={batched} "
            f"and max_num_scheduled_tokens={scheduled}."
        )
