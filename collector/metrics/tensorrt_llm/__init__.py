"""TensorRT-LLM's live metrics (``trtllm-serve``): the Prometheus text, and on request its queue of iterations."""

from __future__ import annotations

from typing import Final

from collector.metrics.tensorrt_llm.engine import TensorrtLlmMetrics

METRICS: Final = TensorrtLlmMetrics()
