"""GuideLLM: a report with one entry a load.

It measures from outside, so it knows nothing of drafts. Inter-token latency is that of a request's decode
time over its tokens after the first.

Source: GuideLLM of 2026-08, ``benchmark/schemas`` (report version 2), and 0.2 to 0.3, whose entries have ``args``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from collector.domain.results import BenchmarkRow, Latency
from collector.results.content import Content, Record, at, number, positive
from collector.results.tools.base import Tool


class GuideLlm(Tool):
    """Reports of GuideLLM."""

    name: ClassVar[str] = "GuideLLM"
    order: ClassVar[int] = 10

    def rows(self, content: Content) -> list[BenchmarkRow]:
        """One row an entry."""
        return [
            _row(content, record, entry)
            for record in content.records
            for entry in _entries(record.values)
            if at(entry, "metrics", "output_tokens_per_second") is not None
        ]


TOOL: Final = GuideLlm()


def _entries(values: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    listed = values.get("benchmarks")
    return [entry for entry in listed if isinstance(entry, Mapping)] if isinstance(listed, list) else []


def _row(content: Content, record: Record, entry: Mapping[str, Any]) -> BenchmarkRow:
    strategy = at(entry, "config", "strategy") or at(entry, "args", "strategy")
    kind = at(strategy, "type_") or ""
    stated = at(strategy, "streams") or at(strategy, "max_concurrency") if kind == "concurrent" else None
    return BenchmarkRow(
        content.evidence(Record(record.line, {}, record.text), "output_tokens_per_second"),
        concurrency=positive(stated) or positive(_of(entry, "request_concurrency", "mean")),
        throughput=positive(_of(entry, "output_tokens_per_second", "mean")),
        time_to_first_token=_latency(entry, "time_to_first_token_ms", 1e-3),
        time_per_output_token=_latency(entry, "time_per_output_token_ms", 1e-3),
        inter_token_latency=_latency(entry, "inter_token_latency_ms", 1e-3),
        request_latency=_latency(entry, "request_latency", 1.0),
        output_tokens=positive(_of(entry, "output_token_count", "total_sum")),
        requests=number(at(entry, "metrics", "request_totals", "successful")),
        seconds=positive(entry.get("duration")),
        label=str(kind),
    )


def _of(entry: Mapping[str, Any], metric: str, *path: str) -> Any:
    """A statistic over the successful requests."""
    return at(entry, "metrics", metric, "successful", *path)


def _latency(entry: Mapping[str, Any], metric: str, unit: float) -> Latency | None:
    raw = [_of(entry, metric, "mean"), *(_of(entry, metric, "percentiles", key) for key in ("p50", "p90", "p99"))]
    figures = [None if (figure := number(value)) is None else figure * unit for value in raw]
    return Latency(*figures) if any(figure is not None for figure in figures) else None
