"""Cost: drafting itself is slow."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, DECISIVE, HINT, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import Facts, Symptom


class DraftStepExpensive(Cause):
    """Drafting itself is slow: not sharded, large, or on a slow path."""

    id, title = "draft-step-expensive", "Drafting itself is slow: not sharded, large, or on a slow path"
    kind = Kind.COST
    reports = 4
    explains = frozenset({Symptom.COST, Symptom.SLOW, Symptom.WASTE})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        cost = Symptom.COST in facts.symptoms
        yield from when(cost, "a step costs clearly more than is usual (PAY002)", CLEAR)
        yield from when(facts.ngram, "n-gram drafts cost next to nothing", -DECISIVE, refutes=True)
        parallel = facts.flag("tp_size") or facts.flag("tensor_parallel_size") or 1
        yield from when(
            cost and isinstance(parallel, int) and parallel >= 4,
            f"the target is spread over {parallel} GPUs; a small draft gains nothing from that",
            HINT,
        )
        yield from when(facts.method == "draft_model", "a draft model of its own costs more than a head", HINT)
        depth = facts.run.depth
        yield from when(cost and depth is not None and depth >= 5, f"{depth} draft passes a step", HINT)
        yield from when(
            not cost and Symptom.SLOW in facts.symptoms and facts.low_acceptance,
            "low acceptance explains the loss",
            -CLEAR,
        )

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Run once with depth 1 at the same load: the difference of the step times is the cost of the other drafts",
            {
                "the step gets much cheaper": "drafting is the cost: lower the depth, spread or shrink the draft",
                "hardly cheaper": "verification is the cost: graphs, kernel, experts, width",
            },
        )
