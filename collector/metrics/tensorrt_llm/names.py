"""The names of TensorRT-LLM's metrics that are read.

Source: TensorRT-LLM, ``tensorrt_llm/metrics/collector.py``, sources of 2026; 1.1 has a few of them.
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "trtllm_"

# Of finished requests.
GENERATED: Final = "trtllm_generation_tokens_total"
PROMPT_TOKENS: Final = "trtllm_prompt_tokens_total"
CACHED_TOKENS: Final = "trtllm_prompt_cached_tokens_total"
FINISHED: Final = "trtllm_request_success_total"
DRAFTED_AT: Final = "trtllm_spec_decode_drafted_tokens_total"  # label token_position, from 0
ACCEPTED_AT: Final = "trtllm_spec_decode_accepted_tokens_total"

# Of iterations.
DRAFTED: Final = "trtllm_spec_decode_num_draft_tokens_total"
ACCEPTED: Final = "trtllm_spec_decode_num_accepted_tokens_total"
LENGTH: Final = "trtllm_spec_decode_acceptance_length"  # of the last iteration
RUNNING: Final = "trtllm_num_requests_running"
WAITING: Final = "trtllm_num_requests_waiting"
CACHE_USAGE: Final = "trtllm_kv_cache_utilization"

SPECULATION: Final = "trtllm_speculative_config_info"
MODEL: Final = "trtllm_model_config_info"
PARALLEL: Final = "trtllm_parallel_config_info"

LATENCIES: Final = (
    "trtllm_time_to_first_token_seconds",
    "trtllm_time_per_output_token_seconds",
    "trtllm_e2e_request_latency_seconds",
    "trtllm_request_queue_time_seconds",
)
"""Histograms that are kept as they are."""

LATENCY_OF: Final = {
    "time_to_first_token_seconds": "trtllm_time_to_first_token_seconds",
    "time_per_output_token_seconds": "trtllm_time_per_output_token_seconds",
    "request_latency_seconds": "trtllm_e2e_request_latency_seconds",
}
"""Histograms by the quantity they are of."""

ITERATION: Final = "trtllm_iteration"
"""Not a metric: the number of the last iteration that was taken out of the queue, kept as a series."""

COUNTERS: Final = frozenset(
    {GENERATED, PROMPT_TOKENS, CACHED_TOKENS, FINISHED, DRAFTED_AT, ACCEPTED_AT, DRAFTED, ACCEPTED, ITERATION}
    | {f"{name}_{part}" for name in LATENCIES for part in ("sum", "count", "bucket")}
)
WANTED: Final = COUNTERS | {LENGTH, RUNNING, WAITING, CACHE_USAGE, SPECULATION, MODEL, PARALLEL}
