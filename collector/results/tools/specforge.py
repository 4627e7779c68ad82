"""SpecForge: ``bench_eagle3.py`` with a list of settings a benchmark, and the runner for a running server.

``accept_length`` of the former is generated tokens over verify steps, and 1 where nothing was drafted. The
runner's ``average_acceptance_length`` is a mean over requests, so tokens over verify steps are taken instead.

Source: SpecForge main of 2026-08, ``benchmarks/bench_eagle3.py``, ``specforge/benchmarks/sglang.py``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, Final

from collector.domain.results import BenchmarkRow
from collector.results.content import Content, Record, number, positive, whole
from collector.results.tools.base import Tool

_RUNNER: Final = frozenset({"throughput_tokens_per_second", "output_tokens", "latency_seconds", "dataset"})


class SpecForge(Tool):
    """Results of SpecForge's benchmarks."""

    name: ClassVar[str] = "SpecForge benchmark"
    engine: ClassVar[str] = "sglang"
    order: ClassVar[int] = 20

    def rows(self, content: Content) -> list[BenchmarkRow]:
        """One row a setting and benchmark."""
        rows: list[BenchmarkRow] = []
        for record in content.records:
            if set(record.values) >= _RUNNER:
                rows.append(_runner(content, record))
            else:
                rows += _benchmarks(content, record)
        return rows


TOOL: Final = SpecForge()


def _benchmarks(content: Content, record: Record) -> Iterator[BenchmarkRow]:
    for name, entries in record.values.items():
        for entry in entries if isinstance(entries, list) else []:
            if isinstance(entry, Mapping) and {"batch_size", "steps", "metrics"} <= set(entry):
                yield from _entry(content, record, name, entry)


def _entry(content: Content, record: Record, name: str, entry: Mapping[str, Any]) -> Iterator[BenchmarkRow]:
    steps = whole(entry.get("steps"))
    measured = entry["metrics"] if isinstance(entry["metrics"], list) else []
    for metrics in measured:
        if not isinstance(metrics, Mapping):
            continue
        length = positive(metrics.get("accept_length"))
        # A server that was running already states no steps; a length of exactly 1 then means that nothing was drafted.
        speculating = steps > 0 if steps is not None else None if length is None else length > 1
        yield BenchmarkRow(
            content.evidence(Record(record.line, {name: metrics}, record.text), name),
            speculating=speculating,
            concurrency=positive(entry.get("batch_size")),
            depth=steps,
            topk=whole(entry.get("topk")),
            width=whole(entry.get("num_draft_tokens")),
            throughput=positive(metrics.get("output_throughput")),
            acceptance_length=length if speculating else None,
            requests=number(metrics.get("num_questions")),
            seconds=positive(metrics.get("latency")),
            dataset=name,
        )


def _runner(content: Content, record: Record) -> BenchmarkRow:
    values = record.values
    tokens, steps = positive(values.get("output_tokens")), positive(values.get("spec_verify_count"))
    length = tokens / steps if tokens and steps else positive(values.get("average_acceptance_length"))
    return BenchmarkRow(
        content.evidence(record, "throughput_tokens_per_second"),
        speculating=length is not None,
        throughput=positive(values.get("throughput_tokens_per_second")),
        acceptance_length=length,
        verify_steps=steps,
        output_tokens=tokens,
        requests=number(values.get("samples")),
        seconds=positive(values.get("latency_seconds")),
        dataset=str(values.get("dataset") or ""),
    )
