"""Wiring: the draft's own later steps are fed the wrong state."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, DECISIVE, STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.commands import at_depth, compare
from analysis.causes.facts import LOW_ACCEPTANCE, Facts


class FeedbackBroken(Cause):
    """The draft's steps after the first are fed the wrong state or position.

    The first draft comes from the target's states; later ones from the draft's own. A wrong norm
    in the loop, wrong position ids or a mask that hides the new tokens leave a good first
    position and a collapse after it. A draft never trained for depth looks alike.
    """

    id = "feedback-broken"
    kind = Kind.WIRING
    reports = ("vllm-project/vllm#33330",)
    explains = LOW_ACCEPTANCE

    def applies(self, facts: Facts) -> bool:
        """Drafts that draft from their own output."""
        return not facts.copies and (facts.run.depth or 2) > 1

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """The shape over positions."""
        if facts.later_positions_fail:
            yield favours(
                DECISIVE, f"acceptance breaks off at position {facts.cliff_position}, after a good one", "ACC005"
            )
        elif facts.first_position_fails:
            yield opposes(STRONG, "the first position already fails", "ACC005")
        elif facts.counted_positions:
            yield opposes(STRONG, "acceptance falls gently over the positions")
        if facts.lost:
            yield opposes(CLEAR, "not even first drafts are accepted")
        if facts.later_positions_fail and facts.fired("ACC006", "DRF005"):
            yield opposes(CLEAR, "contexts beyond the draft's window end long drafts as well")

    def experiment(self, facts: Facts) -> Experiment:
        """Depth 1."""
        depth = (facts.cliff_position or 2) - 1
        return Experiment(
            f"Run once at depth {depth} with the same prompts and compare the first positions",
            (at_depth(facts, depth), compare(facts, "SHALLOW_LOG")),
            {
                "they stay as they are": "the steps after them are wrong; keep this depth until that is repaired",
                "they rise": "the deeper steps disturb the first ones as well",
            },
        )
