"""llama.cpp's live metrics and information endpoints, builds b7551 to b11549."""

from __future__ import annotations

from typing import Final

from collector.metrics.llamacpp.engine import LlamacppMetrics

METRICS: Final = LlamacppMetrics()
