"""Settings: the engine refuses the combination of flags."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import DECISIVE, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import Facts, Symptom


class CombinationRefused(Cause):
    """The engine refuses this combination of flags."""

    id, title = "combination-refused", "The engine refuses this combination of flags"
    kind = Kind.SETTINGS
    reports = 2
    explains = frozenset({Symptom.REFUSED})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        refused = facts.finding("FLG009")
        yield from when(
            refused is not None, f"{refused.title} (FLG009)" if refused else "", DECISIVE + 1, sufficient=True
        )

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        refused = facts.finding("FLG009")
        return Experiment(
            refused.fix[0] if refused is not None else "Start again", {"it starts": "the combination was at fault"}
        )
