"""Measurement: figures of different definitions are compared."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import Facts, Symptom


class DefinitionMisread(Cause):
    """Figures of different definitions are compared."""

    id, title = "definition-misread", "Figures of different definitions are compared"
    kind = Kind.MEASUREMENT
    reports = 5
    explains = frozenset({Symptom.ACCEPTANCE, Symptom.CONTRADICTED})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        note = facts.finding("MEA007")
        measure = note.values["measure"] if note is not None else "conditional"
        yield from when(
            measure in ("unknown", "marginal"), "what the validation figure counts is not settled (MEA007)", CLEAR
        )
        yield from when(
            note is None or measure not in ("unknown", "marginal"), "the validation figure's meaning is stated", -STRONG
        )
        yield from when(Symptom.CONTRADICTED in facts.symptoms, "figures of this run contradict each other", STRONG)
        retained = facts.retained
        yield from when(
            retained is not None and retained < 0.5, "definitions alone do not make a gap this large", -CLEAR
        )

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Give the training log itself (--training FILE), or request-level counts (--responses FILE)",
            {"the gap closes": "it was one of definition", "the gap stays": "it is real"},
        )
