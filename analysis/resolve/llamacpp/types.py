"""Which types of speculation run, and when one that was asked for does not."""

from __future__ import annotations

import re
from typing import Final

from analysis.resolve.base import Launch, Unsettled
from analysis.resolve.llamacpp.engine import (
    ARGUMENTS,
    DRAFT,
    DRAFT_REPOSITORY,
    N_MAX,
    NONE,
    ORDER,
    SERVER,
    SPECULATIVE,
    TYPE,
    WIRED,
    Stage,
    drafts_with,
    has_heads,
    kind_of,
    names_draft,
    set_types,
    step,
    types_of,
)

_TELLING: Final = re.compile(r"dflash|dspark|mtp|nextn|eagle-?3", re.IGNORECASE)
_INFERRED: Final = {"dflash": "draft-dflash", "dspark": "draft-dspark", "mtp": "draft-mtp"}
_VOCABULARY: Final = 128


_DRAFTLESS: Final = frozenset({NONE, "ngram-cache", "ngram-simple", "ngram-map-k", "ngram-map-k4v", "ngram-mod"})
_SINCE: Final = {
    "draft-simple": "b9246",
    "draft-eagle3": "b9246",
    "draft-mtp": "b9246",
    "draft-dflash": "b9851",
    "draft-dspark": "b10204",
}


@step(
    "llamacpp-35",
    "Before there were types",
    when="--spec-type",
    then="refused: drafts come from a model alone",
    releases="b7551-b7551",
    source=ARGUMENTS,
    stage=Stage.PARSE,
)
@step(
    "llamacpp-35",
    "Types without a draft",
    when="--spec-type with anything but none, ngram-cache, ngram-simple, ngram-map-k, ngram-map-k4v or ngram-mod",
    then="refused: a draft that is named drafts without a type, and multi-token prediction is not there yet",
    releases="b8672-b9093",
    source=ARGUMENTS,
    stage=Stage.PARSE,
)
@step(
    "llamacpp-35",
    "Types that a build does not know",
    when="--spec-type with a name that the build does not know: draft-dflash came with b9851, draft-dspark with b10204; "
    "draft, eagle3 or mtp alone were never names",
    then="refused",
    releases="b9246-",
    source=ARGUMENTS,
    stage=Stage.TYPES,
)
def unknown_types(launch: Launch) -> None:
    """The names grew build by build."""
    asked = types_of(launch)
    if asked == [NONE]:
        return
    where = 'argument "--spec-type"' if launch.given(TYPE) else 'environment variable "LLAMA_ARG_SPEC_TYPE"'
    if launch.step.title == "Before there were types":
        launch.reject("error: invalid argument: --spec-type", "SystemExit")
    if launch.step.title == "Types without a draft":
        if str(launch[TYPE]) not in _DRAFTLESS:
            launch.reject(
                f"error while handling {where}: unknown speculative decoding type without draft model", "SystemExit"
            )
        return
    for name in asked:
        since = _SINCE.get(name)
        if name not in _DRAFTLESS and (since is None or not launch.since(since)):
            launch.reject(f"error while handling {where}: unknown speculative type: {name}", "SystemExit")


@step(
    "llamacpp-1",
    "A draft alone drafts",
    when="a draft is named and --spec-type is not given",
    then="it drafts as a model (draft-simple)",
    releases="-b9093",
    source=SERVER,
    stage=Stage.TYPES,
    sets=(TYPE,),
)
def draft_alone_drafts(launch: Launch) -> None:
    """Up to b9093 the draft was the switch."""
    if names_draft(launch) and not launch.given(TYPE):
        launch[TYPE] = "draft-simple"


@step(
    "llamacpp-3",
    "none beats every other type",
    when="none is among the types of --spec-type",
    then="nothing drafts, and no type is inferred from the draft",
    releases="b9246-",
    source=ARGUMENTS,
    stage=Stage.TYPES,
    sets=(TYPE,),
)
def none_beats_all(launch: Launch) -> None:
    """Given once, it empties the list."""
    asked = launch.given(TYPE) or "LLAMA_ARG_SPEC_TYPE" in launch.environment
    if NONE in types_of(launch) and (asked or types_of(launch) != [NONE]):
        launch[TYPE] = NONE
        launch.notes["types are final"] = True


@step(
    "llamacpp-1",
    "A draft without a type stays unused",
    when="a draft is named and --spec-type is not given",
    then="nothing drafts; the draft is loaded all the same. The line is printed at trace level only (-lv 4)",
    says="no implementations specified for speculative decoding",
    releases="b9246-b10331",
    source=SPECULATIVE,
    stage=Stage.TYPES,
    sets=(TYPE,),
)
@step(
    "llamacpp-1",
    "A plain draft without a type stays unused",
    when="a draft is named, --spec-type is not given, and the draft is a plain model",
    then="nothing drafts; the draft is loaded all the same. The line is printed at trace level only (-lv 4)",
    says="no implementations specified for speculative decoding",
    releases="b10502-",
    source=SPECULATIVE,
    stage=Stage.TYPES,
    sets=(TYPE,),
)
def draft_without_type(launch: Launch) -> None:
    """From b9246 the type is the switch, and its default is none."""
    if not names_draft(launch) or launch[TYPE] != NONE or launch.notes.get("types are final"):
        return
    if launch.since("b10502") and not _surely_plain(launch):
        return
    launch.announce()
    launch.remark(
        DRAFT if launch[DRAFT] is not None else DRAFT_REPOSITORY,
        "loaded and never used: --spec-type is not given, and its default is none",
    )


def _surely_plain(launch: Launch) -> bool:
    """Whether the draft is a plain model, as its metadata or at least its name lets expect."""
    if launch.has_draft:
        return kind_of(launch.draft) not in _INFERRED
    return launch[DRAFT_REPOSITORY] is None and not _TELLING.search(str(launch[DRAFT]))


@step(
    "llamacpp-2",
    "Type by the draft's metadata",
    when="a draft is named, --spec-type is not given, and the draft is a DFlash or DSpark model or has "
    "multi-token-prediction layers, or its repository ships such a file. The line is printed for DFlash and DSpark only",
    then="the type is that of the draft; EAGLE-3 is recognised in a repository only",
    says="auto-detected speculative type '{}' from the draft model metadata",
    releases="b10502-",
    source=ARGUMENTS,
    stage=Stage.TYPES,
    sets=(TYPE,),
)
def type_by_metadata(launch: Launch) -> None:
    """Only the first file of a sharded draft is looked at."""
    if not names_draft(launch) or launch[TYPE] != NONE or launch.notes.get("types are final"):
        return
    if launch.has_draft:
        inferred = _INFERRED.get(kind_of(launch.draft))
        if inferred is not None:
            if inferred != "draft-mtp":
                launch.announce(inferred)
            launch[TYPE] = inferred
    elif not _surely_plain(launch):
        raise Unsettled("the metadata of the draft's file, from which a type may be inferred")


@step(
    "llamacpp-4",
    "Types add up",
    when="--spec-type with several types, or several times",
    then="all of them run; no warning for the repetition",
    releases="b9246-",
    source=ARGUMENTS,
    stage=Stage.TYPES,
)
def types_add_up(launch: Launch) -> None:
    """Of other options the last one counts."""
    if len(types_of(launch)) > 1:
        launch.remark(TYPE, "the types add up: the first that has a draft for a step is used")


@step(
    "llamacpp-5",
    "Types in a fixed order",
    when="several types",
    then="n-gram types come before drafts, in a fixed order; that of the command does not count",
    releases="b11434-",
    source=SPECULATIVE,
    stage=Stage.TYPES,
    sets=(TYPE,),
)
def fixed_order(launch: Launch) -> None:
    """The cheap ones are asked first."""
    asked = types_of(launch)
    if len(asked) > 1:
        known = [name for name in ORDER if name in asked]
        set_types(launch, [*known, *(name for name in asked if name not in ORDER)])


@step(
    "llamacpp-9",
    "A model to draft with is missing",
    when="draft-simple and no draft is named",
    then="nothing drafts, and the server runs on",
    says="failed to initialize speculative decoding context: draft-simple requires a draft context",
    releases="b11003-",
    source=SERVER,
    stage=Stage.DRAFT,
    sets=(TYPE,),
)
def model_missing(launch: Launch) -> None:
    """An error in the log, and a server without speculation."""
    if drafts_with(launch, "draft-simple") and not names_draft(launch):
        launch.announce()
        launch[TYPE] = NONE


@step(
    "llamacpp-10",
    "Wired drafts are missing",
    when="draft-eagle3, draft-dflash or draft-dspark and no draft is named",
    then="the type is dropped without a word",
    releases="b11434-",
    source=SPECULATIVE,
    stage=Stage.DRAFT,
    sets=(TYPE,),
)
def wired_missing(launch: Launch) -> None:
    """Only draft-mtp can do without a file of its own."""
    if names_draft(launch):
        return
    kept = [name for name in types_of(launch) if name not in WIRED or name == "draft-mtp"]
    if kept != types_of(launch):
        set_types(launch, kept)


@step(
    "llamacpp-10",
    "Heads are missing",
    when="draft-mtp, no draft is named, and the target has no multi-token-prediction layers",
    then="the server ends: context type MTP requested but model doesn't contain MTP layers",
    releases="b11434-",
    source=SERVER,
    stage=Stage.DRAFT,
)
def heads_missing(launch: Launch) -> None:
    """The target's own layers would draft."""
    if not drafts_with(launch, "draft-mtp") or names_draft(launch):
        return
    if not launch.has_target:
        launch.remark(TYPE, "drafts with the target's own layers: the server ends where the target has none")
    elif not has_heads(launch.target):
        launch.reject("failed to create MTP context", "SystemExit")


@step(
    "llamacpp-32",
    "Draft of another kind",
    when="draft-eagle3 with a draft that is no EAGLE-3 model",
    then="nothing drafts, and the server runs on",
    says="failed to initialize speculative decoding context: draft model is not eagle3 (expected 3 extract layers, got 0)",
    releases="b11434-",
    source=SPECULATIVE,
    stage=Stage.DRAFT,
    sets=(TYPE,),
)
def another_kind(launch: Launch) -> None:
    """An EAGLE-3 file says which layers it reads."""
    if drafts_with(launch, "draft-eagle3") and launch.has_draft and kind_of(launch.draft) != "eagle3":
        launch.announce()
        launch[TYPE] = NONE


def _vocabularies(launch: Launch) -> tuple[int, int] | None:
    """Sizes of the target's and the draft's vocabulary, where both are known."""
    if not launch.has_draft or not launch.has_target:
        return None
    target, draft = launch.target.number("vocab_size"), launch.draft.number("vocab_size")
    return (int(target), int(draft)) if target is not None and draft is not None else None


@step(
    "llamacpp-6",
    "Vocabularies that differ are translated",
    when="a model drafts whose vocabulary differs from the target's",
    then="drafts go through text and back: hardly any is accepted",
    says="the target and draft vocabs are not compatible - tokens will be translated between the two",
    releases="-b9093",
    source=SPECULATIVE,
    stage=Stage.DRAFT,
)
def translated(launch: Launch) -> None:
    """Tokens of one are spelled out and read by the other."""
    sizes = _vocabularies(launch)
    if drafts_with(launch, "draft-simple") and sizes is not None and abs(sizes[0] - sizes[1]) > _VOCABULARY:
        launch.announce()
        launch.remark(TYPE, "the vocabularies differ: drafts are translated through text, and hardly any is accepted")


@step(
    "llamacpp-6",
    "Vocabularies that differ turn drafts off",
    when="draft-simple, and the vocabularies differ in kind, in begin or end token, by more than 128 tokens, or in the "
    "text of any token from the fifth on",
    then="nothing drafts, and the server runs on; which of these it was is printed at debug level only",
    says="failed to initialize speculative decoding context: draft model vocab type must match target model to use "
    "speculation",
    releases="b9601-",
    source=SPECULATIVE,
    stage=Stage.DRAFT,
    sets=(TYPE,),
)
def vocabularies_differ(launch: Launch) -> None:
    """A config states the size alone; whether the texts agree shows at the start."""
    if not drafts_with(launch, "draft-simple"):
        return
    sizes = _vocabularies(launch)
    if sizes is not None and abs(sizes[0] - sizes[1]) > _VOCABULARY:
        launch.announce()
        launch[TYPE] = NONE
    else:
        launch.remark(TYPE, "off, and the server runs on, where the vocabularies differ in any token's text")


@step(
    "llamacpp-7",
    "A slightly larger vocabulary",
    when="draft-simple, and the draft's vocabulary is larger by up to 128 tokens",
    then="the check passes; a drafted token that the target does not know ends the server",
    releases="b11434-",
    source=SPECULATIVE,
    stage=Stage.DRAFT,
)
def slightly_larger(launch: Launch) -> None:
    """The check allows for padding."""
    sizes = _vocabularies(launch)
    if drafts_with(launch, "draft-simple") and sizes is not None and 0 < sizes[1] - sizes[0] <= _VOCABULARY:
        launch.remark(TYPE, f"the draft knows {sizes[1] - sizes[0]} tokens more: one of them, drafted, ends the server")


@step(
    "llamacpp-8",
    "Wired drafts are not checked",
    when="draft-eagle3, draft-mtp, draft-dflash or draft-dspark",
    then="only widths are checked: a draft for another target loads and accepts next to nothing",
    releases="b11434-",
    source=SPECULATIVE,
    stage=Stage.DRAFT,
)
def not_checked(launch: Launch) -> None:
    """Nothing in the file names the target."""
    if drafts_with(launch, *WIRED) and names_draft(launch):
        launch.remark(TYPE, "nothing checks that the draft was made for this target; only widths must fit")


_LENGTHS: Final = {
    "ngram-simple": "spec_ngram_simple_size_m",
    "ngram-map-k": "spec_ngram_map_k_size_m",
    "ngram-map-k4v": "spec_ngram_map_k4v_size_m",
    "ngram-mod": "spec_ngram_mod_n_max",
}


@step(
    "llamacpp-11",
    "N-grams have lengths of their own",
    when="--spec-draft-n-max with n-gram types only",
    then="ignored: the length is --spec-ngram-simple-size-m, -map-k-size-m, -map-k4v-size-m (48), --spec-ngram-mod-n-max "
    "(64), or 8 for ngram-cache",
    releases="b9246-",
    source=SPECULATIVE,
    stage=Stage.SIZES,
)
def lengths_of_their_own(launch: Launch) -> None:
    """The documentation still shows it with n-gram types."""
    types = types_of(launch)
    if launch[TYPE] != NONE and all(name.startswith("ngram-") for name in types):
        lengths = [f"{_LENGTHS[name]} {launch[_LENGTHS[name]]}" if name in _LENGTHS else "8" for name in types]
        launch.ignore(N_MAX, f"n-grams draft {', '.join(lengths)} tokens")


@step(
    "llamacpp-12",
    "Hits that nobody counts",
    when="--spec-ngram-simple-min-hits",
    then="ignored",
    releases="b11434-",
    source=SPECULATIVE,
    stage=Stage.SIZES,
)
@step(
    "llamacpp-13",
    "Splits that never happen",
    when="--spec-draft-p-split",
    then="ignored by the server: only an example program reads it",
    source=ARGUMENTS,
    stage=Stage.SIZES,
)
def never_read(launch: Launch) -> None:
    """They are parsed and printed."""
    if launch.step.id == "llamacpp-12":
        launch.ignore("spec_ngram_simple_min_hits", "parsed and printed, never used")
    else:
        launch.ignore("spec_draft_p_split", "only the llama-speculative example reads it")
