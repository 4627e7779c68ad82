"""Cost: verification or draft run without captured graphs."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, DECISIVE, HINT, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import Facts, Symptom


class GraphsOff(Cause):
    """Verification or draft run without captured graphs."""

    id, title = "graphs-off", "Verification or draft run without captured graphs"
    kind = Kind.COST
    reports = 4
    explains = frozenset({Symptom.COST, Symptom.SLOW})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        yield from when(facts.fired("PAY007"), "windows decoded without a graph (PAY007)", DECISIVE)
        yield from when(
            facts.flag("disable_cuda_graph") is True or facts.flag("enforce_eager") is True,
            "graphs are switched off by a flag",
            STRONG,
        )
        graph = facts.run.frame["graph"].dropna()
        yield from when(
            not graph.empty and bool(graph.all()),
            "every window decoded from a graph, as far as the target goes",
            -CLEAR,
        )
        yield from when(facts.run.on_cpu, "a CPU has no graphs", -DECISIVE, refutes=True)
        yield from when(Symptom.COST in facts.symptoms, "the step is dear", HINT)

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Look for capture lines of draft and verification at the start of the log; raise the captured batch sizes and compare",
            {"the step gets cheaper": "steps ran without graphs", "no difference": "graphs were there"},
        )
