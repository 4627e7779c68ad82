"""Load: requests wait for memory or a limit."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import DECISIVE, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import Facts, Symptom


class CapacityLimited(Cause):
    """Requests wait for cache or for the limit of running requests."""

    id, title = "capacity-limited", "Requests wait for cache or for the limit of running requests"
    kind = Kind.LOAD
    reports = 2
    explains = frozenset({Symptom.LOAD, Symptom.SLOW})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        yield from when(
            facts.fired("PAY004"), "requests wait while cache or limit is exhausted (PAY004)", DECISIVE, sufficient=True
        )
        yield from when(not facts.fired("PAY004"), "no queue is seen", -DECISIVE, refutes=True)

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Raise the limit of running requests or the cache's share of memory, and watch the queue",
            {"the queue empties and throughput rises": "capacity was the limit", "no difference": "it was not"},
        )
