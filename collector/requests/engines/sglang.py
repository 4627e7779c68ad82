"""SGLang: ``meta_info`` of the native interface, and of choices where ``return_meta_info`` was asked for.

Source: ``srt/managers/tokenizer_manager.py`` of 0.4.3 to 0.5.23.

| figure | releases |
| --- | --- |
| ``spec_verify_ct`` | 0.4.3 on; from 0.5.7 on only above 0 |
| accepted, drafted | ``spec_accept_token_num``, ``spec_draft_token_num`` 0.5.5 to 0.5.10; ``spec_accepted_drafts``,
  ``spec_proposed_drafts`` 0.5.11 to 0.5.20; ``spec_num_correct_drafts``, ``spec_num_proposed_drafts`` 0.5.12 on |
| histogram | ``spec_accept_histogram`` 0.5.9 to 0.5.20; ``spec_correct_drafts_histogram`` 0.5.12 on |

``spec_accept_length`` and ``spec_accept_rate`` are not used: the length counts the first token, which no
verify step made, and the rate has had two denominators and was 0 in 0.5.3 and 0.5.4.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from collector.domain.errors import ImpossibleFigure
from collector.domain.requests import RequestResult
from collector.requests.base import Found, ResponseFormat, Surroundings, count, counts, instant, key_of, seconds

_ACCEPTED: Final = ("spec_num_correct_drafts", "spec_accepted_drafts", "spec_accept_token_num")
_DRAFTED: Final = ("spec_num_proposed_drafts", "spec_proposed_drafts", "spec_draft_token_num")
_HISTOGRAM: Final = ("spec_correct_drafts_histogram", "spec_accept_histogram")
_RETRACTIONS: Final = ("num_retractions", "total_retractions")
_INSTANTS: Final = ("request_finished_ts", "response_sent_to_client_ts", "decode_finished_ts", "request_received_ts")
FIRST_TOKEN: Final = 1
"""The first token of an answer comes from the prompt's pass; after a retraction another one does."""
SLACK: Final = 2
"""Tokens by which an answer may exceed what its counts explain before they are taken to be too low."""


def _claims(document: Found) -> bool:
    meta = document.get("meta_info")
    return isinstance(meta, Mapping) and ("completion_tokens" in meta or "spec_verify_ct" in meta)


def _read(document: Found, around: Surroundings) -> RequestResult | None:
    meta: Mapping[str, Any] = document["meta_info"]
    steps, drafted = count(meta, "spec_verify_ct"), count(meta, *_DRAFTED)
    accepted, histogram = count(meta, *_ACCEPTED), counts(meta, *_HISTOGRAM)
    tokens = count(meta, "completion_tokens")
    if steps and tokens is not None:
        made = tokens - FIRST_TOKEN - (count(meta, *_RETRACTIONS) or 0) - steps
        if accepted is None or made > accepted + SLACK:
            # up to 0.5.4 nothing is counted, and up to 0.5.12 n-gram drafting counts one too few a step
            accepted, histogram = max(made, 0), None
    if steps and accepted is None:
        raise ImpossibleFigure(
            f"{steps} verify steps, and nothing tells what they accepted", why="completion_tokens is missing"
        )
    if steps is None and not drafted:
        accepted = drafted = None
    stated = meta.get("id")
    name = stated if isinstance(stated, str) else around.name
    return RequestResult(
        engine="sglang",
        key=key_of("sglang", name, document, around),
        line=around.line,
        at=next((moment for key in _INSTANTS if (moment := instant(meta.get(key))) is not None), around.at),
        route=around.route,
        temperature=around.temperature,
        prompt_tokens=count(meta, "prompt_tokens"),
        cached_tokens=count(meta, "cached_tokens"),
        output_tokens=tokens,
        verify_steps=steps,
        accepted_tokens=accepted,
        drafted_tokens=drafted,
        histogram=histogram,
        latency_seconds=seconds(meta.get("e2e_latency")),
    )


FORMAT: Final = ResponseFormat("sglang", _claims, _read)
