"""Wiring: the draft's cache holds states of another context."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, HINT, STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.commands import compare, without_prefix_reuse
from analysis.causes.facts import LOW_ACCEPTANCE, PARTLY_KEPT, Facts, Symptom

UNUSED_SHARE = 0.02
"""Share of prompt tokens from the cache below which reuse cannot matter. Ratio."""


class StaleDraftCache(Cause):
    """The draft's cache is reused or filled wrongly.

    Prompts found in the cache skip the pass that would have filled the draft's own cache, or
    approximated states stay in it. Costs 5 to 15% in the reports, more with long shared
    prompts, and may grow while the server runs.
    """

    id = "stale-draft-cache"
    kind = Kind.WIRING
    reports = ("vllm-project/vllm#14649", "sgl-project/sglang#10846", "vllm-project/vllm#38182")
    explains = LOW_ACCEPTANCE | {Symptom.DRIFTED}
    changes = (("disable_radix_cache", STRONG), ("enable_prefix_caching", STRONG), ("release", HINT))

    def applies(self, facts: Facts) -> bool:
        """Drafts with a cache."""
        return not facts.copies

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """Whether prompts are reused, and the size of the loss."""
        share = facts.value("cached_token_share")
        if facts.flag("disable_radix_cache") is True or facts.flag("enable_prefix_caching") is False:
            yield opposes(STRONG, "prefix reuse is off")
        elif share is not None and share < UNUSED_SHARE:
            yield opposes(CLEAR, "hardly any prompt token comes from the cache")
        elif share is not None and share > 0.5:
            yield favours(HINT, "most prompt tokens come from the cache")
        if facts.lost:
            yield opposes(CLEAR, "the loss is far larger than such faults had (5 to 15%)")
        elif facts.kept is not None and facts.kept >= PARTLY_KEPT:
            yield favours(CLEAR, "the loss is of the size such faults had (5 to 15%)")
        if facts.fired("ACC004"):
            yield favours(HINT, "it grows while the server runs", "ACC004")

    def experiment(self, facts: Facts) -> Experiment:
        """Without reuse."""
        return Experiment(
            "Restart with prefix reuse off and send the same prompts",
            (without_prefix_reuse(facts), compare(facts, "WITHOUT_REUSE_LOG")),
            {"acceptance rises": "reuse feeds the draft stale states", "no difference": "reuse is not the reason"},
        )
