"""Load: requests wait."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import DECISIVE, Cause, Experiment, Kind, Reason, favours, refutes
from analysis.causes.commands import compare, relaunch
from analysis.causes.facts import Facts, Symptom


class CapacityLimited(Cause):
    """Requests wait for cache or for the limit of running requests.

    Drafts need memory of their own, and engines lower the limit of running requests when they
    speculate. What waits is slow however well drafts are accepted.
    """

    id = "capacity-limited"
    kind = Kind.LOAD
    reports = ("vllm-project/vllm#43295",)
    explains = frozenset({Symptom.LOAD, Symptom.SLOW})

    def applies(self, facts: Facts) -> bool:
        """Where something says how many requests wait."""
        return facts.fired("PAY004") or self._queue_seen(facts)

    @staticmethod
    def _queue_seen(facts: Facts) -> bool:
        return bool(facts.run.record.windows) and bool(facts.run.frame["waiting_requests"].notna().any())

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """The queue."""
        limited = facts.finding("PAY004")
        if limited is not None:
            yield favours(DECISIVE, limited.title, limited.rule)
        else:
            yield refutes("no queue is seen together with a full cache or the limit")

    def experiment(self, facts: Facts) -> Experiment:
        """More room."""
        limit = facts.flag("max_running_requests") or facts.flag("max_num_seqs")
        option = "--max-running-requests" if facts.engine == "sglang" else "--max-num-seqs"
        room = f"{option} {2 * limit}" if isinstance(limit, int) else f"{option} MORE"
        return Experiment(
            "Raise the limit of running requests, or the cache's share of memory, and watch the queue",
            (relaunch(facts, room), compare(facts, "MORE_ROOM_LOG")),
            {"the queue empties and throughput rises": "capacity was the limit", "no difference": "it was not"},
        )
