"""The iterations that TensorRT-LLM gives out once: what was drafted and accepted in each."""

from __future__ import annotations

from typing import Final

from collector.domain.errors import MalformedInput
from collector.domain.windows import Origin, Window
from collector.formats.tensorrt_llm.iterations import Gathered, Place, read_objects
from collector.metrics.base import Taken
from collector.metrics.exposition import Sample
from collector.metrics.tensorrt_llm.names import ITERATION

_SPACE: Final = 1_000
"""Positions between two scrapes a millisecond apart."""


def read_iterations(body: bytes, at: float) -> Taken:
    """Windows of all iterations, rank by rank; none where the queue was empty.

    Raises:
        MalformedInput: it is no list of iterations.
    """
    iterations = read_objects(body)
    if iterations is None or not body.lstrip().startswith(b"["):
        raise MalformedInput("this is no list of iterations", why=f"it begins {body[:60]!r}")
    ranks: dict[str, Gathered] = {}
    windows: list[Window] = []
    for number, iteration in enumerate(iterations):
        gathered = ranks.setdefault(iteration.unit, Gathered(iteration.unit))
        windows += gathered.add(Place(round(at * 1000) * _SPACE + number, 0), at, iteration)
    for gathered in ranks.values():
        windows += gathered.finish()
    numbers = sorted({iteration.number for iteration in iterations})
    lost = numbers[-1] - numbers[0] + 1 - len(numbers) if numbers else 0
    return Taken(
        tuple(window._replace(origin=Origin.COUNTERS) for window in windows),
        (Sample(ITERATION, {}, float(numbers[-1])),) if numbers else (),
        (f"{lost} iterations are missing: another reader took them, or the queue was full",) if lost else (),
    )
