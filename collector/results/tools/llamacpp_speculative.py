"""What ``llama-speculative`` and ``llama-speculative-simple`` print when they have answered.

``n_predict`` are all generated tokens and ``n_accept`` those that were drafted, so the rest is one a
verification; ``accept`` is accepted over drafted.

Source: llama.cpp, ``examples/speculative-simple/speculative-simple.cpp``; outputs in ggml-org/llama.cpp#18039 and #5877.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from collector.domain.evidence import Evidence
from collector.domain.results import BenchmarkRow
from collector.results.content import Content, positive
from collector.results.tools.base import Tool

_LINE: Final = re.compile(r"(?P<name>n_draft|n_predict|n_drafted|n_accept)\s+= (?P<value>\d+)\s*")
_DECODED: Final = re.compile(r"decoded\s+\d+ tokens in\s+[\d.]+ seconds, speed:\s+(?P<speed>[\d.]+) t/s\s*")
_ALL: Final = frozenset({"n_draft", "n_predict", "n_drafted", "n_accept"})


class LlamacppSpeculative(Tool):
    """Terminal output with one or more such blocks."""

    name: ClassVar[str] = "llama-speculative"
    engine: ClassVar[str] = "llamacpp"
    order: ClassVar[int] = 40

    def rows(self, content: Content) -> list[BenchmarkRow]:
        """One row a run."""
        rows: list[BenchmarkRow] = []
        counts: dict[str, int] = {}
        speed: float | None = None
        for line_number, line in enumerate(content.lines, 1):
            if match := _DECODED.fullmatch(line):
                counts, speed = {}, positive(match["speed"])
            elif match := _LINE.fullmatch(line):
                counts[match["name"]] = int(match["value"])
                if set(counts) >= _ALL:
                    rows.append(_row(Evidence(content.source, line_number, line), counts, speed))
                    counts, speed = {}, None
        return rows


TOOL: Final = LlamacppSpeculative()


def _row(evidence: Evidence, counts: dict[str, int], speed: float | None) -> BenchmarkRow:
    steps = counts["n_predict"] - counts["n_accept"]
    return BenchmarkRow(
        evidence,
        speculating=True,
        concurrency=1.0,
        depth=counts["n_draft"] or None,
        throughput=speed,
        accepted_tokens=counts["n_accept"],
        drafted_tokens=counts["n_drafted"],
        verify_steps=steps if steps > 0 else None,
        acceptance_length=counts["n_predict"] / steps if steps > 0 else None,
        output_tokens=positive(counts["n_predict"]),
        remarks=("every token that was not drafted is taken for one verification",),
    )
