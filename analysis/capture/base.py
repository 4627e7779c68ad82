"""What a reading of a draft's layer ids is, whatever the engine.

A layer is named by its output: ``-1`` is the embedding, ``i`` the output of layer i. Engines work
with the index of the layer that a state *enters*, which is one more.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from collector.domain.versions import ReleaseRange


@dataclass(frozen=True, slots=True)
class Capture:
    """One way in which a release reads the draft's layer ids.

    ``outputs`` are the layers whose output is captured, as far as the release can; ``enters`` the
    engine's own indices. ``impossible`` says why a server cannot run this way, "" if it can.
    """

    releases: ReleaseRange
    how: str
    enters: tuple[int, ...]
    outputs: tuple[int, ...]
    impossible: str = ""


def default_enters(layers: int) -> tuple[int, ...]:
    """The indices engines take where the draft names none: ``[2, n//2, n-3]``."""
    return 2, layers // 2, layers - 3


def whole_numbers(value: Any) -> list[int] | None:
    """A list of whole numbers, ``None`` for anything else."""
    whole = isinstance(value, list) and all(isinstance(i, int) and not isinstance(i, bool) for i in value)
    return list(value) if whole else None


def reading(
    releases: ReleaseRange, how: str, enters: tuple[int, ...], wanted: int, layers: int, last: int | None = None
) -> Capture:
    """A reading, and whether it can run: ``last`` is the highest index the engine can capture (default: layers - 1)."""
    reachable = tuple(index for index in enters if 0 <= index <= (layers - 1 if last is None else last))
    lost = wanted - len(reachable)
    impossible = f"{len(reachable)} of {wanted} states would be captured, so the server would not start" if lost else ""
    return Capture(releases, how, enters, tuple(index - 1 for index in reachable), impossible)
