"""Cost: drafting itself is slow."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, HINT, STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.commands import at_depth, compare
from analysis.causes.common import step_cost
from analysis.causes.facts import EXPENSIVE, Facts, Symptom

MANY_GPUS = 4
"""GPUs of the target from which a small draft is slow beside it. Count."""
VERY_DEEP = 16
"""Drafts a step from which the depth itself makes a step dear. Count."""
DEEP = 5
"""Draft passes a step from which they add up. Count."""


class DraftStepExpensive(Cause):
    """Drafting itself is slow: not sharded, large, or on a slow path.

    Drafts are made one after the other. A draft that gains nothing from the GPUs the target is
    spread over, a draft model of its own, or small kernels without graphs make each of them
    cost a good part of a plain step.
    """

    id = "draft-step-expensive"
    kind = Kind.COST
    reports = (
        "sgl-project/sglang#6949",
        "raullenchai/Rapid-MLX#2175",
        "ggml-org/llama.cpp#22673",
        "sgl-project/sglang#11948",
        "vllm-project/vllm#39680",
    )
    explains = EXPENSIVE | {Symptom.WASTE}
    changes = (("speculative_draft_model_path", STRONG), ("speculative_config.model", STRONG), ("tp_size", CLEAR))

    def applies(self, facts: Facts) -> bool:
        """Drafts that take a pass of a model."""
        return not facts.copies

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What makes drafts slow."""
        yield from step_cost(facts)
        gpus = facts.count("tp_size", "tensor_parallel_size")
        if facts.costly and gpus >= MANY_GPUS:
            yield favours(HINT, f"the target is spread over {gpus} GPUs, and a small draft gains nothing from that")
        if facts.method == "draft_model":
            yield favours(HINT, "a draft model of its own costs more than a head")
        depth = facts.run.depth
        if depth is not None and depth >= VERY_DEEP and facts.fired("PAY003"):
            yield opposes(CLEAR, f"{depth} drafts a step are dear however fast each is", "PAY003")
        elif facts.costly and depth is not None and depth >= DEEP and facts.run.drafting.chain:
            yield favours(HINT, f"{depth} drafts a step are made one after the other")
        elif depth == 1:
            yield opposes(HINT, "one draft is made a step")
        if not facts.costly and Symptom.WASTE in facts.symptoms:
            yield opposes(CLEAR, "the step costs what is usual for so many drafts")
        if facts.near_zero and not facts.costly:
            yield opposes(STRONG, "nothing is accepted, so any cost is too much", "ACC002")

    def experiment(self, facts: Facts) -> Experiment:
        """Depth 1."""
        return Experiment(
            "Run once at depth 1 at the same load: the difference of the step times is the cost of the other drafts",
            (at_depth(facts, 1), compare(facts, "DEPTH_1_LOG")),
            {
                "the step gets much cheaper": "drafting is the cost: lower the depth, spread or shrink the draft",
                "hardly cheaper": "verification is the cost: graphs, kernel, experts, width",
            },
        )
