"""Wiring: the draft's cache holds states of another context."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, DECISIVE, HINT, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import LOW_ACCEPTANCE, Facts, Symptom


class StaleCacheOrReuse(Cause):
    """The draft's cache is reused or filled wrongly."""

    id, title = "stale-draft-cache", "The draft's cache is reused or filled wrongly"
    kind = Kind.WIRING
    reports = 3
    explains = frozenset(LOW_ACCEPTANCE | {Symptom.DRIFTED})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        yield from when(facts.ngram, "n-gram drafts have no cache", -DECISIVE, refutes=True)
        yield from when(facts.near_zero, "a stale cache costs a part, not everything, in the reports", -CLEAR)
        retained = facts.retained
        yield from when(
            retained is not None and retained > 0.6, "the loss is of the size such faults had (8 to 15%)", HINT
        )
        yield from when(
            retained is not None and retained < 0.5, "the loss is larger than such faults had (8 to 15%)", -CLEAR
        )
        yield from when(facts.flag("disable_radix_cache") is True, "prefix reuse is off", -STRONG)
        yield from when(facts.fired("ACC004"), "it grows worse while the server runs (ACC004)", HINT)
        share = facts.value("cached_token_share")
        yield from when(share is not None and share < 0.02, "hardly any prompt token comes from the cache", -CLEAR)

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Restart with prefix reuse off (--disable-radix-cache, --no-enable-prefix-caching) and compare",
            {"acceptance rises": "reuse feeds the draft stale states", "no difference": "reuse is not the reason"},
        )
