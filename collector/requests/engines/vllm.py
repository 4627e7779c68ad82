"""vLLM: ``metrics.speculative_decoding`` of its OpenAI-compatible answers, 0.29 on.

Given where the server runs with ``--per-request-spec-decode-metrics summary`` or ``detailed``, and one
answer was asked for. ``num_spec_steps`` counts the steps that had a draft, ``acceptance_histogram`` by
accepted drafts, up to ``num_spec_tokens``. ``time_to_first_token_ms`` begins where ``queue_time_ms`` ends.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from collector.domain.errors import ImpossibleFigure
from collector.domain.requests import RequestResult
from collector.requests.base import Found, ResponseFormat, Surroundings, count, counts, key_of, milliseconds

_NOTHING: Final[Mapping[str, Any]] = {}


def _claims(document: Found) -> bool:
    metrics = document.get("metrics")
    return isinstance(metrics, Mapping) and "speculative_decoding" in metrics


def _read(document: Found, around: Surroundings) -> RequestResult | None:
    metrics: Mapping[str, Any] = document["metrics"]
    stated = metrics.get("speculative_decoding")
    spec: Mapping[str, Any] = stated if isinstance(stated, Mapping) else _NOTHING
    usage = around.usage or _NOTHING
    details = usage.get("prompt_tokens_details")
    steps, depth = count(spec, "num_spec_steps"), count(spec, "num_spec_tokens")
    histogram = counts(spec, "acceptance_histogram")
    first, queued = (milliseconds(metrics.get(name)) for name in ("time_to_first_token_ms", "queue_time_ms"))
    if histogram is not None and depth is not None and len(histogram) > depth + 1 and any(histogram[depth + 1 :]):
        raise ImpossibleFigure(
            f"a step accepted {len(histogram) - 1} draft tokens, {depth} were drafted at most",
            why="acceptance_histogram ends with num_spec_tokens",
        )
    return RequestResult(
        engine="vllm",
        key=key_of("vllm", around.name, document, around),
        line=around.line,
        at=around.at,
        route=around.route,
        temperature=around.temperature,
        prompt_tokens=count(usage, "prompt_tokens"),
        cached_tokens=count(details, "cached_tokens") if isinstance(details, Mapping) else None,
        output_tokens=count(usage, "completion_tokens"),
        verify_steps=steps,
        accepted_tokens=count(spec, "num_accepted_draft_tokens"),
        drafted_tokens=count(spec, "num_draft_tokens"),
        histogram=histogram,
        depth=depth or None,
        first_token_seconds=None if first is None or queued is None else queued + first,
    )


FORMAT: Final = ResponseFormat("vllm", _claims, _read)
