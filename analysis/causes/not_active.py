"""Settings: speculation is not active at all."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import DECISIVE, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import Facts, Symptom


class SpeculationOff(Cause):
    """Speculation is not active: no method, or switched off."""

    id, title = "speculation-off", "Speculation is not active: no method, or switched off"
    kind = Kind.SETTINGS
    reports = 2
    explains = frozenset({Symptom.INACTIVE, Symptom.SLOW})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        inactive = facts.finding("FLG006")
        yield from when(
            inactive is not None, f"{inactive.why} (FLG006)" if inactive else "", DECISIVE + 1, sufficient=True
        )
        yield from when(inactive is None, "drafts are made", -DECISIVE, refutes=True)

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Name the method on the command line and look for acceptance figures in the log",
            {
                "figures appear": "this was it",
                "none appear": "the engine refuses the method without a word; look at its warnings",
            },
        )
