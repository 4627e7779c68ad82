"""What SGLang's and SpecForge's question benchmarks print: one line, or one figure a line.

The length is generated tokens over verify steps; it is 1 where nothing was drafted.

Source: SGLang ``benchmark/mtbench/bench_sglang_eagle.py`` (``#questions: 80, Throughput: …``), SpecForge ``benchmarks/run_*.py``
(``Average Output throughput: …``); outputs in sgl-project/sglang#4247 and sgl-project/SpecForge#310.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from collector.domain.evidence import Evidence
from collector.domain.results import BenchmarkRow
from collector.results.content import Content, positive
from collector.results.tools.base import Tool

_FIGURE: Final = r"(\d+(?:\.\d+)?)"
_LINE: Final = re.compile(
    rf"#questions: (?P<questions>\d+), Throughput: (?P<throughput>{_FIGURE}) token/s, Acceptance length: (?P<length>{_FIGURE})\s*"
)
_THROUGHPUT: Final = re.compile(rf"\s*Average Output throughput: {_FIGURE} token/s\s*")
_LENGTH: Final = re.compile(rf"\s*Average Accept length: {_FIGURE}\s*")


class SglangQuestions(Tool):
    """Terminal output with one or more such results."""

    name: ClassVar[str] = "SGLang question benchmark"
    engine: ClassVar[str] = "sglang"
    order: ClassVar[int] = 40

    def rows(self, content: Content) -> list[BenchmarkRow]:
        """One row a result."""
        rows: list[BenchmarkRow] = []
        throughput: float | None = None
        for line_number, line in enumerate(content.lines, 1):
            evidence = Evidence(content.source, line_number, line)
            if match := _LINE.fullmatch(line):
                rows.append(
                    _row(evidence, positive(match["throughput"]), float(match["length"]), float(match["questions"]))
                )
            elif match := _THROUGHPUT.fullmatch(line):
                throughput = positive(match[1])
            elif match := _LENGTH.fullmatch(line):
                rows.append(_row(evidence, throughput, float(match[1]), None))
                throughput = None
        return rows


TOOL: Final = SglangQuestions()


def _row(evidence: Evidence, throughput: float | None, length: float, questions: float | None) -> BenchmarkRow:
    speculating = length > 1
    return BenchmarkRow(
        evidence,
        speculating=speculating,
        throughput=throughput,
        acceptance_length=length if speculating else None,
        requests=questions,
    )
