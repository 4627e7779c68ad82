"""Wiring: a parallel path feeds the draft wrongly."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, DECISIVE, STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.commands import compare, relaunch
from analysis.causes.facts import LOW_ACCEPTANCE, Facts


class ParallelPathFaulty(Cause):
    """The data-parallel or attention-parallel path feeds the draft wrongly.

    With attention data parallelism, states are gathered over other groups of ranks than without.
    A gather over the wrong one gives each rank a mixture of everybody's states. All ranks show
    the same loss.
    """

    id = "parallel-path-faulty"
    kind = Kind.WIRING
    reports = ("sgl-project/sglang#16274", "sgl-project/sglang#20492")
    explains = LOW_ACCEPTANCE
    changes = (
        ("enable_dp_attention", DECISIVE),
        ("dp_size", DECISIVE),
        ("data_parallel_size", STRONG),
        ("tp_size", CLEAR),
        ("tensor_parallel_size", CLEAR),
    )

    def applies(self, facts: Facts) -> bool:
        """Several data-parallel ranks."""
        return facts.flag("enable_dp_attention") is True or facts.count("dp_size", "data_parallel_size") > 1

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """Whether attention is parallel, and whether all ranks are alike."""
        if facts.flag("enable_dp_attention") is True:
            yield favours(CLEAR, "attention is data-parallel, which has a path of its own")
        if facts.earlier_was_better:
            yield favours(CLEAR, "the deployment accepted more before", "ACC003")
        if facts.fired("ACC007"):
            yield opposes(STRONG, "one unit alone lags behind", "ACC007")
        if facts.works_in_part:
            yield opposes(CLEAR, "it works in part of the traffic or of the units")

    def experiment(self, facts: Facts) -> Experiment:
        """Without data parallelism."""
        layout = ("--enable-dp-attention", "--dp-size", "--dp", "--data-parallel-size")
        return Experiment(
            "Run once without data parallelism, same draft and prompts",
            (relaunch(facts, without=layout), compare(facts, "WITHOUT_PARALLEL_LOG")),
            {
                "acceptance returns": "the parallel path is at fault on this release",
                "acceptance stays": "the layout is not the reason",
            },
        )
