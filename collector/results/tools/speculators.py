"""speculators' evaluation: ``acceptance.csv`` and ``perf_results.csv``.

Acceptance comes from the server's counters around each subset of prompts; throughput and latencies are medians
of GuideLLM's.

Source: speculators main of 2026-08, ``scripts/evaluate/perf_utils.py``.
"""

from __future__ import annotations

from typing import ClassVar, Final

from collector.domain.results import BenchmarkRow, Latency
from collector.results.content import Content, Record, number, positive
from collector.results.tools.base import Tool

_ACCEPTANCE: Final = frozenset({"subset", "num_drafts", "num_draft_tokens", "num_accepted_tokens"})
_PERFORMANCE: Final = frozenset({"subset", "strategy", "output_tps_median"})


class Speculators(Tool):
    """Tables of speculators' evaluation."""

    name: ClassVar[str] = "speculators evaluation"
    engine: ClassVar[str] = "vllm"
    order: ClassVar[int] = 10

    def rows(self, content: Content) -> list[BenchmarkRow]:
        """One row a subset, or a subset and load."""
        return [
            _row(content, record)
            for record in content.records
            if set(record.values) >= _ACCEPTANCE or set(record.values) >= _PERFORMANCE
        ]


TOOL: Final = Speculators()


def _row(content: Content, record: Record) -> BenchmarkRow:
    values = record.values
    drafts = positive(values.get("num_drafts"))
    positions: list[float] = []
    while (share := number(values.get(f"acceptance_at_pos_{len(positions)}"))) is not None:
        positions.append(share)
    return BenchmarkRow(
        content.evidence(record),
        speculating=True if drafts is not None else None,
        depth=len(positions) or None,
        throughput=positive(values.get("output_tps_median")),
        acceptance_length=positive(values.get("acceptance_length")),
        accepted_tokens=number(values.get("num_accepted_tokens")),
        drafted_tokens=positive(values.get("num_draft_tokens")),
        verify_steps=drafts,
        acceptance_rate_at=tuple(positions),
        time_to_first_token=_median(values.get("ttft_median_ms"), 1e-3),
        inter_token_latency=_median(values.get("itl_median_ms"), 1e-3),
        request_latency=_median(values.get("latency_median_s"), 1.0),
        output_tokens=positive(values.get("total_output_tokens")),
        dataset=str(values.get("subset") or ""),
        label=str(values.get("strategy") or ""),
        remarks=("throughput and latencies are medians",) if "output_tps_median" in values else (),
    )


def _median(value: object, unit: float) -> Latency | None:
    figure = number(value)
    return None if figure is None else Latency(p50=figure * unit)
