"""Draft: its cache runs at a precision that it does not bear."""

from __future__ import annotations

from collections.abc import Iterator

from analysis.causes.base import CLEAR, HINT, STRONG, Cause, Experiment, Kind, Reason, favours, opposes
from analysis.causes.commands import compare, relaunch
from analysis.causes.facts import LOW_ACCEPTANCE, Facts

CACHE_FLAGS = ("kv_cache_dtype", "cache_type_k", "cache_type_v", "spec_draft_type_k", "spec_draft_type_v")
FULL_PRECISION = ("auto", "none", "f16", "f32", "fp16", "bf16", "float16", "bfloat16", "float32")


class CachePrecision(Cause):
    """The key-value cache runs at a low precision, or with scales that do not fit the draft.

    A cache in 8 or 4 bits needs scales. Those of the target, or none, make the draft's own
    attention see noise.
    """

    id = "cache-precision"
    kind = Kind.DRAFT
    reports = ("vllm-project/vllm#41789", "ggml-org/llama.cpp#27151")
    explains = LOW_ACCEPTANCE
    changes = tuple((name, STRONG) for name in CACHE_FLAGS)

    def applies(self, facts: Facts) -> bool:
        """A cache that is quantised."""
        return not facts.copies and bool(self._low(facts))

    @staticmethod
    def _low(facts: Facts) -> list[str]:
        stated = ((name, facts.flag(name)) for name in CACHE_FLAGS)
        return [f"{name} is {value}" for name, value in stated if value and str(value).lower() not in FULL_PRECISION]

    def weigh(self, facts: Facts) -> Iterator[Reason]:
        """The cache's type and the size of the loss."""
        yield favours(CLEAR, ", ".join(self._low(facts)))
        if facts.lost:
            yield favours(HINT, "as little is accepted as with a cache of noise")
        else:
            yield opposes(CLEAR, "most caches of 8 bits cost little, and a part is accepted here")
        if facts.works_in_part:
            yield opposes(CLEAR, "it works in part of the traffic or of the units")

    def experiment(self, facts: Facts) -> Experiment:
        """Full precision."""
        options = (
            ("--cache-type-k f16", "--cache-type-v f16") if facts.engine == "llamacpp" else ("--kv-cache-dtype auto",)
        )
        return Experiment(
            "Start once with the cache at full precision, same draft and prompts",
            (relaunch(facts, *options), compare(facts, "FULL_PRECISION_LOG")),
            {"acceptance returns": "the cache was the reason", "no difference": "its precision is not the reason"},
        )
