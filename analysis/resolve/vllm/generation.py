"""Which engine runs (V0 or V1), and which of the two model runners inside V1."""

from __future__ import annotations

from typing import Final

from analysis.resolve.base import Launch, Unsettled
from analysis.resolve.vllm.engine import (
    ARGUMENTS,
    ASYNC,
    BATCH_LIMIT,
    BY_BATCH,
    DRAFT,
    METHOD,
    PARALLEL_DRAFTING,
    RUNNER,
    SPECULATIVE,
    UNPADDED,
    V1,
    WHOLE,
    Stage,
    draft_config,
    drafts_with,
    field_of,
    loads_draft,
    on_cpu,
    speculates,
    step,
    target_length,
)

_V0_WORKER: Final = "vllm/spec_decode/spec_decode_worker.py"
_NO_DRAFT_MODELS: Final = (
    "Speculative decoding with draft model is not supported yet. Please consider using other speculative decoding "
    "methods such as ngram, medusa, eagle, or {}."
)
_NGRAM: Final = ("ngram", "[ngram]")


def _wants_v1(launch: Launch) -> bool:
    return launch.environment.get(V1) == "1"


@step(
    "vllm-9",
    "Speculation on the first engine",
    when="speculation, and neither method nor model says that the V1 engine can draft so; the draft's path is not "
    "looked at",
    then="the V0 engine runs; refused where VLLM_USE_V1=1",
    says="Speculative Decoding is not supported by the V1 Engine. Falling back to V0. ",
    releases="-0.9.2",
    source=ARGUMENTS,
    stage=Stage.GENERATION,
    sets=(V1,),
)
def first_engine(launch: Launch) -> None:
    """The engine is chosen before the method is found out."""
    if launch.environment.get(V1) == "0":
        launch[V1] = False
        return
    method, model = launch[METHOD] if speculates(launch) else None, launch[DRAFT] if speculates(launch) else None
    able = ("eagle", "eagle3", *(("medusa", "deepseek_mtp") if launch.since("0.9.0") else ()))
    if not speculates(launch) or method in (*_NGRAM, *able) or (method is None and model in _NGRAM):
        launch[V1] = True
        return
    if _wants_v1(launch):
        launch.reject("VLLM_USE_V1=1 is not supported with Speculative Decoding.", "NotImplementedError")
    launch.announce()
    launch[V1] = False


@step(
    "vllm-9",
    "N-grams and EAGLE on the first engine",
    when="method ngram or an EAGLE, unless VLLM_USE_V1=1",
    then="the V0 engine runs",
    says="{} is experimental on VLLM_USE_V1=1. Falling back to V0 Engine.",
    releases="-0.8.5",
    source=ARGUMENTS,
    stage=Stage.GENERATION,
    sets=(V1,),
)
def experimental_drafts(launch: Launch) -> None:
    """In 0.8.5 the V1 engine drafts only on demand."""
    if speculates(launch) and launch[V1] and not _wants_v1(launch):
        launch.announce("Eagle" if launch[METHOD] in ("eagle", "eagle3") else "ngram")
        launch[V1] = False


@step(
    "vllm-9",
    "Only the V1 engine drafts",
    when="always",
    then="the V1 engine runs, unless VLLM_USE_V1=0, where speculation is refused",
    releases="0.10.0-0.11.0",
    source=ARGUMENTS,
    stage=Stage.GENERATION,
    sets=(V1,),
)
def second_engine(launch: Launch) -> None:
    """The first engine lost its drafts with 0.10."""
    if launch.environment.get(V1) == "0":
        if speculates(launch):
            launch.reject("Speculative decoding is not supported on vLLM V0.", "NotImplementedError")
        launch[V1] = False
        return
    launch[V1] = True


@step(
    "vllm-10",
    "No draft models",
    when="method draft_model",
    then="refused",
    releases="0.10.0-0.14.1",
    source=ARGUMENTS,
    stage=Stage.GENERATION,
)
def no_draft_models(launch: Launch) -> None:
    """Between the first engine's end and 0.15 no model of its own can draft."""
    if drafts_with(launch, "draft_model"):
        if not launch.since("0.11.0"):
            launch.reject(_NO_DRAFT_MODELS.format("deepseek_mtp"), "NotImplementedError")
        launch.reject(
            "Draft model speculative decoding is not supported yet. Please consider using other speculative decoding "
            "methods such as ngram, medusa, eagle, or mtp.",
            "NotImplementedError",
        )


@step(
    "vllm-85",
    "No drafts between several scheduler steps",
    when="num_scheduler_steps above 1 with speculation",
    then="refused",
    releases="-0.10.0",
    source=ARGUMENTS,
    stage=Stage.GENERATION,
)
def no_multi_step(launch: Launch) -> None:
    """The first engine can do one or the other."""
    if speculates(launch) and launch["num_scheduler_steps"] > 1:
        launch.reject("Speculative decoding is not supported with multi-step (--num-scheduler-steps > 1)")


@step(
    "vllm-86",
    "No chunked prefill with drafts on the first engine",
    when="the V0 engine with speculation and enable_chunked_prefill is not set",
    then="prefill is not chunked, also where a long context alone would chunk it",
    releases="-0.9.2",
    source=ARGUMENTS,
    stage=Stage.GENERATION,
    sets=("enable_chunked_prefill",),
)
def no_chunks(launch: Launch) -> None:
    """A long context alone would chunk."""
    if speculates(launch) and not launch[V1] and launch["enable_chunked_prefill"] is None:
        launch["enable_chunked_prefill"] = False


@step(
    "vllm-87",
    "No EAGLE with chunks on the first engine",
    when="the V0 engine, method eagle or eagle3, and enable_chunked_prefill",
    then="refused",
    releases="-0.9.2",
    source=SPECULATIVE,
    stage=Stage.VERIFY,
)
def no_eagle_with_chunks(launch: Launch) -> None:
    """The first engine hands EAGLE whole prompts."""
    if drafts_with(launch, "eagle", "eagle3") and not launch[V1] and launch["enable_chunked_prefill"]:
        launch.reject("Chunked prefill and EAGLE are not compatible when using V0.")


@step(
    "vllm-88",
    "Drafts stop under load on the first engine",
    when="the V0 engine with disable_by_batch_size",
    then="new requests are not drafted for while that many run",
    releases="-0.9.2",
    source=_V0_WORKER,
    stage=Stage.REQUEST,
)
def drafts_stop(launch: Launch) -> None:
    """Nothing is printed; the speculative line stops moving."""
    if speculates(launch) and not launch[V1] and launch[BATCH_LIMIT] is not None:
        launch.remark(BATCH_LIMIT, f"while {launch[BATCH_LIMIT]} requests run, new ones are not drafted for")


@step(
    "vllm-89",
    "Scoring by batch expansion on the first engine",
    when="the V0 engine verifies with CUDA graphs, or the draft's max_model_len is below the target's",
    then="each drafted token becomes a request of its own in the batch, which is slow",
    says="[Speculative Decoding] Use batch expansion for scoring proposals.",
    releases="-0.9.2",
    source=_V0_WORKER,
    stage=Stage.LOAD,
)
def batch_expansion(launch: Launch) -> None:
    """Scoring several tokens of a request at once needs eager mode."""
    if not speculates(launch) or launch[V1]:
        return
    if not launch["enforce_eager"] or launch[field_of("disable_mqa_scorer")] or _shorter_draft(launch):
        launch.announce()
        launch.remark(METHOD, "drafts are scored as requests of their own (batch expansion), which is slow")


def _shorter_draft(launch: Launch) -> bool:
    length = launch[field_of("max_model_len")]
    return length is not None and length < target_length(launch)


_DEFAULT_V2: Final = {
    "0.22": ("Qwen3ForCausalLM",),
    "0.24": (
        "Qwen3ForCausalLM",
        "DeepseekV2ForCausalLM",
        "Qwen2MoeForCausalLM",
        "GraniteMoeForCausalLM",
        "LlamaForCausalLM",
        "MistralForCausalLM",
    ),
}


@step(
    "vllm-64",
    "Model runner by request",
    when="VLLM_USE_V2_MODEL_RUNNER is set",
    then="it says which model runner runs; before 0.22 the first one where it is not set",
    releases="0.17-",
    source=WHOLE,
    stage=Stage.RUNNER,
    sets=(RUNNER,),
)
def runner_by_request(launch: Launch) -> None:
    """The environment has the first word."""
    asked = launch.environment.get(RUNNER)
    if asked is not None:
        launch[RUNNER] = asked == "1"
    elif not launch.since("0.22"):
        launch[RUNNER] = False


@step(
    "vllm-64",
    "Second model runner without Triton",
    when="the machine has no Triton (a CPU)",
    then="the first model runner runs",
    says="Model Runner V2 requires Triton; using the V1 model runner instead.",
    releases="0.29.0-",
    source=WHOLE,
    stage=Stage.RUNNER,
    sets=(RUNNER,),
)
def no_triton(launch: Launch) -> None:
    """The second runner is written in Triton."""
    if launch[RUNNER] is None and on_cpu(launch):
        launch.announce()
        launch[RUNNER] = False


@step(
    "vllm-64",
    "Second model runner lacks a feature",
    when="the default is the second model runner, and speculation needs what it lacks: suffix, medusa, "
    "mlp_speculator, custom_class, parallel drafting for EAGLE, vocabularies that differ (n-grams up to 0.31, draft "
    "models up to 0.30)",
    then="the first model runner runs",
    says="Model Runner V2 does not yet support {}; using the V1 model runner instead.",
    releases="0.29.0-",
    source=WHOLE,
    stage=Stage.RUNNER,
    sets=(RUNNER,),
)
def second_runner(launch: Launch) -> None:
    """From 0.29 the second runner is the default for every model it can serve."""
    if launch[RUNNER] is not None:
        return
    missing = missing_in_second(launch)
    if missing:
        launch.announce(", ".join(missing))
    launch[RUNNER] = not missing


@step(
    "vllm-64",
    "Second model runner for some targets",
    when="VLLM_USE_V2_MODEL_RUNNER is not set",
    then="the second model runner for a list of targets (dense ones too from 0.26) and for drafts that need it, unless "
    "it lacks a feature",
    says="Model Runner V2 does not yet support {}; using the V1 model runner instead.",
    releases="0.22-0.28.0",
    source=WHOLE,
    stage=Stage.RUNNER,
    sets=(RUNNER,),
)
def second_runner_by_target(launch: Launch) -> None:
    """First a few targets got the second runner."""
    if launch[RUNNER] is not None:
        return
    if drafts_with(launch, "dspark"):
        launch[RUNNER] = True
        return
    if not _default_second(launch) or on_cpu(launch):
        launch[RUNNER] = False
        return
    missing = missing_in_second(launch)
    if missing:
        launch.announce(", ".join(missing))
    launch[RUNNER] = not missing


def _default_second(launch: Launch) -> bool:
    names = launch.target.architectures
    if launch.since("0.26"):
        raise Unsettled("whether the target is dense and not recurrent, which decides the model runner")
    listed = any(name in names for name in _DEFAULT_V2["0.24" if launch.since("0.24") else "0.22"])
    quantized = launch["quantization"] is not None or "quantization_config" in launch.target.raw
    return listed and (launch.since("0.24") or not quantized)


def missing_in_second(launch: Launch) -> list[str]:
    """What speculation needs and the second model runner lacks, in the engine's words."""
    if not speculates(launch):
        return []
    method, missing = launch[METHOD], []
    if launch.since("0.32.0"):
        lacking: tuple[str, ...] = ("suffix", "medusa", "mlp_speculator", "custom_class")
    elif launch.since("0.31.0"):
        lacking = ("ngram", "ngram_gpu", "suffix", "medusa", "mlp_speculator", "custom_class")
    elif launch.since("0.30.0"):
        lacking = ("ngram", "ngram_gpu", "draft_model", "suffix", "medusa", "mlp_speculator", "custom_class")
    else:
        able = ["eagle", "eagle3", "mtp"]
        for first, name in (("0.24", "dflash"), ("0.25", "dspark"), ("0.29", "extract_hidden_states")):
            able += [name] if launch.since(first) else []
        lacking = () if method in able else (method,)
    if method in ("ngram", "ngram_gpu") and not launch.since("0.30.0"):
        missing.append("ngram/ngram_gpu speculative decoding")
    elif method in lacking:
        missing.append(f"speculative method '{method}'")
    if launch.has(BY_BATCH) and not launch.since("0.25") and launch[BY_BATCH] is not None:
        missing.append("dynamic speculative decoding")
    if launch[PARALLEL_DRAFTING] and not (launch.since("0.24") and method in ("dflash", "dspark")):
        missing.append(f"parallel drafting for {'EAGLE ' if launch.since('0.24') else ''}speculative decoding")
    if method == "eagle3" and launch["pipeline_parallel_size"] > 1 and not launch.since("0.30.0"):
        missing.append("EAGLE3 with pipeline parallelism")
    if launch.since("0.32.0") and launch[field_of("use_heterogeneous_vocab")]:
        missing.append("heterogeneous-vocabulary draft models")
    return missing


@step(
    "vllm-73",
    "No two batches with drafts on the second model runner",
    when="enable_dbo with VLLM_USE_V2_MODEL_RUNNER=1 and speculation",
    then="refused",
    releases="0.30.0-",
    source=WHOLE,
    stage=Stage.RUNNER_CHECK,
)
def no_two_batches(launch: Launch) -> None:
    """Asked for by name, the runner must be able to."""
    if launch.environment.get(RUNNER) == "1" and launch["enable_dbo"] and speculates(launch):
        missing = [*missing_in_second(launch), "dual batch overlap with speculative decoding"]
        launch.reject(f"Model Runner V2 does not yet support: {', '.join(missing)}")


@step(
    "vllm-64",
    "Second model runner by force",
    when="VLLM_USE_V2_MODEL_RUNNER=1 and speculation needs what it lacks",
    then="refused",
    releases="0.22-",
    source=WHOLE,
    stage=Stage.RUNNER_CHECK,
)
def forced_second(launch: Launch) -> None:
    """Asked for by name, the runner must be able to."""
    missing = missing_in_second(launch) if launch.environment.get(RUNNER) == "1" else []
    if missing:
        launch.reject(f"Model Runner V2 does not yet support: {', '.join(missing)}")


@step(
    "vllm-73",
    "Two batches on the first model runner",
    when="enable_dbo and VLLM_USE_V2_MODEL_RUNNER is not set",
    then="the first model runner runs",
    says="Model Runner V2 does not yet support dual batch overlap; using the V1 model runner instead.",
    releases="0.30.0-",
    source=WHOLE,
    stage=Stage.RUNNER,
    sets=(RUNNER,),
)
def two_batches(launch: Launch) -> None:
    """Dual batch overlap is older than the second runner."""
    if launch["enable_dbo"] and launch[RUNNER] and RUNNER not in launch.environment:
        launch.announce()
        launch[RUNNER] = False


@step(
    "vllm-65",
    "What needs the second model runner",
    when="VLLM_USE_V2_MODEL_RUNNER=0 with dspark, enable_adaptive_verification, a DFlash head with candidates, or (from "
    "0.31) async_scheduling by request with pipeline_parallel_size above 1",
    then="refused",
    releases="0.29.0-",
    source=WHOLE,
    stage=Stage.RUNNER_CHECK,
)
def needs_second(launch: Launch) -> None:
    """On the first runner they would degrade without a word."""
    if launch[RUNNER]:
        return
    missing = []
    if launch["pipeline_parallel_size"] > 1 and launch[ASYNC] and launch.since("0.31.0"):
        missing.append("pipeline parallelism with async scheduling")
    if drafts_with(launch, "dspark"):
        missing.append("dspark speculative decoding")
    if speculates(launch) and launch[field_of("enable_adaptive_verification")]:
        missing.append("adaptive draft verification")
    if drafts_with(launch, "dflash"):
        heads = ("DFlash2DraftModel", *(("LiLiCorrDraftModel",) if launch.since("0.31.0") else ()))
        if any(name in heads for name in draft_config(launch).architectures):
            missing.append("DFlash candidate-head drafts" if launch.since("0.31.0") else "dflash2 drafts")
    if missing:
        launch.reject(f"Model Runner V1 does not support: {', '.join(missing)}")


@step(
    "vllm-43",
    "Models draft in padded batches",
    when="draft_model or parallel_drafting with disable_padded_drafter_batch on the first model runner",
    then="refused while the draft loads",
    releases="0.15-",
    source="vllm/v1/spec_decode/llm_base_proposer.py (draft_model.py, eagle.py before 0.20)",
    stage=Stage.LOAD,
)
def padded_batches(launch: Launch) -> None:
    """The first model runner's proposer cannot do without."""
    if not loads_draft(launch) or not launch[UNPADDED] or launch[RUNNER]:
        return
    if drafts_with(launch, "draft_model") and not launch.since("0.16"):
        launch.reject(
            "Speculative Decoding with draft models only supports padded drafter batch. Please don't pass "
            "--disable-padded-drafter-batch in the speculative_config.",
            "NotImplementedError",
        )
    if drafts_with(launch, "draft_model") or launch[PARALLEL_DRAFTING]:
        launch.reject(
            "Speculative Decoding with draft models or parallel drafting only supports padded drafter batch. "
            "Please unset disable_padded_drafter_batch in the speculative_config.",
            "NotImplementedError",
        )
