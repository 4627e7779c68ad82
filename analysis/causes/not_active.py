"""Settings: nothing speculates."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import Cause, Experiment, Kind, Reason, establishes
from analysis.causes.facts import Facts, Symptom


class SpeculationOff(Cause):
    """Speculation is not active: no method is named, or the engine left it.

    Flags about drafts without the one that names the method are ignored without a word. A draft
    that does not fit is dropped at the start, and the server decodes plainly.
    """

    id = "speculation-off"
    kind = Kind.SETTINGS
    reports = ("ggml-org/llama.cpp#25345", "ggml-org/llama.cpp#19493", "LostRuins/koboldcpp#2325")
    explains = frozenset({Symptom.INACTIVE})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What was asked against what decodes."""
        inactive = facts.finding("FLG006")
        if inactive is not None:
            yield establishes(inactive.why, inactive.rule)

    def experiment(self, facts: Facts) -> Experiment:
        """Name the method."""
        inactive = facts.finding("FLG006")
        fix = inactive.fix[0] if inactive is not None else "Name the method."
        return Experiment(
            fix,
            ("draftscope diagnose NEW_LOG",),
            {
                "acceptance figures appear": "this was it",
                "none appear": "the engine leaves the method; read its warnings at the start",
            },
        )
