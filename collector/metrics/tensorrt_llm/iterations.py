"""The iterations that TensorRT-LLM gives out once: what was drafted and accepted in each.

Source: TensorRT-LLM, ``cpp/include/tensorrt_llm/executor/types.h: IterationStats``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from collector.domain.errors import MalformedInput
from collector.domain.windows import Origin, Window
from collector.metrics.base import Taken
from collector.metrics.exposition import Sample
from collector.metrics.tensorrt_llm.names import ITERATION

_BATCH: Final = "inflightBatchingStats"
_DRAFTS: Final = "specDecodingStats"
_CACHE: Final = "kvCacheStats"
_RANK: Final = "attentionDpRank"


def read_iterations(content: Any, at: float) -> Taken:
    """One window of all iterations; none where the queue was empty.

    Rows of other attention ranks repeat the drafts of the first: theirs are left out.

    Raises:
        MalformedInput: it is no list of iterations.
    """
    if not isinstance(content, list):
        raise MalformedInput("this is no list of iterations")
    iterations = [_iteration(item) for item in content]
    first = [item for item in iterations if not item.get(_RANK)]
    if not first:
        return Taken(())
    last = first[-1]
    numbers = [_number(item, "iter") for item in first]
    samples = (Sample(ITERATION, {}, numbers[-1]),)
    lost = numbers[-1] - numbers[0] + 1 - len(first)
    notes = (f"{lost:.0f} iterations are missing: another reader took them, or the queue was full",) if lost > 0 else ()
    return Taken((_window(first, last, at, alone=len(first) == len(iterations)),), samples, notes)


def _window(iterations: Sequence[Mapping[str, Any]], last: Mapping[str, Any], at: float, *, alone: bool) -> Window:
    seconds = sum(_number(item, "iterLatencyMS") for item in iterations) / 1000
    steps = _sum(iterations, _DRAFTS, "numRequestsWithDraftTokens")
    accepted = _sum(iterations, _DRAFTS, "numAcceptedTokens")
    passes = _sum(iterations, _BATCH, "numGenRequests")
    decoding = [item for item in iterations if _part(item, _BATCH, "numGenRequests")]
    generated = passes + accepted if alone and decoding else None
    used, most = _part(last, _CACHE, "usedNumBlocks"), _part(last, _CACHE, "maxNumBlocks")
    drafts = any(item.get(_DRAFTS) for item in iterations)
    return Window(
        position=round(at * 1000),
        line=0,
        at=at,
        seconds=seconds or None,
        running_requests=passes / len(decoding) if decoding else 0.0,
        waiting_requests=_number(last, "numQueuedRequests"),
        verify_steps=steps if drafts else None,
        accepted_tokens=accepted if drafts else None,
        drafted_tokens=_sum(iterations, _DRAFTS, "numDraftTokens") if drafts else None,
        generated_tokens=generated,
        generation_throughput=generated / seconds if generated is not None and seconds else None,
        kv_cache_usage=used / most if most else None,
        prefills=int(_sum(iterations, _BATCH, "numContextRequests")),
        origin=Origin.COUNTERS,
    )


def _iteration(item: Any) -> Mapping[str, Any]:
    """One iteration; some releases write each as text."""
    if isinstance(item, str):
        try:
            item = json.loads(item)
        except (ValueError, RecursionError):
            item = None
    if not isinstance(item, dict):
        raise MalformedInput("this is no list of iterations", why=f"one of them is {type(item).__name__}")
    return item


def _number(item: Mapping[str, Any], key: str) -> float:
    value = item.get(key)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0


def _part(item: Mapping[str, Any], part: str, key: str) -> float:
    inner = item.get(part)
    return _number(inner, key) if isinstance(inner, dict) else 0.0


def _sum(iterations: Sequence[Mapping[str, Any]], part: str, key: str) -> float:
    return sum(_part(item, part, key) for item in iterations)
