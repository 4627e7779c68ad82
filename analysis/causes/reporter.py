"""Measurement: the engine reports what cannot be."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, STRONG, Cause, Experiment, Kind, Reason, favours
from analysis.causes.facts import Facts, Symptom


class ReporterFaulty(Cause):
    """The engine's reporter, or what is assumed about it, is wrong.

    Lengths without the target's own token or with two of them, counters that fall, figures of
    another depth than the argument line states. What was measured is then not what was printed.
    """

    id = "reporter-faulty"
    kind = Kind.MEASUREMENT
    reports = ("sgl-project/sglang#24965", "sgl-project/sglang-jax#1586", "vllm-project/vllm#27077")
    explains = frozenset({Symptom.CONTRADICTED})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What contradicts what."""
        impossible = facts.finding("MEA002")
        if impossible is not None:
            yield favours(STRONG, impossible.title, impossible.rule)
        contradiction = facts.finding("MEA003")
        if contradiction is None:
            return
        yield favours(STRONG, contradiction.title, contradiction.rule)
        implied = contradiction.values.get("implied_verify_width")
        if implied is not None:
            yield favours(
                CLEAR, f"the printed pairs fit a verify width of {implied}, not of {facts.run.width}", "MEA003"
            )

    def experiment(self, facts: Facts) -> Experiment:
        """Request-level counts."""
        source = facts.run.record.source
        return Experiment(
            "Compare with request-level counts of a few responses",
            (f"draftscope diagnose {source} --responses RESPONSES",),
            {
                "they agree with one of the figures": "the other is wrong",
                "they agree with none": "the depth or release is not what is assumed",
            },
        )
