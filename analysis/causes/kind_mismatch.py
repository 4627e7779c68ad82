"""Wiring: the method does not fit the kind of draft."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import DECISIVE, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import LOW_ACCEPTANCE, Facts, Symptom


class DraftKindMismatch(Cause):
    """The method does not fit the kind of draft that was loaded."""

    id, title = "draft-kind-mismatch", "The method does not fit the kind of draft that was loaded"
    kind = Kind.WIRING
    reports = 2
    explains = frozenset(LOW_ACCEPTANCE | {Symptom.REFUSED})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        mismatch = facts.finding("DRF003")
        yield from when(
            mismatch is not None, f"{mismatch.title} (DRF003)" if mismatch else "", DECISIVE + 1, sufficient=True
        )
        known = facts.run.record.draft_config is not None or facts.run.record.events_of("weights-loaded")
        yield from when(mismatch is None and known, "method and loaded draft agree", -DECISIVE, refutes=True)

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Start with the method the draft was trained for and look at the first windows",
            {"acceptance about doubles": "this was it", "nothing changes": "method and draft fitted already"},
        )
