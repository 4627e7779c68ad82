"""The report that ``bench_serving`` of SGLang and ``vllm bench serve`` print to the terminal.

Source: SGLang 0.4.6 to 0.5.23 and vLLM 0.9.2 to 0.32.0, the block under ``Serving Benchmark Result``.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from collector.domain.evidence import Evidence
from collector.domain.results import BenchmarkRow, Latency
from collector.results.content import Content, number, positive
from collector.results.tools.base import Tool

_HEAD: Final = re.compile(r"=+ Serving Benchmark Result =+")
_LINE: Final = re.compile(r"\s*(?P<name>[A-Za-z][^:]{2,60}):\s+(?P<value>-?[\d.]+(?:e[-+]?\d+)?)\s*$")
_POSITION: Final = re.compile(r"\s*Position (?P<index>\d+):\s+(?P<percent>\d{1,3}(?:\.\d+)?)\s*$")


class Printed(Tool):
    """Terminal output with one or more such blocks."""

    name: ClassVar[str] = "bench serve (printed)"
    order: ClassVar[int] = 40

    def rows(self, content: Content) -> list[BenchmarkRow]:
        """One row a block."""
        rows: list[BenchmarkRow] = []
        figures: dict[str, float] = {}
        positions: list[float] = []
        begun = 0
        for number_of_line, line in enumerate([*content.lines, "===="], 1):
            if _HEAD.search(line):
                figures, positions, begun = {}, [], number_of_line
            elif begun and line.startswith("===="):
                if "Output token throughput (tok/s)" in figures:
                    rows.append(_row(Evidence(content.source, begun, content.lines[begun - 1]), figures, positions))
                begun = 0
            elif begun and (match := _POSITION.match(line)):
                positions.append(float(match["percent"]) / 100)
            elif begun and (match := _LINE.match(line)) and (figure := number(match["value"])) is not None:
                figures[match["name"].strip()] = figure
        return rows


TOOL: Final = Printed()


def _row(evidence: Evidence, figures: dict[str, float], positions: list[float]) -> BenchmarkRow:
    length = positive(figures.get("Accept length")) or positive(figures.get("Acceptance length"))
    percent = figures.get("Acceptance rate (%)")
    return BenchmarkRow(
        evidence,
        speculating=True if length is not None else None,
        concurrency=positive(figures.get("Maximum request concurrency"))
        or positive(figures.get("Max request concurrency"))
        or positive(figures.get("Concurrency")),
        depth=len(positions) or None,
        throughput=positive(figures["Output token throughput (tok/s)"]),
        acceptance_length=length,
        accepted_tokens=figures.get("Accepted tokens"),
        drafted_tokens=figures.get("Draft tokens"),
        verify_steps=positive(figures.get("Drafts")),
        acceptance_rate_at=tuple(positions),
        acceptance_rate=None if percent is None else percent / 100,
        time_to_first_token=_latency(figures, "TTFT"),
        time_per_output_token=_latency(figures, "TPOT"),
        inter_token_latency=_latency(figures, "ITL"),
        request_latency=_latency(figures, "E2E Latency") or _latency(figures, "E2EL"),
        output_tokens=positive(figures.get("Total generated tokens")),
        requests=figures.get("Successful requests"),
        seconds=positive(figures.get("Benchmark duration (s)")),
    )


def _latency(figures: dict[str, float], name: str) -> Latency | None:
    raw = [figures.get(f"{kind} {name} (ms)") for kind in ("Mean", "Median", "P90", "P99")]
    return Latency(*(None if figure is None else figure / 1e3 for figure in raw)) if any(raw) else None
