"""Measurement: the engine reports figures that cannot be."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import Facts, Symptom


class ReporterFaulty(Cause):
    """The engine's reporter, or what is assumed about it, is wrong."""

    id, title = "reporter-faulty", "The engine's reporter, or what is assumed about it, is wrong"
    kind = Kind.MEASUREMENT
    reports = 3
    explains = frozenset({Symptom.CONTRADICTED})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        yield from when(facts.fired("MEA002"), "a figure has an impossible value (MEA002)", STRONG)
        contradiction = facts.finding("MEA003")
        yield from when(contradiction is not None, f"{contradiction.title} (MEA003)" if contradiction else "", STRONG)
        implied = contradiction.values.get("implied_verify_width") if contradiction is not None else None
        yield from when(implied is not None, f"the printed pairs fit a verify width of {implied}", CLEAR)

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Compare with request-level counts of a few responses (--responses FILE)",
            {
                "they agree with one of the figures": "the other is wrong",
                "they agree with none": "the depth or release is not what is assumed",
            },
        )
