"""SGLang's live metrics and information endpoint, releases 0.4.6 to 0.5.23."""

from __future__ import annotations

from typing import Final

from collector.metrics.sglang.engine import SglangMetrics

METRICS: Final = SglangMetrics()
