"""Settings: the engine runs with other values than asked."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import DECISIVE, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import Facts, Symptom


class FlagOverridden(Cause):
    """The engine runs with other values than were asked for."""

    id, title = "flag-overridden", "The engine runs with other values than were asked for"
    kind = Kind.SETTINGS
    reports = 3
    explains = frozenset({Symptom.OVERRIDDEN, Symptom.SLOW, Symptom.WASTE})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        override = facts.finding("FLG001")
        yield from when(
            override is not None,
            f"{override.title} (FLG001)" if override else "",
            DECISIVE,
            sufficient=Symptom.OVERRIDDEN in facts.symptoms,
        )
        compared = facts.run.arguments.any_requested and facts.run.arguments.any_effective
        yield from when(override is None and compared, "draft tokens and steps run as asked", -DECISIVE, refutes=True)

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        override = facts.finding("FLG001")
        return Experiment(
            override.fix[0] if override is not None else "Compare the launch command with the engine's argument line",
            {"the argument line shows the value": "the change is in effect", "it does not": "something else decides"},
        )
