"""TensorRT-LLM: what ``trtllm-serve`` makes of its flags and of ``speculative_config``, 1.1 to 1.4.

Its sources were read as snapshots of the main branch and as pages of releases, so that ranges are
approximate: what is said of "1.3 and later" holds in 1.3.0rc27 to 1.4.0rc4.

Source: ``tensorrt_llm/llmapi/llm_args.py`` and ``tensorrt_llm/_torch/speculative``.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum, auto
from typing import Final

from analysis.resolve.base import Engine, Launch, Unsettled, with_names_of_their_own
from collector.domain.arguments import Value
from collector.domain.versions import Release

READ: Final = tuple(Release.parse(text) for text in ("1.1.0", "1.2.0", "1.3.0rc27", "1.4.0rc1", "1.4.0rc4"))
"""The releases whose sources or pages were read."""

ARGUMENTS: Final = "tensorrt_llm/llmapi/llm_args.py"
CREATOR: Final = "tensorrt_llm/_torch/pyexecutor/py_executor_creator.py"
DRAFTER: Final = "tensorrt_llm/_torch/speculative/drafter.py"
GATE: Final = "tensorrt_llm/_torch/speculative/speculation_gate.py"

SPECULATION: Final = "speculative_config"
NESTED: Final = (SPECULATION, "cuda_graph_config")


class Stage(IntEnum):
    """The stations of a start."""

    PARSE = auto()
    METHOD = auto()
    LENGTH = auto()
    SCHEDULE = auto()
    EXECUTOR = auto()
    SERVE = auto()


def field_of(name: str) -> str:
    """The full name of a setting of ``speculative_config``."""
    return f"{SPECULATION}.{name}"


METHOD: Final = field_of("decoding_type")
LENGTH: Final = field_of("max_draft_len")
ALL_LENGTH: Final = field_of("max_total_draft_tokens")
LAYERS: Final = field_of("num_nextn_predict_layers")
CONCURRENCY: Final = field_of("max_concurrency")
SCHEDULE: Final = field_of("draft_len_schedule")
REJECTION: Final = field_of("use_rejection_sampling")
DYNAMIC_TREE: Final = field_of("use_dynamic_tree")
TREE_WIDTH: Final = field_of("dynamic_tree_max_topK")
CAPTURED: Final = field_of("eagle3_layers_to_capture")
ONE_MODEL: Final = field_of("eagle3_one_model")
RELAXED: Final = field_of("use_relaxed_acceptance_for_thinking")
DRAFT: Final = field_of("speculative_model")
OVERLAP_OFF: Final = "disable_overlap_scheduler"
PADDING: Final = "cuda_graph_config.enable_padding"

_DEFAULTS: Final[Mapping[str, Value]] = {
    OVERLAP_OFF: False,
    "max_batch_size": None,
    PADDING: None,
    **{
        field_of(name): None
        for name in (
            "decoding_type",
            "max_draft_len",
            "max_total_draft_tokens",
            "num_nextn_predict_layers",
            "max_concurrency",
            "draft_len_schedule",
            "acceptance_window",
            "acceptance_length_threshold",
            "acceptance_rate_window_size",
            "acceptance_rate_threshold",
            "use_rejection_sampling",
            "use_dynamic_tree",
            "dynamic_tree_max_topK",
            "eagle_choices",
            "eagle3_layers_to_capture",
            "use_relaxed_acceptance_for_thinking",
            "speculative_model",
            "target_layer_ids",
            "mask_token_id",
        )
    },
    ONE_MODEL: True,
}
_OF_METHOD: Final[Mapping[str, Mapping[str, Value]]] = {
    "NGram": {"max_matching_ngram_size": 2, "is_keep_all": True, "is_use_oldest": True, "is_public_pool": True},
    "SA": {"threshold": 4},
    "MTP": {"relaxed_topk": 1, "relaxed_delta": 0.0},
}


def defaults(release: Release) -> Mapping[str, Value]:
    """The flags that steps decide or ask; the ranges of releases are too coarse for more."""
    del release
    return _DEFAULTS


def spelled(requested: Mapping[str, Value]) -> Mapping[str, Value]:
    """What was asked for, with nested settings under names of their own and one name for the draft."""
    named = with_names_of_their_own(requested, NESTED)
    alias = field_of("speculative_model_dir")
    if alias in named:
        named.setdefault(DRAFT, named[alias])
        del named[alias]
    return named


ENGINE: Final = Engine("tensorrt-llm", "TensorRT-LLM", releases=READ, defaults=defaults, spelled=spelled)
step = ENGINE.step


def speculates(launch: Launch) -> bool:
    """Whether speculation is configured."""
    return METHOD in launch.values and launch[METHOD] is not None


def drafts_with(launch: Launch, *methods: str) -> bool:
    """Whether one of these methods drafts."""
    return speculates(launch) and launch[METHOD] in methods


def _heads(launch: Launch) -> int | None:
    """How many further tokens the target's own layers were trained to predict."""
    count = launch.target.number("num_nextn_predict_layers")
    return int(count) if count is not None else None


@step(
    "tensorrt-llm-18",
    "The command beats the file",
    when="a setting stands in the file of --config and in the command",
    then="that of the command counts; --set PATH=VALUE too",
    source="tensorrt_llm/commands/serve.py",
    stage=Stage.PARSE,
)
def command_beats_file(launch: Launch) -> None:
    """The file is read first."""
    if launch.given("config") and len(launch.requested) > 1:
        launch.remark("config", "what the command itself says counts before the file")


@step(
    "tensorrt-llm-21",
    "No speculation by plain flags",
    when="no file of --config (or --extra_llm_api_options) and no --set speculative_config",
    then="nothing drafts: no plain flag turns it on",
    source="tensorrt_llm/commands/serve.py",
    stage=Stage.PARSE,
    sets=(SPECULATION,),
)
def no_plain_flags(launch: Launch) -> None:
    """Settings exist only where some are given."""
    fields = [flag for flag in _DEFAULTS if flag.startswith(f"{SPECULATION}.")]
    if SPECULATION in launch.depends:
        launch[SPECULATION]  # a variable of the shell: what it holds decides everything
    if any(flag.startswith(f"{SPECULATION}.") for flag in launch.requested):
        return
    launch.leave_out(*fields)
    if launch.given("config"):
        launch.depends[SPECULATION] = f"the file {launch.requested['config']} (--config)"
    elif not launch.given(SPECULATION):
        launch[SPECULATION] = None


@step(
    "tensorrt-llm-20",
    "Two names of the draft",
    when="speculative_model_dir",
    then="the same as speculative_model",
    source=ARGUMENTS,
    stage=Stage.PARSE,
)
def two_names(launch: Launch) -> None:
    """The older name is kept."""
    if speculates(launch) and launch[DRAFT] is not None:
        launch.remark(DRAFT, "speculative_model_dir is the same setting")


@step(
    "tensorrt-llm-8",
    "Automatic choice",
    when="decoding_type AUTO",
    then="n-grams, sized by the batch; every other setting is ignored",
    source="tensorrt_llm/_torch/speculative/auto_heuristic.py",
    stage=Stage.METHOD,
    sets=(METHOD,),
)
def automatic(launch: Launch) -> None:
    """A heuristic over the batch size."""
    if not drafts_with(launch, "AUTO"):
        return
    for flag in launch.requested:
        if flag.startswith(f"{SPECULATION}.") and flag != METHOD:
            launch.ignore(flag, "decoding_type AUTO chooses by itself")
    launch[METHOD] = "NGram"


@step(
    "tensorrt-llm-9",
    "EAGLE is EAGLE-3",
    when="decoding_type Eagle on the PyTorch backend",
    then="Eagle3; checkpoints of EAGLE-1 and EAGLE-2 accept nothing",
    says="speculative_config.decoding_type 'Eagle' is not supported on the PyTorch backend; only 'Eagle3' is supported. "
    "'Eagle' is treated as 'Eagle3'",
    source=ARGUMENTS,
    stage=Stage.METHOD,
    sets=(METHOD,),
)
def eagle_is_eagle3(launch: Launch) -> None:
    """The older kinds of head are not read."""
    if drafts_with(launch, "Eagle") and launch["backend"] in (None, "pytorch"):
        launch.announce()
        launch[METHOD] = "Eagle3"


@step(
    "tensorrt-llm-16",
    "Methods of the other backend",
    when="decoding_type Medusa or Lookahead on the PyTorch backend",
    then="refused",
    source=ARGUMENTS,
    stage=Stage.METHOD,
)
def other_backend(launch: Launch) -> None:
    """They exist for built engines only."""
    backend = launch["backend"] or "pytorch"
    if drafts_with(launch, "Medusa", "Lookahead") and backend == "pytorch":
        launch.reject(f"Speculation type {launch[METHOD]} does not support backend {backend}")


@step(
    "tensorrt-llm-22",
    "Defaults of the method",
    when="NGram, SA or MTP",
    then="max_matching_ngram_size 2, is_keep_all, is_use_oldest and is_public_pool (one pool for all requests); "
    "threshold 4; relaxed_topk 1 and relaxed_delta 0",
    source=ARGUMENTS,
    stage=Stage.METHOD,
)
def of_method(launch: Launch) -> None:
    """Settings that only one method has."""
    if speculates(launch):
        for name, value in _OF_METHOD.get(str(launch[METHOD]), {}).items():
            if launch[field_of(name)] is None:
                launch[field_of(name)] = value


@step(
    "tensorrt-llm-10",
    "One head, again and again",
    when="MTP with a checkpoint that has one head",
    then="the head runs max_draft_len times (1 where it is not given): acceptance falls with depth",
    source=ARGUMENTS,
    stage=Stage.LENGTH,
    sets=(LENGTH,),
)
def one_head(launch: Launch) -> None:
    """More layers than the checkpoint has are not more heads."""
    if not drafts_with(launch, "MTP"):
        return
    if launch[LENGTH] is None:
        launch[LENGTH] = launch[LAYERS] if launch[LAYERS] is not None else 1
    if launch[LENGTH] > 1 and launch.has_target and _heads(launch) == 1:
        launch.remark(LENGTH, "the one head runs again for each token, so that acceptance falls with depth")


@step(
    "tensorrt-llm-11",
    "No more tokens than heads",
    when="MTP with a checkpoint of several heads and a larger max_draft_len",
    then="max_draft_len becomes the number of heads",
    says="MTP: max_draft_len ({}) does not match num_nextn_predict_layers ({}); using max_draft_len={} draft tokens.",
    source="tensorrt_llm/_torch/speculative/utils.py",
    stage=Stage.LENGTH,
    sets=(LENGTH,),
)
def no_more_than_heads(launch: Launch) -> None:
    """Each head predicts one position."""
    if not drafts_with(launch, "MTP") or launch[LENGTH] == 1:
        return
    heads = _heads(launch)
    if heads is not None and heads > 1 and launch[LENGTH] != heads:
        length = min(launch[LENGTH], heads)
        launch.announce(launch[LENGTH], heads, length)
        launch[LENGTH] = length


@step(
    "tensorrt-llm-23",
    "Two names of the length",
    when="MTP with num_nextn_predict_layers",
    then="it is taken for max_draft_len; ignored where both are given",
    says="MTPDecodingConfig: 'num_nextn_predict_layers' is deprecated",
    releases="1.3.0rc27-",
    source=ARGUMENTS,
    stage=Stage.LENGTH,
)
def two_names_of_length(launch: Launch) -> None:
    """The setting moved."""
    if drafts_with(launch, "MTP") and launch.given(LAYERS):
        launch.announce()
        if launch.given(LENGTH):
            launch.ignore(LAYERS, "max_draft_len is given too")


@step(
    "tensorrt-llm-13",
    "Width makes a tree",
    when="dynamic_tree_max_topK",
    then="use_dynamic_tree is on; width 1 runs as a chain",
    source=ARGUMENTS,
    stage=Stage.LENGTH,
    sets=(DYNAMIC_TREE,),
)
def width_makes_tree(launch: Launch) -> None:
    """A tree of one branch is a chain."""
    if not speculates(launch) or launch[TREE_WIDTH] is None:
        return
    launch[DYNAMIC_TREE] = True
    if launch[TREE_WIDTH] == 1:
        launch.remark(TREE_WIDTH, "a tree of one branch runs as a chain")


@step(
    "tensorrt-llm-14",
    "Layers that feed EAGLE-3",
    when="Eagle3 and eagle3_layers_to_capture is not given",
    then="the second, the one before the middle and the fourth from the end; the last for Mistral Large 3",
    source=ARGUMENTS,
    stage=Stage.LENGTH,
    sets=(CAPTURED,),
)
def captured_layers(launch: Launch) -> None:
    """The draft's own config is not asked."""
    if not drafts_with(launch, "Eagle3") or launch[CAPTURED] is not None:
        return
    if any("MistralLarge3" in name for name in launch.target.architectures):
        launch[CAPTURED] = [-1]
        return
    layers = launch.target.layers
    if layers is None:
        raise Unsettled("the number of layers, which the target's config.json does not state")
    launch[CAPTURED] = [1, layers // 2 - 1, layers - 4]


@step(
    "tensorrt-llm-15",
    "Layers and mask of DFlash",
    when="DFlash and target_layer_ids or mask_token_id is not given",
    then="read from dflash_config of the draft; not set where the draft is not a local folder",
    releases="1.3.0rc27-",
    source=ARGUMENTS,
    stage=Stage.LENGTH,
    sets=(field_of("target_layer_ids"), field_of("mask_token_id")),
)
def from_draft(launch: Launch) -> None:
    """The draft was trained with them."""
    if not drafts_with(launch, "DFlash"):
        return
    for name in ("target_layer_ids", "mask_token_id"):
        if launch[field_of(name)] is None:
            nested = launch.draft.raw.get("dflash_config")
            if isinstance(nested, Mapping) and name in nested:
                launch[field_of(name)] = nested[name]


@step(
    "tensorrt-llm-7",
    "Rejection sampling for EAGLE-3 alone",
    when="use_rejection_sampling with another method than Eagle3 in one model, or with sa_config",
    then="off, without a word",
    releases="1.3.0rc27-",
    source=ARGUMENTS,
    stage=Stage.LENGTH,
    sets=(REJECTION,),
)
def rejection_sampling(launch: Launch) -> None:
    """Other drafts have no probabilities to compare."""
    if not speculates(launch) or not launch[REJECTION]:
        return
    if not drafts_with(launch, "Eagle3") or launch[ONE_MODEL] is False or launch.given(field_of("sa_config")):
        launch[REJECTION] = False


@step(
    "tensorrt-llm-2",
    "One limit or the other",
    when="draft_len_schedule with max_concurrency",
    then="refused",
    source=ARGUMENTS,
    stage=Stage.SCHEDULE,
)
def one_limit(launch: Launch) -> None:
    """Both say how long drafts are under load."""
    if speculates(launch) and launch[SCHEDULE] is not None and launch[CONCURRENCY] is not None:
        launch.reject("draft_len_schedule and max_concurrency cannot both be set.")


@step(
    "tensorrt-llm-2",
    "Lengths from a batch size on",
    when="draft_len_schedule",
    then="a key holds from its batch size on; refused where 1 is no key or does not give max_draft_len",
    releases="-1.2.0",
    source=ARGUMENTS,
    stage=Stage.SCHEDULE,
)
@step(
    "tensorrt-llm-2",
    "Lengths up to a batch size",
    when="draft_len_schedule",
    then="a key holds up to its batch size; above the largest key nothing is drafted",
    says="Automatically enabling cuda_graph_config.enable_padding because draft_len_schedule is set.",
    releases="1.3.0rc27-",
    source=ARGUMENTS,
    stage=Stage.SCHEDULE,
    sets=(PADDING,),
)
def lengths_by_batch(launch: Launch) -> None:
    """The meaning of the keys was turned round."""
    schedule = launch[SCHEDULE] if speculates(launch) else None
    if not isinstance(schedule, dict):
        return
    lengths = {int(size): length for size, length in schedule.items()}
    if launch.since("1.3.0rc27"):
        launch.announce()
        launch[PADDING] = True
        launch.remark(SCHEDULE, f"nothing is drafted above {max(lengths)} requests")
        return
    if 1 not in lengths or (launch[LENGTH] is not None and lengths[1] != launch[LENGTH]):
        launch.reject("draft_len_schedule must have the key 1, and its value must be max_draft_len.")
    launch.remark(SCHEDULE, "a key holds from its batch size on; from 1.3 it holds up to it")


@step(
    "tensorrt-llm-3",
    "A limit becomes a schedule",
    when="max_concurrency with Eagle3 in one model (other one-model methods in later builds)",
    then="draft_len_schedule becomes max_draft_len up to that many requests",
    releases="1.3.0rc27-",
    source=ARGUMENTS,
    stage=Stage.SCHEDULE,
    sets=(SCHEDULE,),
)
def limit_becomes_schedule(launch: Launch) -> None:
    """Above the largest key nothing is drafted."""
    if not speculates(launch) or launch[CONCURRENCY] is None:
        return
    if drafts_with(launch, "Eagle3") and launch[ONE_MODEL] is not False:
        launch[SCHEDULE] = {launch[CONCURRENCY]: launch[LENGTH]}
    elif not drafts_with(launch, "NGram", "User_Provided"):
        raise Unsettled(f"whether drafts of {launch[METHOD]} can change their length in this build")


@step(
    "tensorrt-llm-1",
    "Drafts pause under load",
    when="max_concurrency and more active requests than that",
    then="nothing is drafted in that iteration, and again when there are fewer; a line at debug level only",
    says="Use spec decode: False",
    source=DRAFTER,
    stage=Stage.SERVE,
)
def drafts_pause(launch: Launch) -> None:
    """Decided anew for each iteration."""
    if speculates(launch) and launch[CONCURRENCY] is not None:
        launch.remark(CONCURRENCY, f"nothing is drafted while more than {launch[CONCURRENCY]} requests are active")


@step(
    "tensorrt-llm-4",
    "A gate that closes for good",
    when="acceptance_window with acceptance_length_threshold (accepted tokens a step, over finished requests)",
    then="once the mean falls below the threshold nothing is drafted until a restart",
    says="[SpeculationGate] SpeculationGate initialized with window={}, threshold={}",
    releases="-1.2.0",
    source=GATE,
    stage=Stage.SCHEDULE,
)
@step(
    "tensorrt-llm-4",
    "A gate that closes for good",
    when="acceptance_rate_window_size with acceptance_rate_threshold (accepted over drafted, 0 to 1, over iterations)",
    then="once the mean falls below the threshold nothing is drafted until a restart",
    says="[SpeculationGate] SpeculationGate initialized with window={}, threshold={}",
    releases="1.3.0rc27-",
    source=GATE,
    stage=Stage.SCHEDULE,
)
def gate(launch: Launch) -> None:
    """One bad stretch turns speculation off for the life of the server."""
    window, threshold = _gate(launch)
    if speculates(launch) and launch[window] and launch[threshold] is not None:
        launch.announce(launch[window], launch[threshold])
        launch.remark(threshold, f"a mean below {launch[threshold]} turns drafting off until a restart")


def _gate(launch: Launch) -> tuple[str, str]:
    if launch.since("1.3.0rc27"):
        return field_of("acceptance_rate_window_size"), field_of("acceptance_rate_threshold")
    return field_of("acceptance_window"), field_of("acceptance_length_threshold")


@step(
    "tensorrt-llm-5",
    "Half a gate",
    when="only one of window and threshold",
    then="ignored",
    source=GATE,
    stage=Stage.SCHEDULE,
)
def half_a_gate(launch: Launch) -> None:
    """Both are needed."""
    window, threshold = _gate(launch)
    if speculates(launch):
        for one, other in ((window, threshold), (threshold, window)):
            if launch[one] is not None and launch[other] is None:
                launch.ignore(one, f"nothing happens without {other.removeprefix(f'{SPECULATION}.')}")


@step(
    "tensorrt-llm-6",
    "No overlap with drafts of the host",
    when="a method that drafts on the host: NGram, User_Provided (and EAGLE-3 or MTP in two models, in older builds)",
    then="disable_overlap_scheduler is on",
    says="Disable overlap scheduler for speculation mode {}",
    source=CREATOR,
    stage=Stage.EXECUTOR,
    sets=(OVERLAP_OFF,),
)
def no_overlap(launch: Launch) -> None:
    """The host needs the accepted tokens before it can draft."""
    if launch[OVERLAP_OFF]:
        return
    if drafts_with(launch, "Eagle3", "MTP") and launch[ONE_MODEL] is False and not launch.since("1.2.0"):
        raise Unsettled("whether this build overlaps with a draft in a model of its own")
    if drafts_with(launch, "NGram", "User_Provided"):
        launch.announce(str(launch[METHOD]).upper())
        launch[OVERLAP_OFF] = True


@step(
    "tensorrt-llm-24",
    "Saving hidden states",
    when="decoding_type SaveState",
    then="one request at a time, no overlap, no CUDA graphs",
    says="SaveHiddenStatesDecodingConfig is active, setting max_batch_size to 1, disabling overlap scheduler, and setting "
    "cuda_graph_config to None",
    source=ARGUMENTS,
    stage=Stage.EXECUTOR,
    sets=("max_batch_size", OVERLAP_OFF, "cuda_graph_config"),
)
def saving_states(launch: Launch) -> None:
    """Made to collect training data."""
    if drafts_with(launch, "SaveState", "SaveHiddenStates"):
        launch.announce()
        launch["max_batch_size"] = 1
        launch[OVERLAP_OFF] = True
        launch["cuda_graph_config"] = None


@step(
    "tensorrt-llm-12",
    "Looser acceptance while thinking",
    when="use_relaxed_acceptance_for_thinking",
    then="between DeepSeek's thinking tokens (by default) acceptance is by rank and difference: not comparable with exact "
    "acceptance; other targets never enter the phase",
    source=ARGUMENTS,
    stage=Stage.SERVE,
)
def looser_acceptance(launch: Launch) -> None:
    """The ids that begin and end the phase are DeepSeek's unless given."""
    if speculates(launch) and launch[RELAXED]:
        launch.remark(RELAXED, "while the target thinks, acceptance is looser: not comparable with exact acceptance")


@step(
    "tensorrt-llm-17",
    "Tokenizers are not compared",
    when="a draft of its own is named",
    then="loaded and run; with another tokenizer it accepts next to nothing",
    source=ARGUMENTS,
    stage=Stage.SERVE,
)
def tokenizers(launch: Launch) -> None:
    """The documentation warns, the engine does not look."""
    if speculates(launch) and launch[DRAFT] is not None:
        launch.remark(DRAFT, "nothing checks that draft and target share a tokenizer")


@step(
    "tensorrt-llm-19",
    "Grammars with two models",
    when="guided_decoding_backend with a draft in a model of its own",
    then="not a supported combination",
    source="docs/source/features/speculative-decoding.md",
    stage=Stage.SERVE,
)
def grammars(launch: Launch) -> None:
    """The grammar follows one model."""
    if speculates(launch) and launch["guided_decoding_backend"] and launch[ONE_MODEL] is False:
        launch.remark("guided_decoding_backend", "not supported with a draft in a model of its own")
