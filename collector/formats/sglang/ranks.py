"""Tensor ranks that repeat one another are one unit: the lowest rank's lines are kept.

Up to 0.5.8 a server that keeps metrics on all schedulers also prints the lines of each tensor
rank. Their batches are the same and their clocks are not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import Final, Generic, TypeVar

from collector.domain.windows import PrefillWindow, Window
from collector.formats.sglang.prefix import Ranks

Sampled = TypeVar("Sampled", Window, PrefillWindow)

SAME_INSTANT_SECONDS: Final = 2.0
RECENT_KEPT: Final = 16
"""Samples of a group that a repeat is looked for in."""


class Repeats(Generic[Sampled]):
    """Passes samples on, without those that a lower tensor rank of the same group printed as well.

    A sample of a rank above 0 is held back until its rank prints again, so that a lower rank's
    line of the same instant may still come.
    """

    def __init__(self) -> None:
        self._held: dict[tuple[str, int], tuple[Sampled, object]] = {}
        self._recent: dict[str, deque[tuple[int, float, object]]] = {}
        self._waiting: dict[str, list[Callable[[], Iterable[tuple[float, object]]]]] = {}

    @property
    def holding(self) -> bool:
        """Whether a sample is held back."""
        return bool(self._held)

    def add(self, sample: Sampled, ranks: Ranks, content: object) -> list[Sampled]:
        """The samples that are certain now."""
        tensor, group = ranks.tensor, ranks.group
        if tensor is None:
            return [sample]
        recent = self._recent_of(group)
        repeated = tensor > 0 and any(
            rank < tensor and seen == content and sample.at - at <= SAME_INSTANT_SECONDS for rank, at, seen in recent
        )
        recent.append((tensor, sample.at, content))
        certain = self._release(sample, group, tensor, content) if self._held else []
        if repeated:
            return certain
        if tensor == 0:
            certain.append(sample)
        else:
            self._held[group, tensor] = (sample, content)
        return certain

    def remember(self, ranks: Ranks, count: int, latest: Callable[[], Iterable[tuple[float, object]]]) -> None:
        """Take note of samples of the lowest rank that were passed on without :meth:`add`.

        ``latest`` gives instants and contents of the last ``count`` of them. It is called only if a
        higher rank prints later on.
        """
        waiting = self._waiting.setdefault(ranks.group, [])
        if count >= RECENT_KEPT:
            waiting.clear()
        waiting.append(latest)
        if len(waiting) > RECENT_KEPT:
            del waiting[0]

    def _recent_of(self, group: str) -> deque[tuple[int, float, object]]:
        recent = self._recent.get(group)
        if recent is None:
            recent = self._recent[group] = deque(maxlen=RECENT_KEPT)
        for latest in self._waiting.pop(group, ()):
            recent.extend((0, at, content) for at, content in latest())
        return recent

    def _release(self, sample: Sampled, group: str, tensor: int, content: object) -> list[Sampled]:
        """Decide about held samples: this one's rank prints again, or a lower rank repeats one."""
        certain: list[Sampled] = []
        own = self._held.pop((group, tensor), None)
        if own is not None:
            certain.append(own[0])
        for key, (held, seen) in list(self._held.items()):
            if key[0] == group and key[1] > tensor and seen == content and sample.at - held.at <= SAME_INSTANT_SECONDS:
                del self._held[key]
        return certain

    def finish(self) -> list[Sampled]:
        """What is still held back."""
        held = [sample for sample, _ in self._held.values()]
        self._held.clear()
        return sorted(held)
