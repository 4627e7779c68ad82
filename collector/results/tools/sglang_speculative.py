"""``bench_speculative.py`` of SGLang: one JSON object a setting.

``speed`` is that of one request: acceptance length over the time of a step. Zero steps are plain
decoding.

Source: SGLang ``scripts/playground/bench_speculative.py``.
"""

from __future__ import annotations

from typing import ClassVar, Final

from collector.domain.results import BenchmarkRow
from collector.results.content import Content, Record, positive, whole
from collector.results.tools.base import Tool

_MARKS: Final = frozenset({"batch_size", "steps", "acc_length", "step_time", "speed"})


class SglangSpeculative(Tool):
    """Results of ``bench_speculative.py``."""

    name: ClassVar[str] = "SGLang bench_speculative"
    engine: ClassVar[str] = "sglang"
    order: ClassVar[int] = 10

    def rows(self, content: Content) -> list[BenchmarkRow]:
        """One row a setting."""
        return [_row(content, record) for record in content.records if set(record.values) >= _MARKS]


TOOL: Final = SglangSpeculative()


def _row(content: Content, record: Record) -> BenchmarkRow:
    values = record.values
    steps = whole(values.get("steps"))
    batch, speed = positive(values.get("batch_size")), positive(values.get("speed"))
    speculating = None if steps is None else steps > 0
    return BenchmarkRow(
        content.evidence(record),
        speculating=speculating,
        concurrency=batch,
        depth=steps,
        topk=whole(values.get("topk")),
        width=whole(values.get("num_draft_tokens")),
        throughput=None if batch is None or speed is None else batch * speed,
        acceptance_length=positive(values.get("acc_length")) if speculating else None,
        remarks=("the throughput is worked out from the step time, without prefill",),
    )
