"""Tensor ranks that repeat one another are one unit: the lowest rank's lines are kept.

Up to 0.5.8 a server that keeps metrics on all schedulers also prints the lines of each tensor
rank. Their batches are the same and their clocks are not.
"""

from __future__ import annotations

from typing import Final, Generic, TypeVar

from collector.domain.windows import PrefillWindow, Window
from collector.formats.sglang.prefix import Ranks

Sampled = TypeVar("Sampled", Window, PrefillWindow)

SAME_INSTANT_SECONDS: Final = 2.0


class Repeats(Generic[Sampled]):
    """Passes samples on, without those that a lower tensor rank of the same group printed as well.

    A sample of a rank above 0 is held back until its rank prints again, so that a lower rank's
    line of the same instant may still come.
    """

    def __init__(self) -> None:
        self._held: dict[tuple[str, int], tuple[Sampled, object]] = {}
        self._last: dict[str, list[tuple[int, float, object]]] = {}

    def add(self, sample: Sampled, ranks: Ranks, content: object) -> list[Sampled]:
        """The samples that are certain now."""
        tensor = ranks.tensor
        if tensor is None:
            return [sample]
        group = ranks.group
        recent = [entry for entry in self._last.get(group, ()) if sample.at - entry[1] <= SAME_INSTANT_SECONDS]
        repeated = any(
            rank < tensor and seen == content and abs(at - sample.at) <= SAME_INSTANT_SECONDS
            for rank, at, seen in recent
        )
        recent.append((tensor, sample.at, content))
        self._last[group] = recent[-64:]
        released: list[Sampled] = []
        for key, (held, seen) in list(self._held.items()):
            if key[0] != group:
                continue
            if key[1] > tensor and seen == content and abs(held.at - sample.at) <= SAME_INSTANT_SECONDS:
                del self._held[key]
            elif key[1] == tensor:
                released.append(held)
                del self._held[key]
        if repeated:
            return released
        if tensor == 0:
            released.append(sample)
            return released
        self._held[group, tensor] = (sample, content)
        return released

    def finish(self) -> list[Sampled]:
        """What is still held back."""
        held = [sample for sample, _ in self._held.values()]
        self._held.clear()
        return sorted(held)
