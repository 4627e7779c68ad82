"""When to ask a live source again."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Final

LONGEST_BACK_OFF: Final = 300.0
"""Seconds after which a source that fails is tried again at the latest."""
TOGETHER_SECONDS: Final = 0.5
"""Sources that are spread over an interval begin at multiples of this: done in one go, the same work takes 0.6 of the processor time."""


class Pace:
    """Regular instants on a clock that never jumps, and growing pauses while a source fails.

    A source that is late does not shift the instants after it; instants that were missed are left out.
    """

    def __init__(
        self,
        every: float,
        *,
        share: float = 0.0,
        monotonic: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        """Begin now, or after a ``share`` of the interval; ``every`` in seconds."""
        self._every = every
        self._monotonic = monotonic
        self._sleep = sleep
        self._next = monotonic()
        if share:
            self._next = math.ceil((self._next + share * every) / TOGETHER_SECONDS) * TOGETHER_SECONDS
        self._failures = 0

    def first_in(self) -> float:
        """Seconds until the first try."""
        return max(0.0, self._next - self._monotonic())

    def next_in(self, *, failed: bool) -> float:
        """Seconds until the next try, now that one has ended."""
        self._failures = self._failures + 1 if failed else 0
        now = self._monotonic()
        self._next += self._every
        if self._next <= now:
            self._next += self._every * ((now - self._next) // self._every + 1)
        if self._failures > 1:
            pause = min(self._every * 2 ** min(self._failures - 1, 20), max(LONGEST_BACK_OFF, self._every))
            while self._next < now + pause:
                self._next += self._every
        return self._next - now

    def wait(self, seconds: float) -> None:
        """Sleep."""
        self._sleep(seconds)
