"""How long drafts are, what cuts them, and what else speculation changes in the server."""

from __future__ import annotations

from analysis.resolve.base import Launch
from analysis.resolve.llamacpp.engine import (
    ARGUMENTS,
    N_MAX,
    N_MIN,
    NONE,
    SERVER,
    SPECULATIVE,
    TYPE,
    WIRED,
    Stage,
    drafts_with,
    step,
    trained_block,
    types_of,
)


@step(
    "llamacpp-22",
    "Blocks no longer than trained",
    when="draft-dflash or draft-dspark with --spec-draft-n-max above the trained block",
    then="the block less one (the whole block for a DSpark that drafts from its anchor)",
    says="requested draft size (n_max={}, n_min={}) exceeds the trained block size {} -- clamping to {}",
    releases="b11434-",
    source=SPECULATIVE,
    stage=Stage.SIZES,
    sets=(N_MAX,),
)
def trained_length(launch: Launch) -> None:
    """A draft knows no more positions than it was trained for."""
    if not drafts_with(launch, "draft-dflash", "draft-dspark"):
        return
    block = trained_block(launch.draft)
    if block is None:
        return
    anchored = drafts_with(launch, "draft-dspark") and launch.draft.raw.get("sample_from_anchor", True)
    most = block if anchored else block - 1
    if launch[N_MAX] > most:
        launch.announce(launch[N_MAX], launch[N_MIN], block, most)
        launch[N_MAX] = most


@step(
    "llamacpp-18",
    "Short drafts are thrown away",
    when="--spec-draft-n-min above 0, and a draft falls short of it",
    then="thrown away after it was computed, and counted nowhere",
    releases="b11434-",
    source=SPECULATIVE,
    stage=Stage.REQUEST,
)
def short_drafts(launch: Launch) -> None:
    """The cost stays, the draft does not."""
    if launch[N_MIN] and any(name.startswith("draft-") for name in types_of(launch)):
        launch.remark(N_MIN, "shorter drafts are thrown away after they were computed, and counted nowhere")


@step(
    "llamacpp-19",
    "Long repetitions only",
    when="ngram-mod, and fewer than n_min tokens continue",
    then="no draft: with the defaults (n_min 48) short chats almost never draft",
    releases="b9246-",
    source="common/ngram-map.cpp",
    stage=Stage.REQUEST,
)
def long_repetitions(launch: Launch) -> None:
    """Made for text that repeats itself at length."""
    least = launch["spec_ngram_mod_n_min"]
    if drafts_with(launch, "ngram-mod") and least and least > 8:
        launch.remark(
            "spec_ngram_mod_n_min", f"fewer than {least} repeated tokens give no draft: short chats hardly draft"
        )


@step(
    "llamacpp-20",
    "Pool thrown away",
    when="ngram-mod, and five drafts in a row are accepted below a quarter",
    then="the pool of all slots is emptied; a line only with LLAMA_TRACE",
    says="low acceptance streak ({}) - resetting ngram_mod",
    releases="b11434-",
    source=SPECULATIVE,
    stage=Stage.REQUEST,
)
def pool_thrown_away(launch: Launch) -> None:
    """All slots share one pool."""
    if drafts_with(launch, "ngram-mod"):
        launch.remark(TYPE, "five poor drafts in a row empty the pool of all slots")


@step(
    "llamacpp-21",
    "Drafts end with the answer",
    when="little is left of max_tokens or of the context",
    then="drafts are cut to it: short answers cannot use a long --spec-draft-n-max",
    source=SERVER,
    stage=Stage.REQUEST,
)
def end_of_answer(launch: Launch) -> None:
    """Figures of short answers are lower for this reason alone."""
    if launch[TYPE] != NONE:
        launch.remark(TYPE, "drafts are cut at the end of an answer and of the context")


@step(
    "llamacpp-23",
    "Recurrent targets go back",
    when="a recurrent or hybrid target with n-grams or draft-simple",
    then="every rejection restores a checkpoint and decodes again, often slower than no speculation",
    releases="b11434-",
    source=SERVER,
    stage=Stage.REQUEST,
)
def recurrent_targets(launch: Launch) -> None:
    """Their state cannot be cut back token by token; wired drafts keep a window for it."""
    recurrent = ("mamba", "ssm", "linear_attn", "linear_num", "rwkv", "layers_block_type")
    if launch[TYPE] == NONE or not launch.has_target or all(name in WIRED for name in types_of(launch)):
        return
    if any(key.rpartition(".")[2].startswith(recurrent) for key in launch.target.text):
        launch.remark(TYPE, "each rejection restores a checkpoint of the recurrent state and decodes again")


@step(
    "llamacpp-24",
    "Images with a narrower draft",
    when="images or audio with draft-simple whose embeddings have another width",
    then="the request fails: unsupported batch.has_embd + spec case",
    releases="b11434-",
    source=SERVER,
    stage=Stage.REQUEST,
)
@step(
    "llamacpp-25",
    "Images keep the context as it is",
    when="a multimodal projector with --context-shift or --cache-reuse",
    then="both are turned off",
    says="ctx_shift is not supported by multimodal, it will be disabled",
    source=SERVER,
    stage=Stage.SERVE,
    sets=("context_shift", "cache_reuse"),
)
def images(launch: Launch) -> None:
    """Embeddings of images cannot be moved or drafted from."""
    if not launch.given("mmproj") and not launch.given("mmproj_url"):
        return
    if launch.step.id == "llamacpp-24":
        if drafts_with(launch, "draft-simple"):
            launch.remark("mmproj", "a request with an image fails where the draft's embeddings have another width")
        return
    if launch["context_shift"]:
        launch.announce()
        launch["context_shift"] = False
    if launch["cache_reuse"]:
        launch["cache_reuse"] = 0


@step(
    "llamacpp-26",
    "A draft on one device",
    when="--device-draft with one device and --split-mode tensor",
    then="the draft is split by layer",
    releases="b11434-",
    source=SPECULATIVE,
    stage=Stage.SERVE,
)
def one_device(launch: Launch) -> None:
    """A tensor cannot be split over one device."""
    devices = str(launch["spec_draft_device"] or "").split(",")
    if launch["split_mode"] == "tensor" and devices != [""] and len(devices) == 1:
        launch.remark("spec_draft_device", "on one device the draft is split by layer, not by tensor")


@step(
    "llamacpp-28",
    "Layers on a GPU that is not there",
    when="--gpu-layers-draft without a GPU",
    then="ignored",
    says="warning: no usable GPU found, --gpu-layers-draft option will be ignored",
    source=ARGUMENTS,
    stage=Stage.PARSE,
)
def no_gpu(launch: Launch) -> None:
    """A build without GPU support says so."""
    if launch.given("spec_draft_ngl") and launch.vendor_is("none"):
        launch.announce()
        launch.ignore("spec_draft_ngl", "there is no GPU")


@step(
    "llamacpp-29",
    "Four slots",
    when="--parallel is not given or negative",
    then="four slots that share one cache; the draft's context is made for as many",
    says="n_parallel is set to auto, using n_parallel = 4 and kv_unified = true",
    releases="b10001-",
    source=SERVER,
    stage=Stage.SERVE,
    sets=("parallel", "kv_unified"),
)
def four_slots(launch: Launch) -> None:
    """The line is printed at trace level only."""
    asked = launch["parallel"]
    if asked is None or asked < 0:
        launch.announce()
        launch["parallel"] = 4
        launch["kv_unified"] = True


@step(
    "llamacpp-14",
    "Requests do not set the draft",
    when="a request with speculative.n_max, n_min, p_min or type",
    then="ignored",
    releases="b11003-",
    source="tools/server/server-schema.cpp",
    stage=Stage.REQUEST,
)
def requests(launch: Launch) -> None:
    """Only the command does."""
    if launch[TYPE] != NONE:
        launch.remark(TYPE, "requests cannot change it: speculative.n_max, n_min, p_min and type are ignored")
