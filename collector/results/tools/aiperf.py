"""AIPerf and GenAI-Perf: ``profile_export_aiperf.json`` and its table.

With an engine that reports drafts by request, AIPerf pools them: the token-weighted length counts the
target's own token, ``total_…`` are counts. ``inter_token_latency`` is a request's decode time over its tokens
after the first.

Source: AIPerf 0.13, ``exporters/metrics_json_exporter.py``, ``metrics_csv_exporter.py``,
``metrics/types/spec_decode_metrics.py``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from collector.domain.results import BenchmarkRow, Latency
from collector.results.content import Content, Record, at, number, positive, whole
from collector.results.tools.base import Tool

_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "sec": 1.0, "seconds": 1.0}
_NAME: Final = re.compile(r"(?P<name>.+?)(?: \((?P<unit>[^()]*)\))?")
_DEEPEST: Final = 6


class AiPerf(Tool):
    """Summary exports of AIPerf."""

    name: ClassVar[str] = "AIPerf"
    order: ClassVar[int] = 20

    def rows(self, content: Content) -> list[BenchmarkRow]:
        """One row an export."""
        if content.text.lstrip("\ufeff").startswith("Metric,"):
            return _of_table(content)
        return [
            _row(content, record, record.values)
            for record in content.records
            if at(record.values, "output_token_throughput", "avg") is not None
        ]


TOOL: Final = AiPerf()


def _row(content: Content, record: Record, metrics: Mapping[str, Any]) -> BenchmarkRow:
    steps = positive(at(metrics, "total_spec_decode_steps", "avg"))
    length = positive(at(metrics, "spec_decode_token_weighted_acceptance_length", "avg"))
    rate = number(at(metrics, "spec_decode_overall_draft_acceptance_rate", "avg"))
    return BenchmarkRow(
        content.evidence(record, "output_token_throughput"),
        speculating=True if steps is not None or length is not None else None,
        concurrency=_concurrency(metrics.get("input_config")),
        throughput=positive(at(metrics, "output_token_throughput", "avg")),
        acceptance_length=length,
        accepted_tokens=number(at(metrics, "total_accepted_draft_tokens", "avg")),
        drafted_tokens=positive(at(metrics, "total_draft_tokens", "avg")),
        verify_steps=steps,
        acceptance_rate=None if rate is None else rate / 100,
        time_to_first_token=_latency(metrics, "time_to_first_token"),
        inter_token_latency=_latency(metrics, "inter_token_latency"),
        request_latency=_latency(metrics, "request_latency"),
        output_tokens=positive(at(metrics, "total_output_tokens", "avg")),
        requests=number(at(metrics, "request_count", "avg")),
        seconds=positive(at(metrics, "benchmark_duration", "avg")),
    )


def _latency(metrics: Mapping[str, Any], name: str) -> Latency | None:
    metric = metrics.get(name)
    unit = _SECONDS.get(str(at(metrics, name, "unit") or "").lower())
    if unit is None or not isinstance(metric, Mapping):
        return None
    figures = [number(metric.get(key)) for key in ("avg", "p50", "p90", "p99")]
    return Latency(*(None if figure is None else figure * unit for figure in figures))


def _concurrency(config: Any, levels: int = _DEEPEST) -> float | None:
    """The concurrency asked for, wherever the release keeps it."""
    if not isinstance(config, (Mapping, list)) or not levels:
        return None
    if isinstance(config, Mapping) and (stated := positive(config.get("concurrency"))) is not None:
        return stated
    inner = config.values() if isinstance(config, Mapping) else config
    found = (_concurrency(part, levels - 1) for part in inner)
    return next((one for one in found if one is not None), None)


def _of_table(content: Content) -> list[BenchmarkRow]:
    """The table: a section with statistics, then one with single values, each with a header of its own."""
    metrics: dict[str, dict[str, Any]] = {}
    header: list[str] = []
    for line in content.lines:
        cells = [cell.strip() for cell in line.split(",")]
        if cells[0] == "Metric":
            header = ["avg" if cell == "Value" else cell for cell in cells[1:]]
            continue
        match = _NAME.fullmatch(cells[0])
        if match is None or len(cells) < 2:
            continue
        name = re.sub(r"[^a-z0-9]+", "_", match["name"].lower()).strip("_")
        metrics[_TABLE_NAMES.get(name, name)] = {
            "unit": match["unit"] or "",
            **dict(zip(header, cells[1:], strict=False)),
        }
    if (
        whole(at(metrics, "request_count", "avg")) is None
        or positive(at(metrics, "output_token_throughput", "avg")) is None
    ):
        return []
    return [_row(content, Record(1, {}, content.lines[0]), metrics)]


_TABLE_NAMES: Final = {
    "token_weighted_acceptance_length": "spec_decode_token_weighted_acceptance_length",
    "overall_draft_acceptance_rate": "spec_decode_overall_draft_acceptance_rate",
}
"""Keys of the JSON export whose table names read otherwise."""
