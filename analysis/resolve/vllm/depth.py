"""How many tokens are drafted, how far the lookup goes, and how long a context the draft follows."""

from __future__ import annotations

import ast
from typing import Final

from analysis.resolve.base import Launch
from analysis.resolve.vllm.engine import (
    BATCH_LIMIT,
    DRAFT_LENGTH,
    LOOKUP_MAX,
    LOOKUP_MIN,
    METHOD,
    SPECULATIVE,
    TOKENS,
    V1,
    Stage,
    draft_config,
    drafts_with,
    field_of,
    loads_draft,
    refuse_long,
    speculates,
    stated_context,
    step,
    target_length,
)
from analysis.resolve.vllm.modules import Module, module_of

_TREE: Final = field_of("speculative_token_tree")
_SUFFIX_DEPTH: Final = field_of("suffix_decoding_max_tree_depth")
_RUNNER_FILE: Final = "vllm/v1/worker/gpu_model_runner.py"
_SAMPLER: Final = "vllm/v1/sample/rejection_sampler.py"
_LOOKUP_DEFAULT: Final = 5


def _looks_up(launch: Launch) -> bool:
    return drafts_with(launch, "ngram", *(("ngram_gpu",) if launch.since("0.18") else ()))


@step(
    "vllm-98",
    "Figures in range",
    when="num_speculative_tokens, max_model_len, draft_tensor_parallel_size or a lookup bound below 1, or "
    "disable_by_batch_size below 2",
    then="refused",
    releases="0.11.1-",
    source=SPECULATIVE,
    stage=Stage.GIVEN,
)
def figures_in_range(launch: Launch) -> None:
    """The settings are checked one by one before anything else."""
    bounds = {
        TOKENS: "greater than 0",
        "speculative_config.draft_tensor_parallel_size": "greater than or equal to 1",
        DRAFT_LENGTH: "greater than or equal to 1",
        LOOKUP_MAX: "greater than or equal to 1",
        LOOKUP_MIN: "greater than or equal to 1",
        BATCH_LIMIT: "greater than or equal to 2",
    }
    for flag, words in bounds.items():
        value = launch[flag] if speculates(launch) else None
        if isinstance(value, int) and value < (2 if flag == BATCH_LIMIT else 1):
            launch.reject(f"{flag.removeprefix('speculative_config.')}\n  Input should be {words}", "ValidationError")


@step(
    "vllm-24",
    "Lookup of five tokens",
    when="method ngram (ngram_gpu from 0.18) and neither prompt_lookup_min nor prompt_lookup_max is given",
    then="both become 5",
    source=SPECULATIVE,
    stage=Stage.LOOKUP,
    sets=(LOOKUP_MIN, LOOKUP_MAX),
)
def five_tokens(launch: Launch) -> None:
    """The help says that the lower bound is 1."""
    if _looks_up(launch) and launch[LOOKUP_MIN] is None and launch[LOOKUP_MAX] is None:
        launch[LOOKUP_MIN] = launch[LOOKUP_MAX] = _LOOKUP_DEFAULT


@step(
    "vllm-25",
    "One bound is both",
    when="method ngram (ngram_gpu from 0.18) and one of the lookup bounds is given",
    then="the other becomes the same: only n-grams of that one length match; refused where the lower is above the "
    "upper",
    source=SPECULATIVE,
    stage=Stage.LOOKUP,
    sets=(LOOKUP_MIN, LOOKUP_MAX),
)
def one_bound(launch: Launch) -> None:
    """A single length is looked up."""
    if not _looks_up(launch):
        return
    low, high = launch[LOOKUP_MIN], launch[LOOKUP_MAX]
    if low is None:
        launch[LOOKUP_MIN] = low = high
    if high is None:
        launch[LOOKUP_MAX] = high = low
    if not launch.since("0.11.1"):
        for name, value in (("prompt_lookup_min", low), ("prompt_lookup_max", high)):
            if value < 1:
                launch.reject(f"{name}={value} must be > 0")
    if low > high:
        launch.reject(f"prompt_lookup_min={low} must be <= prompt_lookup_max={high}")


@step(
    "vllm-26",
    "Lookup bounds in vain",
    when="prompt_lookup_min or prompt_lookup_max with a method that looks nothing up",
    then="both become 0",
    source=SPECULATIVE,
    stage=Stage.LOOKUP,
    sets=(LOOKUP_MIN, LOOKUP_MAX),
)
def bounds_in_vain(launch: Launch) -> None:
    """Only n-grams are looked up."""
    if speculates(launch) and not _looks_up(launch) and not drafts_with(launch, "suffix"):
        launch[LOOKUP_MIN] = launch[LOOKUP_MAX] = 0


@step(
    "vllm-23",
    "Depth of the suffix tree",
    when="method suffix and num_speculative_tokens is not given",
    then="it becomes suffix_decoding_max_tree_depth, 24 by default",
    says="Defaulted num_speculative_tokens to {} for suffix decoding.",
    releases="0.11.1-",
    source=SPECULATIVE,
    stage=Stage.LOOKUP,
    sets=(TOKENS,),
)
def suffix_depth(launch: Launch) -> None:
    """An upper limit; the match decides each time."""
    if speculates(launch) and launch[TOKENS] is None and drafts_with(launch, "suffix"):
        launch.announce(launch[_SUFFIX_DEPTH])
        launch[TOKENS] = launch[_SUFFIX_DEPTH]


def _module(launch: Launch) -> Module | None:
    if drafts_with(launch, "medusa") and launch.since("0.25"):
        return None  # its config is taken for that of Medusa heads, whatever it says
    return module_of(draft_config(launch), launch, for_method=False)


def _predicted(launch: Launch) -> int | None:
    """``n_predict`` of the draft: of its module, else as its config states it."""
    config = draft_config(launch)
    module = _module(launch)
    if module is not None:
        return module.predicts
    stated = config.raw.get("n_predict")
    gemma = "Gemma4DSparkModel" in config.architectures and launch.since("0.26")
    if stated is None and gemma and drafts_with(launch, "dspark"):
        stated = config.raw.get("block_size")
    return stated if isinstance(stated, int) else None


@step(
    "vllm-21",
    "One module, several times",
    when="a module drafts more than one token (DeepSeek and its kin; Ernie and Qwen3-Next from 0.10.2)",
    then="kept: the same layer runs again for each",
    says="All {} MTP models only have one layer. Might need some code changes to support multiple layers.",
    releases="0.9-0.10.2",
    source=SPECULATIVE,
    stage=Stage.DEPTH,
)
@step(
    "vllm-21",
    "One module, several times",
    when="method mtp by the draft's config, and more than one token",
    then="kept: the same layer runs again for each",
    says="Enabling num_speculative_tokens > 1 will runmultiple times of forward on same MTP layer,which may result in "
    "lower acceptance rate",
    releases="0.11.0-0.16.0",
    source=SPECULATIVE,
    stage=Stage.DEPTH,
)
@step(
    "vllm-21",
    "One module, several times",
    when="method mtp by the draft's config, and more than one token (not Step-3.5 from 0.23, nor Inkling from 0.26)",
    then="kept: the same layer runs again for each",
    says="Enabling num_speculative_tokens > 1 will run multiple times of forward on same MTP layer,which may result "
    "in lower acceptance rate",
    releases="0.17-",
    source=SPECULATIVE,
    stage=Stage.DEPTH,
)
def one_module(launch: Launch) -> None:
    """The module was trained for one token ahead; refused where no number of tokens is given."""
    names = ("mtp",) if launch.since("0.11.0") else ("deepseek_mtp", "ernie_mtp", "qwen3_next_mtp")
    if not drafts_with(launch, *names) or not loads_draft(launch):
        return
    tokens = launch[TOKENS]
    if tokens is None:
        launch.reject("'>' not supported between instances of 'NoneType' and 'int'", "TypeError")
    module = _module(launch)
    several = ("step3p5_mtp", *(("inkling_mtp",) if launch.since("0.26") else ()))
    if tokens <= 1 or (module is not None and launch.since("0.23") and module.name in several):
        return
    named = {"ernie_mtp": "Ernie", "qwen3_next_mtp": "Qwen3Next"}.get(launch[METHOD], "Deepseek")
    launch.announce(named)
    launch.remark(TOKENS, "the module's one layer runs again for each token, so that acceptance falls with depth")


@step(
    "vllm-22",
    "First layer of MiMo-V2",
    when="the draft is the module of a MiMo-V2, which has several layers",
    then="only its first layer drafts",
    releases="0.21-",
    source=SPECULATIVE,
    stage=Stage.DEPTH,
)
def first_layer(launch: Launch) -> None:
    """The checkpoint has more layers than are used."""
    if drafts_with(launch, "mtp") and loads_draft(launch):
        module = _module(launch)
        if module is not None and module.name == "mimo_v2_mtp":
            launch.remark(TOKENS, "only the module's first layer drafts, however many the checkpoint has")


@step(
    "vllm-19",
    "Tokens as the draft predicts",
    when="num_speculative_tokens is not given, and the draft's config has n_predict (block_size for dspark, from 0.31)",
    then="it becomes that number; refused where the config has none",
    source=SPECULATIVE,
    stage=Stage.DEPTH,
    sets=(TOKENS,),
)
def tokens_as_predicted(launch: Launch) -> None:
    """Some drafts predict a fixed number of tokens."""
    if not speculates(launch) or launch[TOKENS] is not None or not loads_draft(launch):
        return
    predicted = _predicted(launch)
    if drafts_with(launch, "dspark") and launch.since("0.31"):
        raw = draft_config(launch).raw
        predicted = raw.get("block_size", raw.get("dspark_block_size"))
    if predicted is not None:
        launch[TOKENS] = predicted
    elif launch.since("0.21"):
        launch.reject("A speculative model was provided, but `num_speculative_tokens` was not provided")
    elif launch.since("0.17") and launch[_TREE] is None:
        launch.reject(
            "A speculative model was provided, but neither `speculative_token_tree` nor `num_speculative_tokens` was "
            "provided"
        )


@step(
    "vllm-20",
    "Whole rounds of the module",
    when="num_speculative_tokens above n_predict of the draft and no multiple of it",
    then="refused",
    source=SPECULATIVE,
    stage=Stage.DEPTH,
)
def whole_rounds(launch: Launch) -> None:
    """A module runs a whole number of times."""
    if not loads_draft(launch) or launch[TOKENS] is None or _always_one(launch):
        return
    if drafts_with(launch, "dspark") and launch.since("0.31"):
        return
    predicted = _predicted(launch)
    if predicted and launch[TOKENS] > predicted and launch[TOKENS] % predicted:
        launch.reject(f"num_speculative_tokens:{launch[TOKENS]} must be divisible by n_predict={predicted}")


def _always_one(launch: Launch) -> bool:
    """Heads whose config has no such number need not be looked at."""
    return drafts_with(launch, "eagle", "eagle3", "dflash", "medusa") and not launch.has_draft


@step(
    "vllm-106",
    "Blocks of DSpark are whole",
    when="method dspark, and num_speculative_tokens is below dspark_block_size of the draft",
    then="refused",
    releases="0.26-0.27.1",
    source=SPECULATIVE,
    stage=Stage.DEPTH,
)
def whole_blocks(launch: Launch) -> None:
    """Fewer tokens gave wrong output."""
    if not drafts_with(launch, "dspark") or not loads_draft(launch):
        return
    block = draft_config(launch).raw.get("dspark_block_size")
    if block is not None and launch[TOKENS] < block:
        launch.reject(
            f"DSpark requires num_speculative_tokens >= dspark_block_size ({block}); got {launch[TOKENS]}. Smaller "
            f"values produce incorrect output. Use num_speculative_tokens={block} or larger (e.g. 7)."
        )


@step(
    "vllm-107",
    "One token of Inkling",
    when="the draft is an Inkling module, and num_speculative_tokens is not 1",
    then="refused",
    releases="0.26-0.27.1",
    source=SPECULATIVE,
    stage=Stage.DEPTH,
)
def one_token(launch: Launch) -> None:
    """Its further depths came with 0.28."""
    if drafts_with(launch, "mtp") and loads_draft(launch) and launch[TOKENS] != 1:
        module = _module(launch)
        if module is not None and module.name == "inkling_mtp":
            launch.reject("Inkling MTP currently supports exactly one speculative token")


@step(
    "vllm-44",
    "Tree of drafts",
    when="a draft model is loaded",
    then="speculative_token_tree becomes a chain of num_speculative_tokens where it is not given (refused without "
    "such a number), else is sorted by depth",
    releases="0.10.1-0.20.2",
    source=SPECULATIVE,
    stage=Stage.DEPTH,
    sets=(_TREE,),
)
def tree_of_drafts(launch: Launch) -> None:
    """A chain is a tree without branches."""
    if not loads_draft(launch):
        return
    if launch[_TREE] is None and launch[TOKENS] is None:
        launch.reject("'NoneType' object cannot be interpreted as an integer", "TypeError")
    if launch[_TREE] is None:
        launch[_TREE] = str([(0,) * depth for depth in range(1, launch[TOKENS] + 1)])
        return
    try:
        branches = ast.literal_eval(launch[_TREE])
        launch[_TREE] = str(sorted(branches, key=lambda branch: (len(branch), branch)))
    except (ValueError, SyntaxError, TypeError) as error:
        launch.reject(str(error), type(error).__name__)


@step(
    "vllm-108",
    "Few candidates for DSpark",
    when="dspark_draft_topk with another method than dspark, a class other than Qwen3's, or more than the vocabulary",
    then="refused",
    releases="0.28-",
    source=SPECULATIVE,
    stage=Stage.DEPTH,
)
def few_candidates(launch: Launch) -> None:
    """Only Qwen3's Markov head can be evaluated for some tokens alone."""
    few = launch[field_of("dspark_draft_topk")] if loads_draft(launch) else None
    if few is None:
        return
    if not drafts_with(launch, "dspark"):
        launch.reject("dspark_draft_topk is only supported by DSpark")
    config = draft_config(launch)
    vocabulary = config.raw.get("draft_vocab_size") or config.number("vocab_size")
    if vocabulary is not None and not 1 <= few <= vocabulary:
        launch.reject(f"dspark_draft_topk must be between 1 and the draft vocabulary size ({vocabulary})")
    able = ["Qwen3DSparkModel", *(["Qwen3OmniDSparkModel"] if launch.since("0.29") else [])]
    if not any(name in able for name in config.architectures):
        launch.reject(f"dspark_draft_topk is only supported by {' and '.join(able)}")


@step(
    "vllm-45",
    "Most tokens a step",
    when="num_speculative_tokens above 32 (128 from 0.11)",
    then="kept; the first step with that many tokens ends the engine",
    source=_SAMPLER,
    stage=Stage.REQUEST,
)
def most_tokens(launch: Launch) -> None:
    """The sampler's kernel has a limit that nobody checks at start."""
    most = 128 if launch.since("0.11.0") else 32
    if speculates(launch) and launch[TOKENS] > most and not (launch.has(V1) and not launch[V1]):
        launch.remark(
            TOKENS, f"the sampler takes at most {most} drafted tokens: the first step with more ends the engine"
        )


@step(
    "vllm-28",
    "Context of the draft",
    when="max_model_len of the draft is not given",
    then="the shorter of the draft's and the target's",
    releases="-0.20.2",
    source=SPECULATIVE,
    stage=Stage.PARALLEL,
    sets=(DRAFT_LENGTH,),
)
@step(
    "vllm-28",
    "Context of the draft",
    when="max_model_len of the draft is not given",
    then="the shorter of the draft's and the target's",
    says="Overriding draft model max model len from {} to {}",
    releases="0.21-",
    source=SPECULATIVE,
    stage=Stage.PARALLEL,
    sets=(DRAFT_LENGTH,),
)
def draft_context(launch: Launch) -> None:
    """The draft follows as far as both models go."""
    if not speculates(launch) or launch[DRAFT_LENGTH] is not None or not loads_draft(launch):
        return
    own, target = _draft_context(launch), target_length(launch)
    if own > target:
        launch.announce(own, target)
    launch[DRAFT_LENGTH] = min(own, target)


def _draft_context(launch: Launch) -> int:
    """The draft's own context: its config's, the target's where that states none."""
    own = stated_context(draft_config(launch), "draft")
    return own[0] if own is not None else target_length(launch)


@step(
    "vllm-29",
    "Context of the draft too long",
    when="max_model_len of the draft above the target's, or (up to 0.20) above its own",
    then="refused",
    source=SPECULATIVE,
    stage=Stage.PARALLEL,
)
def context_too_long(launch: Launch) -> None:
    """The draft cannot follow further than either model goes."""
    if not loads_draft(launch) or not launch.given(DRAFT_LENGTH):
        return
    asked = launch[DRAFT_LENGTH]
    if not launch.since("0.21") and asked > (own := _draft_context(launch)):
        launch.reject(f"speculative_max_model_len={asked} cannot be larger than draft_max_model_len={own}")
    target = target_length(launch)
    if asked > target:
        launch.reject(f"speculative_max_model_len={asked} cannot be larger than target_max_model_len={target}")


@step(
    "vllm-29",
    "Context of the draft longer than its own",
    when="max_model_len of the draft above what its config allows, unless VLLM_ALLOW_LONG_MAX_MODEL_LEN=1",
    then="refused",
    releases="0.21-",
    source="vllm/config/model.py",
    stage=Stage.LOOKUP,
)
def longer_than_its_own(launch: Launch) -> None:
    """The draft is checked like any model."""
    if loads_draft(launch) and launch.given(DRAFT_LENGTH):
        refuse_long(launch, launch[DRAFT_LENGTH], stated_context(draft_config(launch), "draft"))


@step(
    "vllm-105",
    "Context of the target too long",
    when="max_model_len above what the target's config allows, unless VLLM_ALLOW_LONG_MAX_MODEL_LEN=1",
    then="refused",
    source="vllm/config/model.py (vllm/config.py before 0.11)",
    stage=Stage.BATCH,
)
def target_too_long(launch: Launch) -> None:
    """Beyond its positions a model makes no sense."""
    if launch.has_target and isinstance(launch["max_model_len"], int):
        refuse_long(launch, target_length(launch), stated_context(launch.target, "target"))


@step(
    "vllm-30",
    "Beyond the draft's context",
    when="a sequence grows beyond the draft's max_model_len less num_speculative_tokens, and the draft's context is "
    "the shorter one",
    then="the whole batch gets drafts of zeros, which are rejected",
    releases="0.14-",
    source=_RUNNER_FILE,
    stage=Stage.REQUEST,
)
@step(
    "vllm-30",
    "Beyond the draft's context",
    when="a sequence grows beyond the draft's max_model_len less num_speculative_tokens, and the draft's context is "
    "the shorter one",
    then="the whole batch gets no draft",
    releases="0.11-0.13.0",
    source=_RUNNER_FILE,
    stage=Stage.REQUEST,
)
def beyond_context(launch: Launch) -> None:
    """One long request ruins the acceptance of its neighbours."""
    if not loads_draft(launch):
        return
    length = launch[DRAFT_LENGTH]
    if length is None or length >= target_length(launch):
        return
    what = "is given zeros to verify" if launch.since("0.14") else "is not drafted for"
    launch.remark(
        DRAFT_LENGTH,
        f"while any sequence is longer than {length - launch[TOKENS]} tokens, the whole batch {what}",
    )


@step(
    "vllm-31",
    "Positions of an EAGLE head",
    when="method eagle or eagle3, and the head's max_position_embeddings is below the target's max_model_len",
    then="raised to it",
    says="Overriding draft model max_position_embeddings from {} to the target model's max_model_len ({}); EAGLE "
    "drafts share the target's positional space.",
    releases="0.27-",
    source=SPECULATIVE,
    stage=Stage.PARALLEL,
)
@step(
    "vllm-31",
    "Positions of an EAGLE head",
    when="method eagle or eagle3, and the head's max_position_embeddings is below the target's max_model_len",
    then="kept: beyond it the head reads past its table of positions",
    releases="-0.26.0",
    source=SPECULATIVE,
    stage=Stage.PARALLEL,
)
def positions_of_head(launch: Launch) -> None:
    """The head is given the target's positions."""
    if not drafts_with(launch, "eagle", "eagle3") or not loads_draft(launch) or not launch.has_draft:
        return
    own = launch.draft.number("max_position_embeddings")
    target = target_length(launch)
    if own is None or own >= target:
        return
    if launch.since("0.27"):
        launch.announce(int(own), target)
    else:
        launch.remark(METHOD, f"beyond {int(own)} tokens the head has no positions, and acceptance falls to nothing")


@step(
    "vllm-27",
    "Vocabulary of Medusa heads",
    when="method medusa, and the draft's vocab_size differs from the target's",
    then="the target's is taken",
    releases="0.25-",
    source=SPECULATIVE,
    stage=Stage.PARALLEL,
)
def medusa_vocabulary(launch: Launch) -> None:
    """Old checkpoints do not state theirs."""
    if drafts_with(launch, "medusa") and loads_draft(launch):
        own, target = launch.draft.number("vocab_size"), launch.target.number("vocab_size")
        if own != target:
            launch.remark(METHOD, "the heads take the target's vocabulary size, whatever their config says")
