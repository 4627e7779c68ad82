"""Settings: a schedule turns drafting off."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import DECISIVE, Cause, Experiment, Kind, Reason, favours
from analysis.causes.commands import compare, relaunch
from analysis.causes.facts import Facts, Symptom


class ScheduleTurnsDraftingOff(Cause):
    """A schedule turns drafting off at loads at which it would pay.

    Depth by batch size saves compute beyond the knee. Set too low, it leaves the gain lying
    where most of the traffic is.
    """

    id = "schedule-turns-drafting-off"
    kind = Kind.SETTINGS
    reports = ()
    explains = frozenset({Symptom.SCHEDULE})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """Windows without drafts."""
        idle = facts.finding("PAY006")
        if idle is not None:
            yield favours(DECISIVE, idle.title, idle.rule)

    def experiment(self, facts: Facts) -> Experiment:
        """A fixed depth."""
        idle = facts.finding("PAY006")
        flag = str(idle.values["flag"]) if idle is not None else "speculative_adaptive"
        return Experiment(
            "Run the same load once with a fixed depth",
            (relaunch(facts, without=(f"--{flag.replace('_', '-')}",)), compare(facts, "FIXED_DEPTH_LOG")),
            {"throughput rises": "the schedule stops too early", "it falls": "the schedule is right"},
        )
