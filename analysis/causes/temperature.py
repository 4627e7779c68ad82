"""Traffic: sampling lowers acceptance."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, DECISIVE, HINT, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import LOW_ACCEPTANCE, Facts


class SamplingTemperature(Cause):
    """The traffic samples at a temperature the validation did not."""

    id, title = "sampling-temperature", "The traffic samples at a temperature the validation did not"
    kind = Kind.TRAFFIC
    reports = 3
    explains = frozenset(LOW_ACCEPTANCE)

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        temperature = facts.temperature
        yield from when(temperature == 0, "the traffic is greedy", -DECISIVE, refutes=True)
        yield from when(temperature is not None and temperature > 0, f"the traffic samples at {temperature}", HINT)
        yield from when(facts.near_zero, "temperature lowers acceptance, it does not remove it", -DECISIVE)
        retained = facts.retained
        yield from when(
            retained is not None and retained < 0.6,
            "sampling costs 4 to 17% of the accepted drafts, not this much",
            -STRONG,
        )
        yield from when(retained is not None and retained >= 0.6, "the loss is of the size sampling costs", CLEAR)

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Send the same prompts once at temperature 0 and once at that of the traffic",
            {
                "greedy is as validated": "sampling is the difference, no fault",
                "both are low": "temperature is not the reason",
            },
        )
