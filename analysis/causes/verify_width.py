"""Cost: too many tokens are verified."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.commands import compare, relaunch
from analysis.causes.common import step_cost
from analysis.causes.facts import EXPENSIVE, Facts, Symptom

NARROW = 8
"""Tokens verified a step up to which the width is no question. Count."""


class VerifyTooWide(Cause):
    """Far more tokens are verified than can be accepted.

    A tree of 60 nodes and depth 8 yields at most 9 tokens, and the target computes all 60. That
    is free while memory is the limit, and not in a mixture of experts or at larger batches.
    """

    id = "verify-too-wide"
    kind = Kind.COST
    reports = ("sgl-project/SpecForge#339", "SafeAILab/EAGLE#298")
    explains = EXPENSIVE | {Symptom.WASTE}
    changes = (("speculative_num_draft_tokens", STRONG), ("speculative_eagle_topk", STRONG))

    def applies(self, facts: Facts) -> bool:
        """Where the width is known."""
        return facts.run.width is not None

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """Width against depth."""
        yield from step_cost(facts)
        width, depth = facts.run.width or 0, facts.run.depth or 0
        if width > 2 * (depth + 1):
            yield favours(STRONG, f"{width} tokens are verified for at most {depth + 1} accepted")
        elif width <= NARROW:
            yield opposes(STRONG, f"only {width} tokens are verified a step")
        if facts.fired("PAY003") and width > NARROW and not facts.run.drafting.chain:
            yield favours(STRONG, "more is drafted than can be accepted", "PAY003")

    def experiment(self, facts: Facts) -> Experiment:
        """Half the width."""
        half = max(2, (facts.run.width or 2) // 2)
        option = f"--speculative-num-draft-tokens {half}" if facts.engine == "sglang" else "HALF_THE_DRAFT_TOKENS"
        return Experiment(
            f"Run once with {half} tokens verified a step at the same load",
            (relaunch(facts, option), compare(facts, "NARROW_LOG")),
            {"throughput rises": "go on halving while it does", "throughput falls": "the width was earning its cost"},
        )
