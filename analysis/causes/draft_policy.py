"""Settings: depth or probability floor."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.commands import at_depth, compare, relaunch
from analysis.causes.facts import Facts, Symptom

VERY_DEEP = 16
"""Drafts a step from which the depth itself makes a step dear. Count."""
FLOORS = ("spec_draft_p_min", "draft_p_min")


class DraftLengthPolicy(Cause):
    """Depth or probability floor do not fit the draft.

    Without a floor a draft goes on when it no longer knows; with a high one it hardly starts.
    One build's changed default (0.75 to 0) turned 94% accepted into 7%, with the same draft.
    """

    id = "draft-length-policy"
    kind = Kind.SETTINGS
    reports = ("ggml-org/llama.cpp#25908", "ggml-org/llama.cpp#18039", "ggml-org/llama.cpp#12968")
    explains = frozenset({Symptom.WASTE, Symptom.RARE, Symptom.SLOW})

    def applies(self, facts: Facts) -> bool:
        """Where something is drafted in vain, or hardly anything is drafted."""
        return facts.fired("PAY003", "ACC008")

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """What is drafted against what is accepted."""
        wasteful = facts.finding("PAY003")
        if wasteful is not None and facts.run.drafting.chain:
            yield favours(STRONG, wasteful.title, wasteful.rule)
        rare = facts.finding("ACC008")
        if rare is not None:
            yield favours(STRONG, rare.title, rare.rule)
        floor = self._floor(facts)
        if floor == 0 and wasteful is not None:
            yield favours(CLEAR, "no probability floor ends a draft early")
        elif rare is not None and floor is not None and floor > 0:
            yield favours(CLEAR, f"a probability floor of {floor:g} keeps all but sure drafts away")
        best = facts.case.best_depth
        if best is not None and best.depth == 0 and (facts.run.depth or 0) < VERY_DEEP:
            yield opposes(STRONG, "at this step cost no depth pays", "PAY002")

    @staticmethod
    def _floor(facts: Facts) -> float | None:
        values = (facts.flag(name) for name in FLOORS)
        return next((float(value) for value in values if isinstance(value, (int, float))), None)

    @staticmethod
    def _depth(facts: Facts) -> int:
        """The fastest depth below this one, half of it where that is not known."""
        best, depth = facts.case.best_depth, facts.run.depth or 2
        if best is None or depth < 2:
            return max(1, depth // 2)
        return max(range(1, min(depth, len(best.speedups))), key=lambda k: best.speedups[k])

    def experiment(self, facts: Facts) -> Experiment:
        """A smaller depth, or another floor."""
        if self._floor(facts) == 0:
            return Experiment(
                "Let the draft end where it is unsure, at the same load",
                (relaunch(facts, "--spec-draft-p-min 0.75"), compare(facts, "FLOOR_LOG")),
                {"throughput rises": "keep a floor", "no difference": "the floor is not the reason"},
            )
        depth = self._depth(facts)
        return Experiment(
            f"Run once at depth {depth} at the same load",
            (at_depth(facts, depth), compare(facts, f"DEPTH_{depth}_LOG")),
            {"throughput rises": "keep this depth", "no difference": "the depth is not the reason"},
        )
