"""Measurement: acceptance is made up."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import Cause, Experiment, Kind, Reason, establishes
from analysis.causes.commands import relaunch
from analysis.causes.facts import LOW_ACCEPTANCE, Facts, Symptom

VARIABLES = ("SGLANG_SIMULATE_ACC_LEN", "SIMULATE_ACC_LEN")
FLAGS = ("spec_synth_len", "spec_synth_rates")


class AcceptanceSimulated(Cause):
    """Simulated acceptance is switched on: every acceptance figure is made up.

    Engines can pretend an acceptance length to measure cost alone. The text is wrong then, and
    no figure says anything about the draft.
    """

    id = "acceptance-simulated"
    kind = Kind.MEASUREMENT
    reports = ()
    explains = LOW_ACCEPTANCE | {Symptom.CONTRADICTED, Symptom.SLOW, Symptom.COST, Symptom.WASTE}

    def applies(self, facts: Facts) -> bool:
        """Where it is switched on."""
        return self._switch(facts) != ""

    @staticmethod
    def _switch(facts: Facts) -> str:
        launch = facts.run.record.launch
        environment = launch.environment if launch is not None else {}
        for name in VARIABLES:
            value = environment.get(name, "")
            if value and not value.startswith("-"):
                return f"{name}={value}"
        told = facts.run.record.events_of("synthetic-acceptance")
        if told:
            return f"the engine says: {told[0].evidence.text.strip()}"
        if facts.flag("speculative_config.rejection_sample_method") == "synthetic":
            return "rejection_sample_method is synthetic"
        return next((f"{name} is {facts.flag(name)}" for name in FLAGS if facts.flag(name) is not None), "")

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """The switch."""
        yield establishes(self._switch(facts))

    def experiment(self, facts: Facts) -> Experiment:
        """Without it."""
        return Experiment(
            "Start without the switch",
            (relaunch(facts, without=("--spec-synth-len", "--spec-synth-rates")),),
            {"acceptance changes": "the figures before were made up", "no change": "the switch was not read"},
        )
