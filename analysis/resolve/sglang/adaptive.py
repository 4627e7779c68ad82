"""Adaptive depth: the engine moves between a few depths while it serves."""

from __future__ import annotations

from typing import Final

from analysis.resolve.base import Launch, Unsettled
from analysis.resolve.sglang.engine import ALGORITHM, OVERLAP_OFF, SPECULATION, STEPS, TOKENS, TOPK, Stage, step
from analysis.resolve.sglang.parallel import spreads_attention

_ADAPTIVE: Final = "speculative_adaptive"


def _obstacle(launch: Launch) -> str | None:
    """Why the depth cannot adapt, in the engine's words; ``None`` if it can."""
    algorithm, topk = launch[ALGORITHM], launch[TOPK]
    if algorithm not in ("EAGLE", "EAGLE3"):
        return f"speculative_algorithm={algorithm} (only EAGLE/EAGLE3 are supported)"
    if topk != 1 and not (topk is None and launch.since("0.5.14")):
        return f"speculative_eagle_topk={topk} (only topk=1 is supported)"
    if spreads_attention(launch):
        name = "attention DP" if launch.since("0.5.22") else "enable_dp_attention=True"
        return f"{name} is not supported (adaptive tier decisions are not synchronized across DP ranks)"
    if not launch.since("0.5.12") and not launch[OVERLAP_OFF]:
        return "the overlap scheduler (spec v2) is enabled (adaptive is only implemented for EAGLEWorker v1)"
    if launch["enable_multi_layer_eagle"]:
        worker = "MultiLayerEagleWorkerV2" if launch.since("0.5.14") else "MultiLayerEagleWorker"
        return f"enable_multi_layer_eagle=True is not supported ({worker} does not implement adaptive)"
    if launch["enable_two_batch_overlap"]:
        return (
            "enable_two_batch_overlap=True is not supported "
            "(adaptive state swap would discard the TboAttnBackend wrapper)"
        )
    if launch["enable_pdmux"]:
        return "enable_pdmux=True is not supported (adaptive state swap does not update decode_attn_backend_group)"
    return None


def _depths(launch: Launch) -> list[int]:
    if launch["speculative_adaptive_config"] is not None:
        raise Unsettled("the depths in the file of speculative_adaptive_config")
    if not launch.since("0.5.14"):
        return [1, 3, 7]
    return [0, 1, 3, 5, 7] if launch.since("0.5.20") else [0, 1, 3, 7]


@step(
    "sglang-34",
    "Depth does not adapt",
    when="speculative_adaptive with another algorithm than EAGLE or EAGLE3, a topk above 1, DP attention, "
    "multi-layer drafts, two-batch overlap or multiplexed prefill",
    then="speculative_adaptive is turned off",
    says="speculative_adaptive disabled: {}. Falling back to static speculative params.",
    releases="0.5.11-0.5.13",
    source=SPECULATION,
    stage=Stage.DRAFT_LAST,
    sets=(_ADAPTIVE,),
)
@step(
    "sglang-34",
    "Depth does not adapt",
    when="speculative_adaptive with another algorithm than EAGLE or EAGLE3, a topk above 1, DP attention, "
    "multi-layer drafts, two-batch overlap or multiplexed prefill",
    then="speculative_adaptive is turned off",
    says="speculative_adaptive disabled: {}. Falling back to static speculative params.",
    releases="0.5.14-",
    source=SPECULATION,
    stage=Stage.ALGORITHM_LAST,
    sets=(_ADAPTIVE,),
)
def does_not_adapt(launch: Launch) -> None:
    """What the swap of depths cannot handle."""
    obstacle = _obstacle(launch) if launch[_ADAPTIVE] else None
    if obstacle is not None:
        launch.announce(obstacle)
        launch[_ADAPTIVE] = False


@step(
    "sglang-36",
    "Depth that is no candidate",
    when="speculative_adaptive and steps are not among the depths it moves between",
    then="refused",
    releases="0.5.13",
    source=SPECULATION,
    stage=Stage.DRAFT_LAST,
)
def no_candidate(launch: Launch) -> None:
    """The first depth is one of those it moves between."""
    if launch[_ADAPTIVE]:
        _require_candidate(launch)


def _require_candidate(launch: Launch) -> None:
    depths = _depths(launch)
    if launch[STEPS] not in depths:
        launch.reject(
            f"--speculative-num-steps={launch[STEPS]} is not in the adaptive config candidate_steps {depths}. "
            "Pass one of those values."
        )


@step(
    "sglang-35",
    "Depth adapts",
    when="speculative_adaptive",
    then="topk becomes 1, steps the middle candidate where not set, draft tokens steps + 1; "
    "refused where steps are no candidate (rule 36)",
    releases="0.5.14-",
    source=SPECULATION,
    stage=Stage.ALGORITHM_LAST,
    sets=(STEPS, TOPK, TOKENS),
)
def adapts(launch: Launch) -> None:
    """Adapting needs a chain and a first depth."""
    if not launch[_ADAPTIVE]:
        return
    depths = _depths(launch)
    if launch[TOPK] is None:
        launch[TOPK] = 1
    if launch[STEPS] is None:
        launch[STEPS] = depths[len(depths) // 2]
    _require_candidate(launch)
    launch[TOKENS] = launch[STEPS] + 1
