"""vLLM's live metrics and information endpoints, releases 0.8.3 to 0.32."""

from __future__ import annotations

from typing import Final

from collector.metrics.vllm.engine import VllmMetrics

METRICS: Final = VllmMetrics()
