"""Cost: the target is too fast for a draft to pay."""

from __future__ import annotations

import re
from collections.abc import Iterator

from analysis.causes.base import CLEAR, HINT, STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.commands import at_depth, compare, without_speculation
from analysis.causes.common import step_cost
from analysis.causes.facts import EXPENSIVE, Facts

FAST_STEP = 0.006
SLOW_STEP = 0.010
"""Times of a plain step below which overheads outweigh, and above which there is time for drafts. Seconds."""
NARROW = 2048
"""Hidden size up to which a target is small."""
SMALL = 2.0
"""Parameters up to which a target is small. Billions."""
_BILLIONS = re.compile(r"(?<![\d.a-z])(\d+(?:\.\d+)?)b(?![a-z])")


class SmallTarget(Cause):
    """The target is so fast that drafting cannot pay.

    Every step carries overheads of drafting, scheduling and sampling of a few milliseconds. On a
    target of a billion parameters they outweigh what an accepted draft saves.
    """

    id = "small-target"
    kind = Kind.COST
    reports = ("vllm-project/vllm#39680", "kekzl/imp#1428")
    explains = EXPENSIVE

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """The time of a plain step, and the size of the target."""
        yield from step_cost(facts)
        step = facts.baseline.value("step_seconds") if facts.baseline is not None else None
        if step is not None and step < FAST_STEP:
            yield favours(CLEAR if facts.experts else STRONG, f"a plain step takes {1000 * step:.1f} ms")
        elif step is not None and step > SLOW_STEP:
            yield opposes(STRONG, f"a plain step takes {1000 * step:.0f} ms, time enough for a draft")
        hidden = facts.target_config.number("hidden_size") if facts.target_config is not None else None
        sizes = [float(size) for size in _BILLIONS.findall(facts.target_name.split("/")[-1])]
        if hidden is not None and not facts.experts and hidden <= NARROW:
            yield favours(STRONG, f"the target is small (width {hidden:.0f})")
        elif hidden is not None and not facts.experts:
            yield opposes(CLEAR, f"the target is not small (width {hidden:.0f})")
        elif sizes and max(sizes) <= SMALL:
            yield favours(STRONG, f"the target's name says {max(sizes):g} billion parameters")
        elif sizes:
            yield opposes(CLEAR, f"the target's name says {max(sizes):g} billion parameters")
        if not facts.low_acceptance and facts.value("acceptance_length") is not None:
            yield favours(HINT, "drafts are accepted, and it is slower all the same")

    def experiment(self, facts: Facts) -> Experiment:
        """Depth 1, or nothing at all."""
        if facts.run.depth == 1:
            return Experiment(
                "Start once without speculation and compare tokens per second at the same load",
                (without_speculation(facts), compare(facts, "WITHOUT_SPECULATION_LOG")),
                {"it is faster without": "leave it off for this target", "it is not": "the baseline was another load"},
            )
        return Experiment(
            "Run once at depth 1 and compare tokens per second with the run without speculation",
            (at_depth(facts, 1), compare(facts, "DEPTH_1_LOG")),
            {"even depth 1 loses": "turn speculation off for this target", "depth 1 gains": "keep it at 1"},
        )
