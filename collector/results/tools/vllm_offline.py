"""What ``spec_decode.py`` and ``eagle.py`` of vLLM's offline examples print: counts of all prompts, and shares by position.

The length counts the target's own token: one more than accepted tokens over drafts.

Source: vLLM 0.8.5 to 0.32.0, ``examples/offline_inference``; the output in vllm-project/vllm#26191.
"""

from __future__ import annotations

import re
from typing import ClassVar, Final

from collector.domain.evidence import Evidence
from collector.domain.results import BenchmarkRow
from collector.results.content import Content, number, positive
from collector.results.tools.base import Tool

_LINE: Final = re.compile(
    r"\s*(?P<name>num_drafts|num_draft_tokens|num_accepted_tokens|total_num_output_tokens): (?P<value>\d+)\s*"
)
_POSITION: Final = re.compile(r"\s*acceptance at token (?P<index>\d+): (?P<share>\d(?:\.\d+)?)\s*")
_COUNTS: Final = frozenset({"num_drafts", "num_draft_tokens", "num_accepted_tokens"})


class VllmOffline(Tool):
    """Terminal output with one or more such blocks."""

    name: ClassVar[str] = "vLLM offline example"
    engine: ClassVar[str] = "vllm"
    order: ClassVar[int] = 40

    def rows(self, content: Content) -> list[BenchmarkRow]:
        """One row a block."""
        blocks: list[tuple[int, dict[str, float], list[float]]] = []
        for line_number, line in enumerate(content.lines, 1):
            if match := _LINE.fullmatch(line):
                if not blocks or match["name"] in blocks[-1][1]:
                    blocks.append((line_number, {}, []))
                blocks[-1][1][match["name"]] = number(match["value"]) or 0.0
            elif blocks and (match := _POSITION.fullmatch(line)):
                blocks[-1][2].append(float(match["share"]))
        return [
            BenchmarkRow(
                Evidence(content.source, begun, content.lines[begun - 1]),
                speculating=True,
                depth=len(positions) or None,
                accepted_tokens=counts["num_accepted_tokens"],
                drafted_tokens=counts["num_draft_tokens"],
                verify_steps=positive(counts["num_drafts"]),
                acceptance_length=1 + counts["num_accepted_tokens"] / counts["num_drafts"]
                if counts["num_drafts"]
                else None,
                acceptance_rate_at=tuple(positions),
                output_tokens=positive(counts.get("total_num_output_tokens")),
            )
            for begun, counts, positions in blocks
            if set(counts) >= _COUNTS
        ]


TOOL: Final = VllmOffline()
