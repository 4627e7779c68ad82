"""Lines in which an engine says that it changed a flag."""

from __future__ import annotations

from analysis import words
from collector.domain.evidence import Evidence
from collector.domain.runs import RunRecord

_PHRASES = {
    "speculative_num_draft_tokens": ("speculative_num_draft_tokens is adjusted", "speculative_num_draft_tokens is set"),
    "disable_overlap_schedule": (
        "verlap schedul",
        "verlap spec v2",
        "Spec v1 is used",
        "MambaRadixCache is not compatible with overlap",
    ),
    "max_running_requests": ("Max running requests is reset",),
    "chunked_prefill_size": ("chunked prefill size is adjusted",),
    "speculative_eagle_topk": ("speculative_eagle_topk is adjusted", "speculative_eagle_topk is changed"),
    "enable_mixed_chunk": ("ixed chunked prefill",),
    "disable_radix_cache": ("adix cache is disabled", "Disabling radix cache"),
    "page_size": ("change page_size to",),
    "disable_cuda_graph": ("uda graph is disabled",),
    "attention_backend": ("Attention backend not",),
}


def announcement_about(record: RunRecord, flag: str) -> Evidence | None:
    """The line in which the engine speaks of changing this flag, if it was read."""
    phrases = _PHRASES.get(flag, (f"{flag} is", words.flag(flag)))
    for event in record.events_of("announcement"):
        if flag in event.values or any(phrase in event.evidence.text for phrase in phrases):
            return event.evidence
    return None
