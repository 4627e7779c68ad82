"""Traffic: it became harder while the server ran."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import Facts, Symptom


class TrafficChanged(Cause):
    """The traffic became harder; nothing is broken."""

    id, title = "traffic-changed", "The traffic became harder; nothing is broken"
    kind = Kind.TRAFFIC
    reports = 3
    explains = frozenset({Symptom.DRIFTED, Symptom.REGRESSED})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        yield from when(facts.fired("ACC004"), "acceptance fell during the run (ACC004)", STRONG)
        yield from when(
            facts.earlier_was_better and not facts.differences, "no difference of the two runs is known", CLEAR
        )
        yield from when(
            facts.earlier_was_better and facts.differs("release", "--"), "the server changed between the runs", -STRONG
        )
        yield from when(facts.near_zero, "harder traffic alone never took everything", -STRONG)
        yield from when(facts.fired("ACC006"), "contexts grew, which explains it better (ACC006)", -CLEAR)

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Compare prompt and output lengths, routes and languages of both stretches; replay a fixed set of prompts",
            {"the fixed set is as before": "the traffic changed", "the fixed set fell too": "the server changed"},
        )
