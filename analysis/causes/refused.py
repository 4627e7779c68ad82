"""Settings: the combination is refused."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import STRONG, Cause, Experiment, Kind, Reason, establishes, favours
from analysis.causes.facts import Facts, Symptom


class CombinationRefused(Cause):
    """The engine refuses this combination of flags.

    It stops while it reads its arguments, often with a message that names neither the flag nor
    the reason.
    """

    id = "combination-refused"
    kind = Kind.SETTINGS
    reports = ("vllm-project/vllm#41745",)
    explains = frozenset({Symptom.REFUSED})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """The refusal in the log, or as predicted."""
        refused = facts.finding("FLG009")
        if refused is not None and facts.run.record.events_of("refused"):
            yield establishes(refused.why, refused.rule)
        elif refused is not None:
            yield favours(STRONG, refused.why, refused.rule)

    def experiment(self, facts: Facts) -> Experiment:
        """The corrected command."""
        refused = facts.finding("FLG009")
        fix = refused.fix[0] if refused is not None else "Correct the command."
        return Experiment(
            fix,
            ("draftscope check -- NEW_LAUNCH_COMMAND",),
            {"it is accepted": "the combination was at fault", "it is refused": "look for a second conflict"},
        )
