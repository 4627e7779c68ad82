"""Settings: overlap or asynchronous scheduling does not fit the method."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import LOW_ACCEPTANCE, Facts, Symptom


class AsynchronousScheduling(Cause):
    """Overlap or asynchronous scheduling does not fit this method."""

    id, title = "scheduling-conflict", "Overlap or asynchronous scheduling does not fit this method"
    kind = Kind.SETTINGS
    reports = 5
    explains = frozenset(LOW_ACCEPTANCE | {Symptom.COST, Symptom.SLOW})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        asynchronous = facts.flag("async_scheduling") is True
        yield from when(facts.ngram and asynchronous, "n-gram drafting with asynchronous scheduling", STRONG)
        yield from when(
            facts.earlier_was_better and facts.differs("async-scheduling", "overlap"),
            "scheduling is what differs from the better run",
            STRONG,
        )
        yield from when(facts.earlier_was_better and facts.ngram, "an n-gram method does not fall by itself", CLEAR)
        forced_off = facts.fired("FLG002")
        cost = Symptom.COST in facts.symptoms
        yield from when(forced_off and cost, "the overlap scheduler is off (FLG002) and the step is dear", CLEAR)
        yield from when(cost and facts.flag("disable_overlap_schedule") is False, "the overlap scheduler is on", -CLEAR)
        yield from when(
            facts.low_acceptance and not cost and not asynchronous and not facts.ngram,
            "scheduling moves time, not acceptance",
            -STRONG,
        )

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Run once with the scheduler switched (--disable-overlap-schedule, --no-async-scheduling), then: draftscope compare A B",
            {
                "the figures change clearly": "the scheduler is part of it",
                "no difference": "scheduling is not the reason",
            },
        )
