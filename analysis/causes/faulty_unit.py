"""Wiring: one unit differs from its siblings."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, DECISIVE, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.facts import Facts, Symptom


class FaultyUnit(Cause):
    """One unit runs another checkpoint, cache or hardware than its siblings.

    Units share flags and traffic, so one that accepts less than all others has something of its
    own: a checkpoint that was replaced on one host, a stale process, a card that computes wrongly.
    """

    id = "faulty-unit"
    kind = Kind.WIRING
    reports = ()
    explains = frozenset({Symptom.OUTLIER})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """The outlier, and whether the rest is well."""
        outlier = facts.finding("ACC007")
        if outlier is not None:
            yield favours(DECISIVE, outlier.title, outlier.rule)
            yield favours(CLEAR, "units share flags and traffic")
        if facts.fired("ACC001", "ACC002"):
            yield opposes(CLEAR, "the whole server is low as well")

    def experiment(self, facts: Facts) -> Experiment:
        """Restart it."""
        outlier = facts.finding("ACC007")
        unit = "the unit" if outlier is None else "this replica" if outlier.scope == "run" else outlier.scope
        return Experiment(
            f"Restart {unit} and route the same prompts to it and to a sibling",
            (f"draftscope diagnose AFTER_RESTART_LOG --previous {facts.run.record.source}",),
            {"it is level again": "a stale state of that process", "it stays behind": "its host or checkpoint differs"},
        )
