"""Wiring: one unit differs from its siblings."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, DECISIVE, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import Facts, Symptom


class FaultyUnit(Cause):
    """One unit runs another checkpoint, cache or hardware than its siblings."""

    id, title = "faulty-unit", "One unit runs another checkpoint, cache or hardware than its siblings"
    kind = Kind.WIRING
    reports = 2
    explains = frozenset({Symptom.OUTLIER})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        outlier = facts.finding("ACC007")
        yield from when(outlier is not None, f"{outlier.title} (ACC007)" if outlier else "", DECISIVE)
        yield from when(facts.low_acceptance, "the whole server is low as well", -CLEAR)

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        outlier = facts.finding("ACC007")
        unit = outlier.scope if outlier is not None else "the unit"
        return Experiment(
            f"Restart {unit} and route the same prompts to it and to a sibling",
            {"it is level again": "a stale state of that process", "it stays behind": "its host or checkpoint differs"},
        )
