"""Settings: the engine runs with other values."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import STRONG, Cause, Experiment, Kind, Reason, establishes, favours, opposes
from analysis.causes.facts import Facts, Symptom
from collector.domain.findings import Confidence


class FlagOverridden(Cause):
    """The engine runs with other values than were asked for.

    It adjusts counts that do not fit together, mostly without a word: 16 draft tokens in a chain
    of one step become 2.
    """

    id = "flag-overridden"
    kind = Kind.SETTINGS
    reports = (
        "public account of Kimi-K2.5 with an EAGLE-3 draft",
        "sgl-project/sglang#8228",
        "sgl-project/sglang#3883",
    )
    explains = frozenset({Symptom.OVERRIDDEN})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What runs against what was asked."""
        override = facts.finding("FLG001")
        if override is not None and override.confidence is Confidence.HIGH:
            yield establishes(override.title, override.rule)
        elif override is not None:
            yield favours(STRONG, override.title, override.rule)
        if override is not None and facts.symptoms - self.explains:
            yield opposes(STRONG, "it does not explain the rest of what was found")

    def experiment(self, facts: Facts) -> Experiment:
        """Ask for what is meant."""
        override = facts.finding("FLG001")
        fix = override.fix[0] if override is not None else "Ask for what you want to run."
        return Experiment(
            fix,
            ("grep -o 'speculative_num_[a-z_]*[^,]*' NEW_LOG   # the engine's own argument line",),
            {"the line shows the value": "the change is in effect", "it does not": "something else decides"},
        )
