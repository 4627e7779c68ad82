"""Windows between two scrapes of engines that count their verify steps themselves."""

from __future__ import annotations

from dataclasses import replace

from collector.domain.windows import Origin, PrefillWindow, Window
from collector.metrics.base import EngineState, Interval, UnitState

ALONE = ""
"""The name of the only unit."""
FIRST = "engine 0"
"""What the only unit is called once others stand beside it."""


def counted_interval(before: EngineState | None, after: EngineState) -> Interval:
    """Windows and prefills of every unit; without a scrape before, since the start of the process."""
    found = Interval(after)
    position = round(after.at * 1000)
    for name, unit in after.units.items():
        earlier = before.units.get(name) if before is not None else None
        if earlier is None and before is not None and name == FIRST:
            earlier = before.units.get(ALONE)
        seconds = after.at - before.at if before is not None and earlier is not None and after.at > before.at else None
        change = _Change(earlier or UnitState(), unit)
        found.windows.append(change.window(position, after.at, name, seconds))
        computed, cached = change.delta("computed_tokens"), change.delta("cached_tokens")
        if computed is not None and cached is not None and computed + cached:
            found.prefills.append(PrefillWindow(position, 0, after.at, name, computed, cached))
    return found


def until_counted(before: EngineState | None, after: EngineState, *, exact: bool) -> Interval:
    """The same for an engine that counts a request's tokens when it ends.

    While requests run and none has ended, a window would show work without tokens, and the next one
    tokens of work before it: so there is no window until counts move, and the next begins where the
    last one ended. ``exact`` is ``False`` while what moved is too little to be told from rounding.
    """
    if before is None or (exact and not _works_uncounted(before, after)):
        return counted_interval(before, after)
    return Interval(replace(after, at=before.at, units=before.units))


def _works_uncounted(before: EngineState, after: EngineState) -> bool:
    changes = [_Change(before.units.get(name, UnitState()), unit) for name, unit in after.units.items()]
    counted = any(change.delta("generated_tokens") for change in changes)
    return not counted and any(change.after.running_requests or change.delta("target_passes") for change in changes)


class _Change:
    """One unit at two instants; counters that appear had been 0."""

    def __init__(self, before: UnitState, after: UnitState) -> None:
        self.before, self.after = before, after

    def delta(self, counter: str) -> float | None:
        """How far a counter moved; ``None`` where it is not exposed."""
        after = getattr(self.after, counter)
        return None if after is None else after - (getattr(self.before, counter) or 0.0)

    def window(self, position: int, at: float, unit: str, seconds: float | None) -> Window:
        """The window between both instants; ``seconds`` is ``None`` where no clock ran over all of it."""
        after, tokens, steps = self.after, self.delta("generated_tokens"), self.delta("verify_steps")
        return Window(
            position=position,
            line=0,
            at=at,
            unit=unit,
            seconds=seconds,
            running_requests=self._running() if seconds else None,
            waiting_requests=after.waiting_requests if seconds else None,
            verify_steps=steps,
            accepted_tokens=self.delta("accepted_tokens") if steps is not None else None,
            drafted_tokens=self.delta("drafted_tokens") if steps is not None else None,
            generated_tokens=tokens,
            generation_throughput=tokens / seconds if seconds and tokens is not None else None,
            printed_length=after.printed_length,
            printed_rate=after.printed_rate,
            tokens_in_use=after.tokens_in_use,
            kv_cache_usage=after.kv_cache_usage,
            prefills=int(self.delta("prompts") or 0),
            accepted_at=self._accepted_at() if steps is not None else None,
            origin=Origin.COUNTERS,
        )

    def _running(self) -> float | None:
        """Requests that decoded, their mean over the window's passes; the gauge where those are not counted."""
        passes, of_requests = self.delta("target_passes"), self.delta("request_passes")
        if passes is None or of_requests is None:
            return self.after.running_requests
        return of_requests / passes if passes else 0.0

    def _accepted_at(self) -> tuple[float, ...] | None:
        after, before = self.after.accepted_at, self.before.accepted_at or ()
        if after is None:
            return None
        return tuple(count - (before[i] if i < len(before) else 0.0) for i, count in enumerate(after))
