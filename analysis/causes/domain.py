"""Traffic: domain or language absent from training."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, HINT, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import LOW_ACCEPTANCE, Facts, Symptom


class DomainDiffers(Cause):
    """The traffic's domain or language was absent from the draft's training."""

    id, title = "domain-differs", "The traffic's domain or language was absent from the draft's training"
    kind = Kind.TRAFFIC
    reports = 3
    explains = frozenset(LOW_ACCEPTANCE | {Symptom.DRIFTED})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        yield from when(facts.ngram, "n-gram drafts are not trained", -STRONG)
        yield from when(
            facts.near_zero, "another domain alone never took everything (0.37 kept in one report)", -STRONG
        )
        retained = facts.retained
        yield from when(
            retained is not None and 0.3 < retained < 0.75, "the share kept is what absent domains showed", HINT
        )
        yield from when(
            facts.fired("ACC004"), "acceptance fell during the run, as when the traffic changes (ACC004)", CLEAR
        )
        yield from when(facts.earlier_was_better and facts.differs("release", "--"), "the server changed", -HINT)
        yield from when(facts.fired("ACC007"), "all units share the traffic, and one lags behind", -CLEAR)

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Split the traffic by route or language and compare acceptance of the parts",
            {
                "parts differ": "train the draft on the weak part, or serve it without",
                "parts alike": "the domain is not the reason",
            },
        )
