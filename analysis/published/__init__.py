"""What others have published: acceptance lengths by method, depth and kind of task, each with its source.

``acceptance.csv`` holds one row a published figure (model cards, papers, pull requests, issues). Reports of
faults are among them, so ranges leave out the outermost tenth at each end. A range is context: it says where a
run stands, never that it is fine.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final

METHODS: Final = {
    "eagle3": ("EAGLE-3", "EAGLE-3.1", "EAGLE-3 variant", "EAGLE-3 (MLA)", "P-EAGLE"),
    "eagle": ("EAGLE", "EAGLE-1", "EAGLE-2"),
    "mtp": ("MTP", "MTP (one module reused)"),
    "dflash": ("DFlash",),
}
"""Our methods and the names under which they are published."""
TASKS: Final = {
    "chat": ("mtbench", "mt-bench", "writing", "question", "qa", "various topics", "generic prompts", "specbench"),
    "maths": ("gsm8k", "math500", "math reasoning", "math_reasoning", "aime"),
    "code": ("humaneval", "livecodebench", "swe-bench", "terminal-bench", "instructcoder", "mbpp"),
    "text": ("cnn", "summarization", "rag", "translation", "longbench"),
}
"""Kinds of task, and how the names of their data sets begin."""
NEAR: Final = 2
"""Depths that lie further apart are not compared. Tokens."""
FEW: Final = 3
"""Fewer rows make no range; the kind of task is then left open, and after it the depth."""
_OUTER: Final = 0.1


@dataclass(frozen=True, slots=True)
class Row:
    """One published figure."""

    method: str
    task: str
    depth: int | None
    chain: bool
    length: float
    target: str
    dataset: str
    source: str


@dataclass(frozen=True, slots=True)
class PublishedRange:
    """The range of published acceptance lengths nearest to a run.

    ``low`` and ``high`` enclose the middle eight tenths of ``rows`` figures; ``task`` is "" where all
    kinds of task are in it; ``sources`` are where most of them were published.
    """

    method: str
    depth: int
    task: str
    low: float
    high: float
    rows: int
    sources: tuple[str, ...]

    @property
    def words(self) -> str:
        """``published for eagle3 at depth 3: 2.30 to 3.00 (87 rows)``."""
        task = f", {self.task}" if self.task else ""
        return f"published for {self.method} at depth {self.depth}{task}: {self.low:.2f} to {self.high:.2f} ({self.rows} rows)"

    def document(self) -> dict[str, Any]:
        """The form in the diagnosis document."""
        return {
            "method": self.method,
            "depth": self.depth,
            "task": self.task,
            "low": self.low,
            "high": self.high,
            "rows": self.rows,
            "sources": list(self.sources),
            "text": self.words,
        }


@cache
def published_rows() -> tuple[Row, ...]:
    """Every figure that states a length, as it stands in the table."""
    text = files("analysis.published").joinpath("acceptance.csv").read_text("utf-8")
    return tuple(
        Row(
            method=item["method"],
            task=task_kind(item["dataset"]),
            depth=int(item["k_steps"]) if item["k_steps"].isdecimal() else None,
            chain=item["topk"] in ("", "1"),
            length=float(item["tau_incl_bonus"]),
            target=item["target"],
            dataset=item["dataset"],
            source=item["source"],
        )
        for item in csv.DictReader(text.splitlines())
        if item["tau_incl_bonus"]
    )


def task_kind(name: str) -> str:
    """The kind of task that a data set's name stands for; "" where it is not known."""
    lower = name.strip().lower()
    return next((kind for kind, begins in TASKS.items() if lower.startswith(begins)), "")


def nearest(method: str | None, depth: int | None, task: str = "", *, chain: bool = True) -> PublishedRange | None:
    """The published range for a method at a depth, or at the nearest depth that has one; ``None`` where there is none.

    ``task`` is a kind of :data:`TASKS`, or "" for all of them.
    """
    names = METHODS.get(method or "", ())
    if not names or not depth:
        return None
    rows = [row for row in published_rows() if row.method in names and row.chain == chain and row.depth is not None]
    for wanted in dict.fromkeys((task, "")):
        of_task = [row for row in rows if wanted in ("", row.task)]
        for away in range(NEAR + 1):
            for other in dict.fromkeys((depth - away, depth + away)):
                found = [row for row in of_task if row.depth == other]
                if len(found) >= FEW:
                    return _range(method or "", other, wanted, found)
    return None


def _range(method: str, depth: int, task: str, rows: Sequence[Row]) -> PublishedRange:
    lengths = sorted(row.length for row in rows)
    counts = {row.source: sum(other.source == row.source for other in rows) for row in rows}
    sources = sorted(counts, key=lambda source: (-counts[source], source))[:3]
    return PublishedRange(
        method, depth, task, _quantile(lengths, _OUTER), _quantile(lengths, 1 - _OUTER), len(rows), tuple(sources)
    )


def _quantile(ordered: Sequence[float], share: float) -> float:
    """Between the two nearest figures, linearly."""
    at = share * (len(ordered) - 1)
    below = math.floor(at)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (at - below) * (ordered[above] - ordered[below])
