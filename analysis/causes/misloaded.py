"""Draft: weights are loaded wrongly (names, scales, quantisation)."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, DECISIVE, HINT, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import LOW_ACCEPTANCE, Facts


class DraftMisloaded(Cause):
    """The draft's weights are loaded wrongly: names, scales or quantisation."""

    id, title = "draft-misloaded", "The draft's weights are loaded wrongly: names, scales or quantisation"
    kind = Kind.DRAFT
    reports = 9
    explains = frozenset(LOW_ACCEPTANCE)

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        yield from when(facts.ngram, "n-gram drafts have no weights", -DECISIVE, refutes=True)
        yield from when(facts.near_zero, "practically nothing is accepted, as with random or unscaled weights", CLEAR)
        yield from when(facts.fired("DRF007"), "precision or quantisation of the two sides differ (DRF007)", CLEAR)
        yield from when(
            facts.method in ("mtp", "medusa"),
            f"{facts.method} heads were misloaded more often than others in the reports",
            HINT,
        )
        yield from when(
            facts.earlier_was_better and not facts.differs("release", "quantization", "dtype", "draft"),
            "the same weights were better before",
            -STRONG,
        )
        yield from when(not facts.near_zero, "misloaded drafts accept next to nothing", -STRONG)
        yield from when(facts.fired("ACC006", "ACC007"), "it works in part of the traffic or units", -CLEAR)

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        del facts
        return Experiment(
            "Load draft and target unquantised once (or the draft alone: --speculative-draft-model-quantization unquant) and compare",
            {
                "acceptance returns": "the quantised loading is at fault",
                "still near zero": "look at weight names and at what feeds the draft",
            },
        )
