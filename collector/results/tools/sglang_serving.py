"""``sglang.bench_serving``: one JSON object a benchmark, appended to a file.

``accept_length`` is the server's mean since its start, with the target's own token; ``itl`` counts
tokens, not chunks.

Source: SGLang 0.4.6 to 0.5.23, ``bench_serving.py``, ``benchmark/serving.py``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Final

from collector.domain.results import BenchmarkRow
from collector.results.content import Content, Record, at, latency, number, positive, whole
from collector.results.tools.base import Tool

_MARKS: Final = frozenset({"output_throughput", "dataset_name", "mean_e2e_latency_ms", "accept_length"})
_SINCE_START: Final = "accept_length is the server's mean since its start, not of this benchmark alone"


class SglangServing(Tool):
    """Results of ``bench_serving``."""

    name: ClassVar[str] = "SGLang bench_serving"
    engine: ClassVar[str] = "sglang"
    order: ClassVar[int] = 10

    def rows(self, content: Content) -> list[BenchmarkRow]:
        """One row an object."""
        return [_row(content, record) for record in content.records if set(record.values) >= _MARKS]


TOOL: Final = SglangServing()


def _row(content: Content, record: Record) -> BenchmarkRow:
    values = record.values
    length = positive(values.get("accept_length"))
    settings = _settings(values.get("server_info"))
    tokens = positive(values.get("total_output_tokens"))
    own = str(values.get("backend", "")).startswith("sglang")
    return BenchmarkRow(
        content.evidence(record, "output_throughput"),
        speculating=True if length is not None else False if own else None,
        concurrency=positive(values.get("max_concurrency")) or positive(values.get("concurrency")),
        depth=settings.get("speculative_num_steps"),
        topk=settings.get("speculative_eagle_topk"),
        width=settings.get("speculative_num_draft_tokens"),
        throughput=positive(values.get("output_throughput")),
        acceptance_length=length,
        time_to_first_token=_latency(values, "ttft"),
        time_per_output_token=_latency(values, "tpot"),
        inter_token_latency=_latency(values, "itl"),
        request_latency=_latency(values, "e2e_latency"),
        output_tokens=tokens,
        requests=number(values.get("completed")),
        seconds=positive(values.get("duration")),
        dataset=str(values.get("dataset_name") or ""),
        label=str(values.get("tag") or ""),
        remarks=(_SINCE_START,) if length is not None else (),
    )


def _latency(values: Mapping[str, Any], name: str) -> Any:
    return latency(values, [f"{kind}_{name}_ms" for kind in ("mean", "median", "p90", "p99")], 1e-3)


def _settings(info: Any) -> dict[str, int | None]:
    """Drafting arguments of the server as it stated them itself."""
    keys = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
    return {key: whole(at(info, key)) for key in keys} if isinstance(info, Mapping) else {}
