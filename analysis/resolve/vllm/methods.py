"""Which method drafts: from what is given, from the draft's path, from its config."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from analysis.resolve.base import Launch
from analysis.resolve.vllm.engine import (
    DRAFT,
    DRAFT_QUANTIZATION,
    METHOD,
    MODEL_IS_TARGET,
    PARALLEL_DRAFTING,
    SPECULATIVE,
    TOKENS,
    Stage,
    draft_config,
    drafts_with,
    field_of,
    known_methods,
    module_methods,
    speculates,
    step,
    target_type,
)
from analysis.resolve.vllm.modules import module_of

_NGRAM: Final = ("ngram", "[ngram]")
_FOUND: Final = "method is found"
_NO_DRAFT_MODELS: Final = (
    "Speculative decoding with draft model is not supported yet. Please consider using other speculative decoding "
    "methods such as ngram, medusa, eagle, or {}."
)
_ADDRESSES: Final = ("http://", "https://", "file://")


@step(
    "vllm-94",
    "Method the release does not know",
    when="method is no name of a method",
    then="refused",
    releases="0.9.1-",
    source=SPECULATIVE,
    stage=Stage.GIVEN,
)
def unknown_method(launch: Launch) -> None:
    """The name is checked against a list."""
    if not speculates(launch) or launch[METHOD] is None:
        return
    names = known_methods(launch)
    if launch[METHOD] not in names and launch[METHOD] != "[ngram]":
        listed = ", ".join(f"'{name}'" for name in names[:-1]) + f" or '{names[-1]}'"
        launch.reject(f"method\n  Input should be {listed}", "ValidationError")


@step(
    "vllm-92",
    "A class drafts",
    when="the draft's name has a dot and no slash, such as some.module.Drafter or a local folder Qwen3-0.6B, also "
    "where a method is given",
    then="method becomes custom_class",
    releases="0.22-0.25.1",
    source=SPECULATIVE,
    stage=Stage.GIVEN,
    sets=(METHOD,),
)
@step(
    "vllm-92",
    "A class drafts",
    when="no method, and the draft's name is a dotted path of Python names",
    then="method becomes custom_class",
    releases="0.26-",
    source=SPECULATIVE,
    stage=Stage.GIVEN,
    sets=(METHOD,),
)
def custom_class(launch: Launch) -> None:
    """A dotted name stands for a class to import."""
    model = launch[DRAFT] if speculates(launch) else None
    if model is None or "/" in model or "." not in model or model.startswith(_ADDRESSES):
        return
    if launch.since("0.26") and (launch[METHOD] or not all(part.isidentifier() for part in model.split("."))):
        return
    launch[METHOD] = "custom_class"


@step(
    "vllm-1",
    "N-grams by the draft's name",
    when="no method, and the draft is named ngram or [ngram]",
    then="method becomes ngram",
    source=SPECULATIVE,
    stage=Stage.GIVEN,
    sets=(METHOD,),
)
def ngram_by_name(launch: Launch) -> None:
    """The name of the method may stand where the draft belongs."""
    if not speculates(launch):
        return
    if launch[METHOD] in _NGRAM or (launch[METHOD] is None and launch[DRAFT] in _NGRAM):
        launch[METHOD] = "ngram"


@step(
    "vllm-2",
    "A model drafts unless told otherwise",
    when="no method, and the draft's name is not that of another method",
    then="method becomes draft_model, until the draft's path or config say otherwise",
    releases="0.17-",
    source=SPECULATIVE,
    stage=Stage.GIVEN,
    sets=(METHOD,),
)
def model_unless_told(launch: Launch) -> None:
    """The default before the draft is looked at."""
    if speculates(launch) and launch[METHOD] is None:
        launch[METHOD] = "draft_model"


@step(
    "vllm-7",
    "One name for all modules",
    when="method is the name of one model's module, such as deepseek_mtp or qwen3_next_mtp",
    then="method becomes mtp",
    says="method `{}` is deprecated and replaced with mtp.",
    releases="0.11.0-",
    source=SPECULATIVE,
    stage=Stage.GIVEN,
    sets=(METHOD,),
)
def one_name_for_modules(launch: Launch) -> None:
    """Before 0.11 each model's module had a method of its own."""
    if speculates(launch) and launch[METHOD] in module_methods(launch) and launch[METHOD] != "mtp":
        launch.announce(launch[METHOD])
        launch[METHOD] = "mtp"


@step(
    "vllm-38",
    "The target's checkpoint drafts",
    when="no draft is named, whatever the method, and the target is a model with a module of its own (DeepSeek-V3; MiMo "
    "from 0.9, Ernie and Qwen3-Next from 0.10.2)",
    then="the draft is the target's checkpoint, with its quantization (from 0.10.2) where none is given",
    releases="-0.10.2",
    source=SPECULATIVE,
    stage=Stage.GIVEN,
    sets=(DRAFT, DRAFT_QUANTIZATION),
)
@step(
    "vllm-38",
    "The target's checkpoint drafts",
    when="method mtp (dspark too, from 0.25) and no draft is named",
    then="the draft is the target's checkpoint, with its quantization where none is given",
    releases="0.11.0-",
    source=SPECULATIVE,
    stage=Stage.GIVEN,
    sets=(DRAFT, DRAFT_QUANTIZATION),
)
def target_drafts(launch: Launch) -> None:
    """A module that predicts further tokens ships with the target."""
    if not _lacks_draft(launch):
        return
    if launch.since("0.11.0"):
        own = launch[METHOD] == "mtp" or (launch[METHOD] == "dspark" and launch.since("0.25"))
    else:
        kinds = {"deepseek_v3": "0.8", "mimo": "0.9", "ernie4_5_moe": "0.10.2", "qwen3_next": "0.10.2"}
        own = launch.since(kinds.get(target_type(launch), "99"))
    if not own:
        return
    launch.notes[MODEL_IS_TARGET] = True
    launch[DRAFT] = launch["model"]
    if launch.since("0.10.2") and not launch[DRAFT_QUANTIZATION] and launch["quantization"]:
        launch[DRAFT_QUANTIZATION] = launch["quantization"]


def _lacks_draft(launch: Launch) -> bool:
    return speculates(launch) and launch[DRAFT] is None and launch[TOKENS] is not None


@step(
    "vllm-95",
    "Nothing to draft with",
    when="no draft is named, and the method needs one",
    then="refused",
    source=SPECULATIVE,
    stage=Stage.GIVEN,
)
def nothing_to_draft_with(launch: Launch) -> None:
    """N-grams and suffixes need no weights; every other method does."""
    if not _lacks_draft(launch) or launch[METHOD] in ("ngram", "ngram_gpu", "suffix", "extract_hidden_states"):
        return
    if launch[METHOD] == "custom_class":
        launch.reject(
            "method='custom_class' requires 'model' to contain the custom proposer module path "
            "(e.g., 'my_module.MyProposer')."
        )
    but = "but " if launch.since("0.11.0") else ""
    launch.reject(f"num_speculative_tokens was provided {but}without speculative model.")


@step(
    "vllm-48",
    "No graphs for a sparse module",
    when="method mtp from the checkpoint of a DeepSeek-V3.2",
    then="the draft's enforce_eager is on: no CUDA graph for the draft",
    releases="0.11.0-0.28.0",
    source=SPECULATIVE,
    stage=Stage.GIVEN,
    sets=(field_of("enforce_eager"),),
)
def sparse_module(launch: Launch) -> None:
    """Its sparse attention could not be captured."""
    if drafts_with(launch, "mtp") and launch.notes.get(MODEL_IS_TARGET) and target_type(launch) == "deepseek_v32":
        launch[field_of("enforce_eager")] = True


def _open(launch: Launch) -> bool:
    """Whether the method is still to be found in the draft's path and config."""
    without: tuple[str, ...] = ("ngram", "custom_class")
    without += ("suffix",) if launch.since("0.11.1") else ()
    without += ("extract_hidden_states",) if launch.since("0.17") else ()
    without += ("ngram_gpu",) if launch.since("0.18") else ()
    return (
        speculates(launch)
        and launch[METHOD] not in without
        and launch[DRAFT] is not None
        and not launch.notes.get(_FOUND)
    )


def _find(launch: Launch, method: str) -> None:
    launch.notes[_FOUND] = True
    launch[METHOD] = method


@step(
    "vllm-8",
    "EAGLE as asked for",
    when="method eagle or eagle3 (dflash from 0.20, dspark from 0.25)",
    then="kept, whatever kind of head the checkpoint is",
    source=SPECULATIVE,
    stage=Stage.DETECT,
)
def as_asked(launch: Launch) -> None:
    """No check that the head is of this kind: only acceptance shows it."""
    kept = ("eagle", "eagle3", *(("dflash",) if launch.since("0.20") else ()))
    kept += ("dspark",) if launch.since("0.25") else ()
    if not _open(launch) or launch[METHOD] not in kept:
        return
    launch.notes[_FOUND] = True
    if drafts_with(launch, "eagle", "eagle3") and launch.has_draft and not launch.notes.get(MODEL_IS_TARGET):
        third = any("Eagle3" in name for name in launch.draft.architectures)
        if third and drafts_with(launch, "eagle"):
            launch.remark(METHOD, "the head is of EAGLE-3's kind; it is run as asked, and accepts little")


@step(
    "vllm-3",
    "EAGLE by the path",
    when="the draft's path has eagle- or eagle3- in it, folders included, and method is not an EAGLE",
    then="method becomes eagle, also for a head of EAGLE-3",
    releases="-0.10.1.1",
    source=SPECULATIVE,
    stage=Stage.DETECT,
    sets=(METHOD,),
)
@step(
    "vllm-3",
    "EAGLE by the path",
    when="the draft's path has eagle- in it, folders included, and method is not of the EAGLE family",
    then="method becomes eagle, whatever was asked for",
    releases="0.10.2-",
    source=SPECULATIVE,
    stage=Stage.DETECT,
    sets=(METHOD,),
)
def eagle_by_path(launch: Launch) -> None:
    """The whole path counts, in lower case."""
    if not _open(launch):
        return
    path = launch[DRAFT].lower()
    if "eagle-" in path or ("eagle3-" in path and not launch.since("0.10.2")):
        _find(launch, "eagle")


@step(
    "vllm-4",
    "EAGLE-3 by the path",
    when="the draft's path has eagle3 in it, folders included, and method is not of the EAGLE family",
    then="method becomes eagle3, whatever was asked for",
    releases="0.10.2-",
    source=SPECULATIVE,
    stage=Stage.DETECT,
    sets=(METHOD,),
)
def eagle3_by_path(launch: Launch) -> None:
    """The whole path counts, in lower case."""
    if _open(launch) and "eagle3" in launch[DRAFT].lower():
        _find(launch, "eagle3")


@step(
    "vllm-5",
    "Blocks by the path or the class",
    when="the draft's path has dflash (dspark from 0.25) in it, or its class is of that kind, and another method was "
    "asked for",
    then="method becomes dflash or dspark",
    releases="0.20-",
    source=SPECULATIVE,
    stage=Stage.DETECT,
    sets=(METHOD,),
)
def block_by_path(launch: Launch) -> None:
    """Some drafts of this kind have a class of their own."""
    if not _open(launch):
        return
    path = launch[DRAFT].lower()
    if "dflash" in path:
        _find(launch, "dflash")
    elif "dspark" in path and launch.since("0.25"):
        _find(launch, "dspark")
    elif launch.since("0.25"):
        _block_by_class(launch)


def _block_by_class(launch: Launch) -> None:
    config = draft_config(launch)
    names, spark = config.architectures, ["Qwen3DSparkModel"]
    spark += ["Gemma4DSparkModel"] if launch.since("0.26") else []
    spark += ["Qwen3OmniDSparkModel"] if launch.since("0.29") else []
    renamed = launch.since("0.29") and "DSparkDraftModel" in names and config.raw.get("model_type") == "qwen3"
    if "MuseGlimmerAssistantModel" in names and launch.since("0.28"):
        _find(launch, "dflash")
    elif renamed or any(name in spark for name in names):
        _find(launch, "dspark")


@step(
    "vllm-6",
    "Method by the draft's config",
    when="model_type of the draft is medusa, mlp_speculator, or that of a model with a multi-token-prediction module",
    then="method becomes medusa, mlp_speculator or mtp (deepseek_mtp, ernie_mtp, qwen3_next_mtp before 0.11), whatever "
    "was asked for",
    source=SPECULATIVE,
    stage=Stage.DETECT,
    sets=(METHOD,),
)
def method_by_config(launch: Launch) -> None:
    """The checkpoint knows better than the command."""
    if not _open(launch):
        return
    kind = draft_config(launch).raw.get("model_type")
    if drafts_with(launch, "medusa") and launch.since("0.25"):
        kind = "medusa"  # old checkpoints do not say what they are
    if kind in ("medusa", "mlp_speculator"):
        _find(launch, kind)
        return
    module = module_of(draft_config(launch), launch)
    if module is not None:
        _find(launch, module.method(launch))


@step(
    "vllm-2",
    "A model drafts",
    when="nothing in method, path or config says otherwise",
    then="method becomes draft_model, whatever was asked for",
    releases="-0.9.2",
    source=SPECULATIVE,
    stage=Stage.DETECT,
    sets=(METHOD,),
)
def model_drafts(launch: Launch) -> None:
    """Every other checkpoint is taken for a model."""
    if _open(launch):
        _find(launch, "draft_model")


@step(
    "vllm-10",
    "No draft models",
    when="nothing in method, path or config says that the draft is other than a model",
    then="refused",
    releases="0.10.0-0.14.1",
    source=SPECULATIVE,
    stage=Stage.DETECT,
)
def model_refused(launch: Launch) -> None:
    """Every other checkpoint is taken for a model, and models cannot draft."""
    if _open(launch):
        other = "mtp" if launch.since("0.11.0") else "deepseek_mtp"
        launch.reject(_NO_DRAFT_MODELS.format(other), "NotImplementedError")


@step(
    "vllm-96",
    "Method and checkpoint do not fit",
    when="method is neither draft_model nor of the EAGLE family, and path and config do not bear it out; up to 0.16 "
    "also without a method",
    then="refused",
    releases="0.15-",
    source=SPECULATIVE,
    stage=Stage.DETECT,
)
def unsupported_method(launch: Launch) -> None:
    """A checkpoint that does not show its kind is a model or nothing."""
    if _open(launch) and launch[METHOD] != "draft_model":
        launch.reject(f"Unsupported speculative method: '{launch[METHOD]}'", "NotImplementedError")


@step(
    "vllm-42",
    "Blocks are drafted at once",
    when="method dflash or dspark",
    then="parallel_drafting is on",
    releases="0.20-",
    source=SPECULATIVE,
    stage=Stage.DETECT,
    sets=(PARALLEL_DRAFTING,),
)
def blocks_at_once(launch: Launch) -> None:
    """One pass drafts the whole block."""
    if drafts_with(launch, "dflash", *(("dspark",) if launch.since("0.25") else ())):
        launch[PARALLEL_DRAFTING] = True


_THIRD_TARGETS: Final[Mapping[str, tuple[str, ...]]] = {
    "0.8": ("llama",),
    "0.10.1": ("qwen",),
    "0.11.0": ("minicpm", "gpt_oss"),
    "0.16": ("hunyuan_vl", "hunyuan_v1_dense", "afmoe"),
    "0.17": ("nemotron_h",),
    "0.18": ("deepseek_v2", "deepseek_v3", "kimi_k2", "kimi_k25"),
    "0.19": ("minimax_m2", "gemma4"),
    "0.21": ("laguna",),
}


@step(
    "vllm-97",
    "EAGLE-3 for some targets",
    when="method eagle3 (extract_hidden_states from 0.17, dflash from 0.20), and the target's model_type is none of a "
    "list: llama; qwen from 0.10.1; minicpm and gpt_oss from 0.11; more from 0.16",
    then="refused",
    releases="-0.21.0",
    source=SPECULATIVE,
    stage=Stage.VERIFY,
)
def third_targets(launch: Launch) -> None:
    """A target must hand out its hidden states."""
    methods = ("eagle3", *(("extract_hidden_states",) if launch.since("0.17") else ()))
    if not drafts_with(launch, *methods, *(("dflash",) if launch.since("0.20") else ())):
        return
    able = [name for first, names in _THIRD_TARGETS.items() if launch.since(first) for name in names]
    kind = target_type(launch)
    if any(name in kind for name in able):
        return
    got = f"Got self.target_model_config.hf_text_config.model_type={kind!r}"
    if not launch.since("0.10.1"):
        launch.reject(f"Eagle3 is only supported for Llama models. {got}")
    named = launch[METHOD] if launch.since("0.17") else "Eagle3"
    launch.reject(f"{named} is only supported for {able} models. {got}")
