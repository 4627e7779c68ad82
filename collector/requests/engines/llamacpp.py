"""llama.cpp: ``timings`` of ``/completion`` and of the OpenAI-compatible answers.

``draft_n`` counts the tokens handed to the target as drafts, ``draft_n_accepted`` those accepted, without
the target's own. Both are there only where something was drafted. How many steps verified a draft is not
said; the server's log has it. The first token comes from the prompt's batch, so ``predicted_ms`` is the time
of the others; ``predicted_per_token_ms`` divides it by all of them up to b9093, and is not used.

Source: ``tools/server/server-task.cpp`` of b7551 to b11549.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from collector.domain.requests import RequestResult
from collector.requests.base import Found, ResponseFormat, Surroundings, count, key_of, milliseconds


def _claims(document: Found) -> bool:
    timings = document.get("timings")
    return isinstance(timings, Mapping) and "predicted_n" in timings


def _read(document: Found, around: Surroundings) -> RequestResult | None:
    if document.get("stop") is False:
        return None  # a part of a streamed answer
    timings: Mapping[str, Any] = document["timings"]
    drafted = count(timings, "draft_n") or 0
    cached, new = count(timings, "cache_n"), count(timings, "prompt_n")
    prompt, answer = milliseconds(timings.get("prompt_ms")), milliseconds(timings.get("predicted_ms"))
    tokens = count(timings, "predicted_n")
    return RequestResult(
        engine="llamacpp",
        key=key_of("llamacpp", around.name, document, around),
        line=around.line,
        at=around.at,
        route=around.route,
        temperature=around.temperature,
        prompt_tokens=None if new is None else new + (cached or 0),
        cached_tokens=cached,
        output_tokens=tokens,
        verify_steps=None if drafted else 0,
        accepted_tokens=count(timings, "draft_n_accepted") or 0,
        drafted_tokens=drafted,
        latency_seconds=None if prompt is None or answer is None else prompt + answer,
        first_token_seconds=prompt,
        token_seconds=answer / (tokens - 1) if answer is not None and tokens is not None and tokens > 1 else None,
    )


FORMAT: Final = ResponseFormat("llamacpp", _claims, _read)
