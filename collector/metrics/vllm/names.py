"""The names of vLLM's metrics that are read, by release.

Exposed names carry ``_total`` in every release. Where a metric was renamed both names are tried,
the later one first. The ``*_created`` gauges beside counters are instants and not read.

Source: vLLM, ``vllm/v1/metrics/loggers.py``, ``vllm/v1/spec_decode/metrics.py``, releases 0.8.5 to 0.32.0.
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "vllm:"
SANITISED: Final = "vllm_"

DRAFTS: Final = "vllm:spec_decode_num_drafts_total"  # with the next two and positions from the start, if configured
DRAFTED: Final = "vllm:spec_decode_num_draft_tokens_total"
ACCEPTED: Final = "vllm:spec_decode_num_accepted_tokens_total"
ACCEPTED_AT: Final = "vllm:spec_decode_num_accepted_tokens_per_pos_total"  # label position, from 0
EMITTED: Final = "vllm:spec_decode_num_emitted_tokens_total"  # V0 alone
V0_RATE: Final = "vllm:spec_decode_draft_acceptance_rate"  # V0 alone, a gauge since the start

GENERATED: Final = "vllm:generation_tokens_total"
PROMPT_TOKENS: Final = "vllm:prompt_tokens_total"  # cached ones included
PROMPT_TOKENS_BY_SOURCE: Final = "vllm:prompt_tokens_by_source_total"  # 0.17+, label source
CACHE_QUERIES: Final = "vllm:prefix_cache_queries_total"  # 0.9.2+, tokens; 0 where the cache is off
CACHE_HITS: Final = "vllm:prefix_cache_hits_total"
PREEMPTIONS: Final = "vllm:num_preemptions_total"
ITERATIONS: Final = (
    "vllm:iteration_tokens_total_count"  # a histogram in spite of its name: one observation an engine step
)
FIRST_TOKENS: Final = "vllm:time_to_first_token_seconds_count"
DECODE_STEPS: Final = (
    "vllm:inter_token_latency_seconds_count",  # 0.10.2+: one observation a step and request, not a token
    "vllm:time_per_output_token_seconds_count",  # the same to 0.11.2
)

RUNNING: Final = "vllm:num_requests_running"
WAITING: Final = "vllm:num_requests_waiting"
CACHE_USAGE: Final = ("vllm:kv_cache_usage_perc", "vllm:gpu_cache_usage_perc")  # 0.9.2+; to 0.11.2
CACHE_CONFIG: Final = "vllm:cache_config_info"
PROCESS_START: Final = "process_start_time_seconds"  # not exposed with several API servers

LATENCIES: Final = (
    "vllm:time_to_first_token_seconds",
    "vllm:inter_token_latency_seconds",
    "vllm:time_per_output_token_seconds",
    "vllm:request_time_per_output_token_seconds",
    "vllm:e2e_request_latency_seconds",
    "vllm:request_queue_time_seconds",
)
"""Histograms that are kept as they are. The gap between tokens is per step: only that of requests is per token."""

LATENCY_OF: Final = {
    "time_to_first_token_seconds": "vllm:time_to_first_token_seconds",
    "time_per_output_token_seconds": "vllm:request_time_per_output_token_seconds",
    "request_latency_seconds": "vllm:e2e_request_latency_seconds",
}
"""Histograms by the quantity they are of. What vLLM calls the latency between tokens is that between steps."""

COUNTERS: Final = frozenset(
    {DRAFTS, DRAFTED, ACCEPTED, ACCEPTED_AT, GENERATED, PROMPT_TOKENS, PROMPT_TOKENS_BY_SOURCE, CACHE_QUERIES,
     CACHE_HITS, PREEMPTIONS, ITERATIONS}
    | {f"{name}_{part}" for name in LATENCIES for part in ("sum", "count", "bucket")}
)  # fmt: skip
READ: Final = COUNTERS | {RUNNING, WAITING, *CACHE_USAGE, CACHE_CONFIG, EMITTED, V0_RATE}
WANTED: Final = frozenset(READ | {name.replace(PREFIX, SANITISED, 1) for name in READ} | {PROCESS_START})
