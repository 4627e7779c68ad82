"""Traffic: sampling."""

from __future__ import annotations

from collections.abc import Iterator

from analysis import words
from analysis.causes.base import (
    CLEAR,
    DECISIVE,
    HINT,
    STRONG,
    Cause,
    Experiment,
    Kind,
    Reason,
    favours,
    opposes,
    refutes,
)
from analysis.causes.commands import replay
from analysis.causes.facts import LOW_ACCEPTANCE, Facts

SAMPLING_KEEPS = 0.70
"""Share of the drafts that sampling at temperature 1 keeps at least, with some allowance. Ratio; theory section 2.5: 0.83."""


class SamplingTemperature(Cause):
    """The traffic samples at a temperature that the validation did not.

    Drafts are taken greedily, so a sampled target disagrees more often. At temperature 1 that
    costs 4 to 17% of the accepted drafts; it never takes nearly all of them.
    """

    id = "sampling-temperature"
    kind = Kind.TRAFFIC
    reports = ("vllm-project/vllm#16899", "sgl-project/sglang#26312", "ggml-org/llama.cpp#27694")
    explains = LOW_ACCEPTANCE
    changes = (("temperature", STRONG),)

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """The temperature and the size of the loss."""
        if facts.temperature == 0:
            yield refutes("the traffic is greedy")
            return
        if facts.temperature is None:
            yield favours(HINT, "the temperature of the traffic is not known")
        elif facts.fired("ACC001"):
            yield opposes(CLEAR, f"what temperature {facts.temperature:g} costs is allowed for", "ACC001")
        else:
            yield favours(HINT, f"the traffic samples at temperature {facts.temperature:g}")
        if facts.cost_of_sampling is not None:
            greedy, sampled = facts.cost_of_sampling
            pair = f"length {words.length(greedy.length)} of greedy requests, {words.length(sampled.length)} of sampled ones"
            costs = sampled.interval.length_high < greedy.interval.length_low
            yield favours(STRONG, pair) if costs else opposes(STRONG, f"{pair}: no difference is seen")
        if facts.near_zero:
            yield opposes(DECISIVE, "temperature lowers acceptance, it does not remove it", "ACC002")
        elif facts.kept is not None and facts.kept < SAMPLING_KEEPS:
            yield opposes(STRONG, "sampling costs 4 to 17% of the accepted drafts, not this much")
        elif facts.kept is not None:
            yield favours(STRONG, "the loss is of the size sampling costs")
        if facts.works_in_part:
            yield opposes(CLEAR, "it works in part of the traffic or of the units")

    def experiment(self, facts: Facts) -> Experiment:
        """Greedy."""
        return Experiment(
            "Send the same prompts once at temperature 0 and once at that of the traffic",
            (replay(facts),),
            {
                "greedy is as validated": "sampling is the difference, no fault",
                "both are low": "temperature is not the reason",
            },
        )
