"""Wiring: data-parallel attention feeds the draft wrongly."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, DECISIVE, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import LOW_ACCEPTANCE, Facts


class ParallelPathFaulty(Cause):
    """The data-parallel or attention-parallel path feeds the draft wrongly."""

    id, title = "parallel-path-faulty", "The data-parallel or attention-parallel path feeds the draft wrongly"
    kind = Kind.WIRING
    reports = 2
    explains = frozenset(LOW_ACCEPTANCE)

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        attention = facts.flag("enable_dp_attention") is True
        ranks = facts.flag("dp_size") or facts.flag("data_parallel_size") or 1
        parallel = attention or (isinstance(ranks, int) and ranks > 1)
        yield from when(not parallel, "no data parallelism here", -DECISIVE, refutes=True)
        yield from when(attention, "attention data parallelism is on", CLEAR)
        yield from when(attention and facts.earlier_was_better, "the server accepted more without it (ACC003)", STRONG)
        yield from when(
            facts.earlier_was_better and facts.differs("--dp-size", "--enable-dp-attention"),
            "the layout is what differs",
            CLEAR,
        )
        yield from when(facts.fired("ACC007"), "one unit alone lags behind", -CLEAR)

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Run once without data-parallel attention, same draft and prompts, then: draftscope compare WITHOUT WITH",
            {
                "acceptance returns": "the parallel path is at fault on this release",
                "acceptance stays": "the layout is not the reason",
            },
        )
