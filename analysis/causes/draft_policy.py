"""Settings: the depth, or what ends a draft early, does not fit."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, STRONG, Cause, Experiment, Kind, Reason, when
from analysis.causes.facts import Facts, Symptom


class DraftLengthPolicy(Cause):
    """Depth or probability floor do not fit the draft."""

    id, title = "draft-length-policy", "Depth or probability floor do not fit the draft"
    kind = Kind.SETTINGS
    reports = 3
    explains = frozenset({Symptom.WASTE, Symptom.RARE, Symptom.SLOW})

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What raises and lowers it."""
        yield from when(
            facts.fired("PAY003"),
            "a shorter draft would be faster, or far more is drafted than accepted (PAY003)",
            STRONG,
        )
        yield from when(facts.fired("ACC008"), "drafts are rarely made (ACC008)", STRONG)
        floor = facts.flag("draft_p_min") if facts.flag("draft_p_min") is not None else facts.flag("spec_draft_p_min")
        yield from when(floor == 0 and facts.fired("PAY003"), "no probability floor ends a draft early", CLEAR)
        yield from when(not facts.fired("PAY003", "ACC008"), "the depth is not what loses", -STRONG)
        yield from when(facts.near_zero, "no depth helps where nothing is accepted", -STRONG)

    def experiment(self, facts: Facts) -> Experiment:
        """What separates it."""
        best = facts.case.best_depth
        target = f"depth {best.depth}" if best is not None and best.depth else "half the depth"
        return Experiment(
            f"Run once with {target} at the same load, then: draftscope compare DEEP SHALLOW",
            {"throughput rises": "keep the smaller depth", "no difference": "depth is not the reason"},
        )
