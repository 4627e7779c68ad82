"""The names of llama.cpp's metrics that are read.

Throughput gauges are left alone: each scrape begins them anew, so that two readers disturb each other.

Source: llama.cpp, ``tools/server/server-task.cpp`` and ``server-context.cpp``, builds b7551 to b11549.
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "llamacpp:"

DRAFTS: Final = "llamacpp:spec_decode_num_drafts_total"  # b10502+, with 0 where nothing is drafted
DRAFTED: Final = "llamacpp:spec_decode_num_draft_tokens_total"
ACCEPTED: Final = "llamacpp:spec_decode_num_accepted_tokens_total"
ACCEPTED_AT: Final = "llamacpp:spec_decode_num_accepted_tokens_per_pos_total"  # once a request with drafts has ended
GENERATED: Final = "llamacpp:tokens_predicted_total"
GENERATION_SECONDS: Final = "llamacpp:tokens_predicted_seconds_total"
PROMPT_TOKENS: Final = "llamacpp:prompt_tokens_total"  # without cached ones
CACHED_TOKENS: Final = "llamacpp:prompt_tokens_cached_total"  # later builds
PROMPT_SECONDS: Final = "llamacpp:prompt_seconds_total"
DECODES: Final = "llamacpp:n_decode_total"  # batches of all slots, verification included
BUSY_SLOTS: Final = "llamacpp:n_busy_slots_per_decode"  # a mean since the start
RUNNING: Final = "llamacpp:requests_processing"
WAITING: Final = "llamacpp:requests_deferred"
CACHE_USAGE: Final = "llamacpp:kv_cache_usage_ratio"  # earlier builds
CACHE_TOKENS: Final = "llamacpp:kv_cache_tokens"  # earlier builds

PROCESS: Final = "Process-Start-Time-Unix"
"""A header of the answer, kept as a series beside the metrics: another value in each process, and no time."""

COUNTERS: Final = frozenset(
    {DRAFTS, DRAFTED, ACCEPTED, ACCEPTED_AT, GENERATED, GENERATION_SECONDS, PROMPT_TOKENS, CACHED_TOKENS,
     PROMPT_SECONDS, DECODES}
)  # fmt: skip
WANTED: Final = COUNTERS | {BUSY_SLOTS, RUNNING, WAITING, CACHE_USAGE, CACHE_TOKENS}
