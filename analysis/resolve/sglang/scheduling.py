"""What speculation does to the scheduler: running requests, overlap, mixed chunks."""

from __future__ import annotations

from typing import Final

from analysis.resolve.base import Launch
from analysis.resolve.sglang.engine import (
    ALGORITHM,
    EAGLE_FAMILY,
    OVERLAP_OFF,
    SPECULATION,
    TOPK,
    Stage,
    drafts_with,
    step,
    switched_on,
)
from analysis.resolve.sglang.parallel import spreads_attention

_SPEC_V2: Final = "SGLANG_ENABLE_SPEC_V2"


def wants_v2(launch: Launch) -> bool:
    """Whether the worker that can overlap was asked for: by flag in 0.5.3, by variable from 0.5.4."""
    if not launch.since("0.5.4"):
        return bool(launch["enable_beta_spec"])
    if launch.notes.get("second worker"):
        return True
    return switched_on(launch, _SPEC_V2, default=launch.since("0.5.11"))


@step(
    "sglang-77",
    "STANDALONE under DP attention",
    when="STANDALONE and enable_dp_attention",
    then="refused",
    releases="0.5.2-",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
)
def standalone_dp(launch: Launch) -> None:
    """A stand-alone draft cannot run under DP attention."""
    if drafts_with(launch, "STANDALONE") and spreads_attention(launch):
        launch.reject("Currently standalone speculative decoding does not support dp attention.")


@step(
    "sglang-41",
    "Running requests capped",
    when="an algorithm drafts and max_running_requests is not set",
    then="max_running_requests becomes 48, for the whole server",
    says="Max running requests is reset to 48 for speculative decoding. You can override this by explicitly setting "
    "--max-running-requests.",
    releases="0.5.4-",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=("max_running_requests",),
)
@step(
    "sglang-40",
    "Running requests capped",
    when="an algorithm drafts and max_running_requests is not set",
    then="max_running_requests becomes 48, for the whole server",
    releases="0.4.4-0.5.3",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=("max_running_requests",),
)
def running_requests(launch: Launch) -> None:
    """Speculation caps the running requests unless told otherwise."""
    if launch[ALGORITHM] is not None and launch["max_running_requests"] is None:
        launch.announce()
        launch["max_running_requests"] = 48


@step(
    "sglang-39",
    "Running requests capped",
    when="EAGLE and max_running_requests is not set",
    then="it becomes 32; graphs are captured without padding",
    says="Overlap scheduler are disabled because of using eagle speculative decoding.",
    releases="0.4.3",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=("max_running_requests", OVERLAP_OFF, "disable_cuda_graph_padding"),
)
def early_scheduling(launch: Launch) -> None:
    """The second release with drafts."""
    if drafts_with(launch, "EAGLE"):
        launch.announce()
        if launch["max_running_requests"] is None:
            launch["max_running_requests"] = 32
        launch[OVERLAP_OFF] = True
        launch["disable_cuda_graph_padding"] = True


@step(
    "sglang-38",
    "Nothing else with drafts",
    when="EAGLE",
    then="radix cache, chunked prefill, overlap scheduler and graph padding are turned off",
    says="The radix cache, chunked prefill, and overlap scheduler are disabled because of using eagle speculative "
    "decoding.",
    releases="0.4.1",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=("disable_radix_cache", "chunked_prefill_size", OVERLAP_OFF, "disable_cuda_graph_padding"),
)
def first_scheduling(launch: Launch) -> None:
    """The first release with drafts."""
    if drafts_with(launch, "EAGLE"):
        launch.announce()
        launch["disable_radix_cache"] = True
        launch["chunked_prefill_size"] = -1
        launch[OVERLAP_OFF] = True
        launch["disable_cuda_graph_padding"] = True


@step(
    "sglang-44",
    "Overlap scheduler on",
    when="EAGLE with enable_beta_spec",
    then="the overlap scheduler is turned on, also against disable_overlap_schedule",
    says="Beta spec is enabled for eagle speculative decoding and overlap schedule is turned on.",
    releases="0.5.3",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=(OVERLAP_OFF,),
)
@step(
    "sglang-46",
    "Overlap scheduler on",
    when="EAGLE with SGLANG_ENABLE_SPEC_V2",
    then="the overlap scheduler is turned on, also against disable_overlap_schedule; "
    "EAGLE3 and STANDALONE keep what was asked",
    says="Beta spec is enabled for eagle speculative decoding and overlap schedule is turned on.",
    releases="0.5.4-0.5.6",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=(OVERLAP_OFF,),
)
@step(
    "sglang-49",
    "Overlap scheduler on",
    when="EAGLE or EAGLE3 (STANDALONE from 0.5.8) with SGLANG_ENABLE_SPEC_V2",
    then="the overlap scheduler is turned on, also against disable_overlap_schedule",
    says="Spec v2 is enabled for eagle/eagle3 speculative decoding and overlap schedule is turned on.",
    releases="0.5.7-0.5.10",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=(OVERLAP_OFF,),
)
def overlap_on(launch: Launch) -> None:
    """The second worker brings the overlap scheduler with it."""
    if drafts_with(launch, *_forced_to_overlap(launch)) and wants_v2(launch):
        launch.announce()
        launch[OVERLAP_OFF] = False


def _forced_to_overlap(launch: Launch) -> tuple[str, ...]:
    if launch.since("0.5.8"):
        return EAGLE_FAMILY
    return ("EAGLE", "EAGLE3") if launch.since("0.5.7") else ("EAGLE",)


@step(
    "sglang-50",
    "No trees in the second worker",
    when="the second worker is on and a topk above 1 is given",
    then="refused; a topk that the engine chooses itself comes later and slips through",
    releases="0.5.7-0.5.10",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
)
def tree_in_v2(launch: Launch) -> None:
    """The second worker drafts chains only."""
    forced = drafts_with(launch, *_forced_to_overlap(launch)) and wants_v2(launch)
    if forced and launch[TOPK] is not None and launch[TOPK] > 1:
        launch.reject("Spec v2 currently only supports topk = 1 for speculative decoding.")


@step(
    "sglang-43",
    "Overlap scheduler off",
    when="EAGLE or EAGLE3",
    then="the overlap scheduler is turned off",
    says="Overlap scheduler is disabled because of using eagle speculative decoding.",
    releases="0.4.4-0.5.2",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=(OVERLAP_OFF,),
)
@step(
    "sglang-45",
    "Overlap scheduler off",
    when="EAGLE, EAGLE3 or STANDALONE without enable_beta_spec",
    then="the overlap scheduler is turned off",
    says="Overlap scheduler is disabled because of using eagle3 and standalone speculative decoding.",
    releases="0.5.3",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=(OVERLAP_OFF,),
)
@step(
    "sglang-48",
    "Overlap scheduler off",
    when="EAGLE, EAGLE3 or STANDALONE without SGLANG_ENABLE_SPEC_V2",
    then="the overlap scheduler is turned off",
    says="Overlap scheduler is disabled because of using eagle3 or standalone speculative decoding.",
    releases="0.5.4-0.5.6",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=(OVERLAP_OFF,),
)
@step(
    "sglang-51",
    "Overlap scheduler off",
    when="EAGLE, EAGLE3 or STANDALONE without SGLANG_ENABLE_SPEC_V2, or STANDALONE in 0.5.7",
    then="the overlap scheduler is turned off",
    says="Overlap scheduler is disabled when spec v2 is off or using unsupported speculative algorithm. "
    "You can set env SGLANG_ENABLE_SPEC_V2=True to enable the experimental overlap scheduler. ",
    releases="0.5.7-0.5.10",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=(OVERLAP_OFF,),
)
def overlap_off(launch: Launch) -> None:
    """The first worker cannot overlap."""
    if drafts_with(launch, *EAGLE_FAMILY) and not _second_worker(launch):
        launch.announce()
        launch[OVERLAP_OFF] = True


def _second_worker(launch: Launch) -> bool:
    # From 0.5.7 an algorithm that the second worker does not serve falls back to the first.
    if launch.since("0.5.7") and not drafts_with(launch, *_forced_to_overlap(launch)):
        return False
    return wants_v2(launch)


@step(
    "sglang-53",
    "Trees run on the first worker",
    when="EAGLE, EAGLE3 or STANDALONE, a topk above 1 is given, the overlap scheduler is on",
    then="the overlap scheduler is turned off; a topk that the engine chooses itself comes later and keeps it on",
    says="Spec v1 is used for eagle/eagle3/standalone speculative decoding because spec v2 currently only supports "
    "topk = 1.",
    releases="0.5.11-0.5.12",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=(OVERLAP_OFF,),
)
def tree_on_v1(launch: Launch) -> None:
    """The second worker drafts chains only; a tree gets the first."""
    if _overlapping_draft(launch) and launch[TOPK] is not None and launch[TOPK] > 1:
        launch.announce()
        launch[OVERLAP_OFF] = True
        launch.notes["worker"] = "first"


@step(
    "sglang-55",
    "First worker asked for",
    when="EAGLE, EAGLE3 or STANDALONE, SGLANG_ENABLE_SPEC_V2 is false, the overlap scheduler is on",
    then="the overlap scheduler is turned off",
    says="Spec v1 is used for eagle/eagle3/standalone speculative decoding because SGLANG_ENABLE_SPEC_V2=False.",
    releases="0.5.11-0.5.12",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=(OVERLAP_OFF,),
)
@step(
    "sglang-57",
    "Overlap off by variable",
    when="EAGLE, EAGLE3 or STANDALONE, SGLANG_ENABLE_SPEC_V2 is false, the overlap scheduler is on",
    then="the overlap scheduler is turned off; the second worker runs all the same",
    releases="0.5.13",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=(OVERLAP_OFF,),
)
def overlap_off_by_variable(launch: Launch) -> None:
    """The variable of the second worker turns overlap off."""
    if _overlapping_draft(launch) and not wants_v2(launch):
        launch.announce()
        launch[OVERLAP_OFF] = True
        launch.notes["worker"] = "first"


def _overlapping_draft(launch: Launch) -> bool:
    return drafts_with(launch, *EAGLE_FAMILY) and not launch[OVERLAP_OFF]


@step(
    "sglang-58",
    "Variable without effect",
    when="SGLANG_ENABLE_SPEC_V2 is set",
    then="ignored: the second worker always runs",
    says="SGLANG_ENABLE_SPEC_V2 has been removed: speculative decoding always runs the V2 worker. "
    "Use --disable-overlap-schedule to select the non-overlap (synchronous) path.",
    releases="0.5.14-0.5.20",
    source=SPECULATION,
    stage=Stage.ALGORITHM,
)
@step(
    "sglang-59",
    "Variable without effect",
    when="SGLANG_ENABLE_SPEC_V2 is set",
    then="ignored: the second worker always runs",
    releases="0.5.21-",
    source=SPECULATION,
    stage=Stage.ALGORITHM,
)
def variable_removed(launch: Launch) -> None:
    """The variable is gone; nothing but its name is left."""
    if _SPEC_V2 in launch.environment:
        launch.announce()
        launch.ignore_variable(_SPEC_V2, "removed: speculative decoding always runs the second worker")


@step(
    "sglang-61",
    "No overlap on a CPU",
    when="an algorithm drafts on a CPU and the overlap scheduler is on",
    then="the overlap scheduler is turned off",
    says="Overlap schedule is not implemented for speculative decoding on CPU.",
    releases="0.5.16-",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=(OVERLAP_OFF,),
)
def overlap_on_cpu(launch: Launch) -> None:
    """Overlap needs a GPU."""
    on_cpu = launch.requested.get("device") == "cpu" or launch.vendor_is("none")
    if drafts_with(launch, *EAGLE_FAMILY, "NGRAM") and on_cpu and not launch[OVERLAP_OFF]:
        launch.announce()
        launch[OVERLAP_OFF] = True


@step(
    "sglang-52",
    "Second worker",
    when="EAGLE, EAGLE3 or STANDALONE and the overlap scheduler is on",
    then="the second worker drafts, overlapped",
    says="Spec v2 is enabled by default for eagle/eagle3/standalone speculative decoding.",
    releases="0.5.11-0.5.12",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
)
@step(
    "sglang-57",
    "Second worker, overlapped",
    when="EAGLE, EAGLE3 or STANDALONE and the overlap scheduler is on",
    then="the second worker drafts, overlapped",
    says="Overlap spec v2 is enabled by default for eagle/eagle3/standalone speculative decoding.",
    releases="0.5.13",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
)
def overlapped(launch: Launch) -> None:
    """Only a line: overlap stays on."""
    if _overlapping_draft(launch):
        launch.announce()


@step(
    "sglang-56",
    "First worker",
    when="EAGLE, EAGLE3 or STANDALONE and disable_overlap_schedule is given",
    then="the first worker drafts",
    says="Spec v1 is used for eagle/eagle3/standalone speculative decoding because overlap schedule is disabled.",
    releases="0.5.11-0.5.12",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
)
@step(
    "sglang-57",
    "Second worker, not overlapped",
    when="EAGLE, EAGLE3 or STANDALONE and the overlap scheduler is off",
    then="the second worker drafts, one step after the other",
    says="Non-overlap (synchronous) spec v2 is used for eagle/eagle3/standalone speculative decoding.",
    releases="0.5.13-",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
)
def not_overlapped(launch: Launch) -> None:
    """Only a line: overlap was off before."""
    named_already = launch.notes.get("worker") == "first" and not launch.since("0.5.13")
    if drafts_with(launch, *EAGLE_FAMILY) and launch[OVERLAP_OFF] and not named_already:
        launch.announce()


@step(
    "sglang-64",
    "No overlap for this draft",
    when="DFLASH",
    then="the overlap scheduler is turned off",
    says="Overlap scheduler is disabled when using DFLASH speculative decoding (spec v2 is not supported yet).",
    releases="0.5.11-0.5.13",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=(OVERLAP_OFF,),
)
def overlap_off_for_dflash(launch: Launch) -> None:
    """DFLASH came without overlap."""
    if drafts_with(launch, "DFLASH"):
        launch.announce()
        launch[OVERLAP_OFF] = True


@step(
    "sglang-64",
    "No overlap for this draft",
    when="FROZEN_KV_MTP",
    then="the overlap scheduler is turned off",
    says="Overlap scheduler is disabled when using Frozen-KV MTP speculative decoding (spec v2 is not supported yet).",
    releases="0.5.12-0.5.13",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=(OVERLAP_OFF,),
)
def overlap_off_for_frozen(launch: Launch) -> None:
    """FROZEN_KV_MTP came without overlap."""
    if drafts_with(launch, "FROZEN_KV_MTP"):
        launch.announce()
        launch[OVERLAP_OFF] = True


@step(
    "sglang-62",
    "NGRAM without overlap",
    when="NGRAM",
    then="the overlap scheduler is turned off",
    releases="0.5.3-0.5.13",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=(OVERLAP_OFF,),
)
def overlap_off_for_ngram(launch: Launch) -> None:
    """NGRAM came without overlap; its line follows when its depth is known."""
    if drafts_with(launch, "NGRAM"):
        launch[OVERLAP_OFF] = True


@step(
    "sglang-63",
    "NGRAM without mixed chunks",
    when="NGRAM",
    then="mixed chunked prefill is turned off",
    releases="0.5.3-",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=("enable_mixed_chunk",),
)
def mixed_off_for_ngram(launch: Launch) -> None:
    """NGRAM does not mix prefill into decode; its line follows when its depth is known."""
    if drafts_with(launch, "NGRAM"):
        launch["enable_mixed_chunk"] = False


@step(
    "sglang-65",
    "No mixed chunks",
    when="EAGLE, EAGLE3 or STANDALONE with enable_mixed_chunk",
    then="mixed chunked prefill is turned off",
    says="Mixed chunked prefill is disabled because of using eagle speculative decoding.",
    releases="0.4.7-0.5.18",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=("enable_mixed_chunk",),
)
def mixed_off(launch: Launch) -> None:
    """A verify step and a prefill chunk do not share a batch."""
    if drafts_with(launch, *EAGLE_FAMILY) and launch["enable_mixed_chunk"]:
        launch.announce()
        launch["enable_mixed_chunk"] = False


@step(
    "sglang-66",
    "No mixed chunks",
    when="STANDALONE with enable_mixed_chunk",
    then="mixed chunked prefill is turned off; EAGLE, EAGLE3, DFLASH and DSPARK keep it",
    says="Mixed chunked prefill is disabled: {} speculative decoding does not support it.",
    releases="0.5.19-",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=("enable_mixed_chunk",),
)
def mixed_off_for_few(launch: Launch) -> None:
    """Most drafts share a batch with a prefill chunk by now."""
    if drafts_with(launch, "STANDALONE") and launch["enable_mixed_chunk"]:
        launch.announce(launch[ALGORITHM])
        launch["enable_mixed_chunk"] = False


@step(
    "sglang-66",
    "No mixed chunks",
    when="FROZEN_KV_MTP with enable_mixed_chunk",
    then="mixed chunked prefill is turned off",
    says="Mixed chunked prefill is disabled because of using Frozen-KV MTP speculative decoding.",
    releases="0.5.12-",
    source=SPECULATION,
    stage=Stage.SCHEDULING,
    sets=("enable_mixed_chunk",),
)
def mixed_off_for_frozen(launch: Launch) -> None:
    """The shared cache does not mix."""
    if drafts_with(launch, "FROZEN_KV_MTP") and launch["enable_mixed_chunk"]:
        launch.announce()
        launch["enable_mixed_chunk"] = False
