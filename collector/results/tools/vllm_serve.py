"""``vllm bench serve`` and ``vllm bench sweep``: one JSON object a benchmark, a list of them, or a table.

``spec_decode_acceptance_rate`` is accepted over drafted tokens in percent, the length counts the target's
own token, positions are shares of drafts, and all are of this benchmark alone. ``itl`` counts chunks, of
which one speculative step makes one; ``tpot`` counts tokens.

Source: vLLM 0.9.2 to 0.32.0, ``benchmarks/serve.py`` (drafts since 0.15, ``rtfx`` since 0.17), ``benchmarks/sweep/serve.py``.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Final

from collector.domain.results import BenchmarkRow
from collector.results.content import Content, Record, latency, number, positive, shares, whole
from collector.results.tools.base import Tool

_MARKS: Final = frozenset({"output_throughput", "model_id", "tokenizer_id"})
_DEPTHS: Final = ("speculative_config.num_speculative_tokens", "speculative-config.num_speculative_tokens",
                  "num_speculative_tokens")  # fmt: skip
_CONFIGS: Final = ("speculative_config", "speculative-config")
_PERCENTILES: Final = ("mean", "median", "p90", "p99")


class VllmServe(Tool):
    """Results of ``vllm bench serve``, alone or in a sweep."""

    name: ClassVar[str] = "vLLM bench serve"
    engine: ClassVar[str] = "vllm"
    order: ClassVar[int] = 10

    def rows(self, content: Content) -> list[BenchmarkRow]:
        """One row a benchmark."""
        return [_row(content, record) for record in content.records if set(record.values) >= _MARKS]


TOOL: Final = VllmServe()


def _row(content: Content, record: Record) -> BenchmarkRow:
    values = record.values
    drafts = positive(values.get("spec_decode_num_drafts"))
    positions = shares(values.get("spec_decode_per_position_acceptance_rates"))
    stated, depth = _asked(values)
    speculating = True if drafts is not None else stated
    if speculating is None and "rtfx" in values and "spec_decode_num_drafts" not in values:
        speculating = False  # since 0.17 drafts are reported wherever there are any
    percent = number(values.get("spec_decode_acceptance_rate"))
    return BenchmarkRow(
        content.evidence(record, "output_throughput"),
        speculating=speculating,
        concurrency=positive(values.get("max_concurrency")),
        depth=depth or (len(positions) or None),
        width=None if not (depth or positions) else (depth or len(positions)) + 1,
        throughput=positive(values.get("output_throughput")),
        acceptance_length=positive(values.get("spec_decode_acceptance_length")),
        accepted_tokens=number(values.get("spec_decode_accepted_tokens")) if drafts is not None else None,
        drafted_tokens=number(values.get("spec_decode_draft_tokens")) if drafts is not None else None,
        verify_steps=drafts,
        acceptance_rate_at=positions if drafts is not None else (),
        acceptance_rate=None if percent is None or drafts is None else percent / 100,
        time_to_first_token=_latency(values, "ttft"),
        time_per_output_token=_latency(values, "tpot"),
        inter_token_latency=_latency(values, "itl"),
        request_latency=_latency(values, "e2el"),
        output_tokens=positive(values.get("total_output_tokens")),
        requests=number(values.get("completed")),
        seconds=positive(values.get("duration")),
        dataset=str(values.get("dataset_name") or ""),
        label=str(values.get("label") or values.get("_benchmark_name") or ""),
        remarks=("inter-token latency counts chunks, and a speculative step makes one",) if speculating else (),
    )


def _latency(values: Mapping[str, Any], name: str) -> Any:
    return latency(values, [f"{kind}_{name}_ms" for kind in _PERCENTILES], 1e-3)


def _asked(values: Mapping[str, Any]) -> tuple[bool | None, int | None]:
    """Whether and how deep a sweep asked the server to draft; ``None`` where it says nothing."""
    for key in _DEPTHS:
        depth = whole(values.get(key))
        if depth is not None:
            return depth > 0, depth or None
    for key in _CONFIGS:
        if key in values:
            config = values[key]
            if isinstance(config, str):
                try:
                    config = json.loads(config)
                except (ValueError, RecursionError):
                    return True, None
            if not isinstance(config, Mapping):
                return False, None
            return True, whole(config.get("num_speculative_tokens"))
    return None, None
