"""SGLang's metric names, by release, and what they are to us.

Names are written with ``sglang:``; client libraries that sanitise expose ``sglang_``. Counters of
one kind are tried in their order, because later releases count better.

Source: SGLang, ``srt/metrics/collector.py`` (``srt/observability/metrics_collector.py`` from
0.5.10), releases 0.4.6 to 0.5.23.
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "sglang:"
SANITISED: Final = "sglang_"

# Of a scheduler: one series a rank.
DECODED: Final = "sglang:realtime_tokens_total"  # 0.5.7+, label mode: prefill_compute, prefill_cache, decode
PASSES: Final = "sglang:cuda_graph_passes_total"  # 0.5.7+, label mode: decode_none, decode_cuda_graph, prefill_…
DEQUEUED: Final = "sglang:queue_time_seconds_count"  # 0.5.3+
RUNNING: Final = "sglang:num_running_reqs"
WAITING: Final = "sglang:num_queue_reqs"
TOKENS_IN_USE: Final = "sglang:num_used_tokens"
CACHE_USAGE: Final = "sglang:token_usage"
THROUGHPUT: Final = "sglang:gen_throughput"
LENGTH: Final = "sglang:spec_accept_length"
RATE: Final = "sglang:spec_accept_rate"  # 0.5.3+
GRAPH: Final = "sglang:is_cuda_graph"  # 0.5.4+
ACTIVE: Final = ("sglang:spec_num_steps", "sglang:spec_num_draft_tokens")  # 0.5.13+
RETRACTED: Final = (
    "sglang:num_retracted_reqs",
    "sglang:num_retracted_requests_total",
)  # 0.5.2+; the gauge names its pid

# Of the server: no rank labels, counted when a request finishes.
GENERATED: Final = "sglang:generation_tokens_total"
FINISHED: Final = "sglang:num_requests_total"
VERIFIED: Final = "sglang:spec_verify_calls_total"  # 0.5.13+
PROMPT_TOKENS: Final = "sglang:prompt_tokens_total"
CACHED_TOKENS: Final = "sglang:cached_tokens_total"  # label cache_source 0.5.9+

# Where a client library was told to expose it; SGLang's multi-process mode does not.
PROCESS_START: Final = "process_start_time_seconds"

MEAN_LENGTH: Final = "avg_spec_accept_length"
"""Not a metric: a field of the information endpoint, kept as a series beside the metrics."""

LATENCIES: Final = (
    "sglang:time_to_first_token_seconds",
    "sglang:inter_token_latency_seconds",
    "sglang:e2e_request_latency_seconds",
)
"""Histograms that are kept as they are. The gap between tokens is per token, not per step."""

LATENCY_OF: Final = {
    "time_to_first_token_seconds": "sglang:time_to_first_token_seconds",
    "inter_token_latency_seconds": "sglang:inter_token_latency_seconds",
    "request_latency_seconds": "sglang:e2e_request_latency_seconds",
}
"""Histograms by the quantity they are of."""

COUNTERS: Final = frozenset(
    {DECODED, PASSES, DEQUEUED, GENERATED, FINISHED, VERIFIED, PROMPT_TOKENS, CACHED_TOKENS, RETRACTED[1]}
    | {f"{name}_{part}" for name in LATENCIES for part in ("sum", "count", "bucket")}
)
GAUGES: Final = frozenset(
    {RUNNING, WAITING, TOKENS_IN_USE, CACHE_USAGE, THROUGHPUT, LENGTH, RATE, GRAPH, *ACTIVE, RETRACTED[0]}
)
READ: Final = COUNTERS | GAUGES
WANTED: Final = frozenset(READ | {name.replace(PREFIX, SANITISED, 1) for name in READ} | {PROCESS_START})
