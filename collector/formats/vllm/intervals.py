"""One window for each interval and engine, from the lines that vLLM prints about it.

The engine line and the acceptance line of an interval come from one process at one instant, the
second without the engine's number. V0's acceptance line is cumulative, so windows are differences.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from collector.domain.windows import PrefillWindow, Window
from collector.formats.counts import SpecCounts
from collector.formats.vllm.lifetime import LifetimeCounts
from collector.formats.vllm.stats import Stats

SAME_INSTANT_SECONDS: Final = 1.0
"""Lines of one interval differ by a rounded second at most."""
CLOCKS_AGREE_SECONDS: Final = 1.5
"""How far an interval by the times of lines, which are whole seconds, may lie from the engine's clock."""


class Place(NamedTuple):
    """Where a line stands: byte offset, line number, instant."""

    position: int
    line: int
    at: float


class Acceptance(NamedTuple):
    """An acceptance line: what it counted, the printed figures, the engine's clock where the line tells it."""

    counts: SpecCounts
    length: float | None
    rate: float | None
    seconds: float | None


@dataclass(slots=True)
class _Interval:
    """What is known of one interval so far."""

    place: Place
    stats: Stats | None
    acceptance: Acceptance | None = None
    acceptance_place: Place | None = None
    cached_share: float | None = None


@dataclass(slots=True)
class Before:
    """The interval before, of the same engine."""

    at: float
    busy: bool


class Read(NamedTuple):
    """Windows that are complete now."""

    windows: list[Window]
    prefills: list[PrefillWindow]


@dataclass(slots=True)
class Intervals:
    """Pairs the lines of one run.

    ``several`` says whether the server has several engines, ``None`` where that is not known yet.
    Then the first interval of engine 0 is held until another engine speaks, or the same one again:
    a single engine has no unit, engines beside one another are named. ``before`` is the last interval
    of each process and engine.
    """

    several: bool | None = None
    whole_prompts: bool = False
    """Up to 0.15 the prompt throughput counts cached tokens as well."""
    _open: dict[bytes, _Interval] = field(default_factory=dict)
    before: dict[tuple[bytes, int | None], Before] = field(default_factory=dict)
    _lifetime: dict[bytes, LifetimeCounts] = field(default_factory=dict)
    _held: list[tuple[bytes, _Interval]] = field(default_factory=list)
    _unnamed: bool = False
    """Engine 0 was taken to be the only one, and keeps that form whatever follows."""

    def stats(self, process: bytes, place: Place, stats: Stats) -> Read:
        """Take an engine line."""
        read = self.close(process)
        self._open[process] = _Interval(place, stats, cached_share=stats.values.get("cached_share"))
        return read

    def acceptance(self, process: bytes, place: Place, acceptance: Acceptance) -> Read:
        """Take an acceptance line; without its engine line it is an interval of its own."""
        interval = self._open.get(process)
        if (
            interval is not None
            and interval.acceptance is None
            and abs(place.at - interval.place.at) <= SAME_INSTANT_SECONDS
        ):
            interval.acceptance, interval.acceptance_place = acceptance, place
            return self.close(process)
        read = self.close(process)
        self._open[process] = _Interval(place, None, acceptance, place)
        rest = self.close(process)
        return Read(read.windows + rest.windows, read.prefills + rest.prefills)

    def lifetime(self, process: bytes, counts: LifetimeCounts) -> tuple[SpecCounts, bool]:
        """What V0's counters moved by since the line before, and whether they began anew.

        The first line counts since the server's start.
        """
        before = self._lifetime.get(process)
        reset = before is not None and (counts.drafted < before.drafted or counts.emitted < before.emitted)
        self._lifetime[process] = counts
        steps, accepted, drafted = counts.verify_steps, counts.accepted, counts.drafted
        if before is not None and not reset:
            steps, accepted = steps - before.verify_steps, accepted - before.accepted
            drafted -= before.drafted
        return SpecCounts(round(accepted), drafted, steps), reset

    def cached(self, process: bytes, share: float) -> None:
        """Take V0's line about the prefix cache, which stands between the two others."""
        interval = self._open.get(process)
        if interval is not None:
            interval.cached_share = share

    def finish(self) -> Read:
        """The run has ended: what is open or held is complete."""
        windows: list[Window] = []
        prefills: list[PrefillWindow] = []
        for process in list(self._open):
            read = self.close(process)
            windows += read.windows
            prefills += read.prefills
        if self._held:
            rest = self._release(several=False)
            windows += rest.windows
            prefills += rest.prefills
        return Read(windows, prefills)

    # ---- completing intervals

    @property
    def holding(self) -> bool:
        """Whether intervals are held until it is known how many engines there are."""
        return bool(self._held)

    def is_open(self, process: bytes) -> bool:
        """Whether a process has an interval that may go on."""
        return process in self._open

    def close(self, process: bytes) -> Read:
        """Complete what is open of a process."""
        interval = self._open.pop(process, None)
        if interval is None:
            return Read([], [])
        engine = interval.stats.engine if interval.stats is not None else None
        if self.several is None and engine is not None:
            self._held.append((process, interval))
            if engine:
                return self._release(several=True)
            if sum(item.stats is not None and item.stats.engine == 0 for _, item in self._held) > 1:
                return self._release(several=False)
            return Read([], [])
        if self.several is False and engine:
            self.several = True
        if self._held:
            self._held.append((process, interval))
            return Read([], [])
        return self._complete([(process, interval)])

    def _release(self, *, several: bool) -> Read:
        held, self._held = self._held, []
        self.several, self._unnamed = several, not several
        return self._complete(held)

    def _complete(self, intervals: list[tuple[bytes, _Interval]]) -> Read:
        windows: list[Window] = []
        prefills: list[PrefillWindow] = []
        for process, interval in intervals:
            engine = interval.stats.engine if interval.stats is not None else None
            unit = self.unit(engine)
            before = self.before.get((process, engine))
            seconds, clock = _clocks(interval, before)
            windows.append(_window(interval, unit, seconds, clock))
            prefill = self._prefill(interval, unit, clock)
            if prefill is not None:
                prefills.append(prefill)
            if interval.stats is not None:
                values = interval.stats.values
                busy = values["prompt_throughput"] > 0 or values["generation_throughput"] > 0
                self.before[process, engine] = Before(interval.place.at, busy)
        return Read(windows, prefills)

    def unit(self, engine: int | None) -> str:
        """What an engine is called in its windows."""
        if engine is None or (engine == 0 and (self._unnamed or not self.several)):
            return ""
        return f"engine {engine}"

    def _prefill(self, interval: _Interval, unit: str, clock: float | None) -> PrefillWindow | None:
        """Prompt tokens of the interval; the cached ones follow from the printed share of recent requests."""
        share, stats = interval.cached_share, interval.stats
        if stats is None or share is None or clock is None or not 0 <= share < 1:
            return None
        tokens = stats.values["prompt_throughput"] * clock
        if not tokens:
            return None
        new = tokens * (1 - share) if self.whole_prompts else tokens
        place = interval.place
        return PrefillWindow(place.position, place.line, place.at, unit, new, new * share / (1 - share))


def _clocks(interval: _Interval, before: Before | None) -> tuple[float | None, float | None]:
    """Seconds of the acceptance counts, and of the engine line's throughput; ``None`` where not known.

    The acceptance clock runs since the acceptance line before, so it includes a pause; the engine's
    runs since its line before, which is not printed while nothing happens.
    """
    own = interval.acceptance.seconds if interval.acceptance is not None else None
    gap = interval.place.at - before.at if before is not None and before.busy else None
    if gap is None or gap <= 0:
        return own, None
    if own is None:
        return gap, gap
    return own, own if abs(own - gap) <= CLOCKS_AGREE_SECONDS else gap


def _window(interval: _Interval, unit: str, seconds: float | None, clock: float | None) -> Window:
    place = interval.acceptance_place or interval.place
    values = interval.stats.values if interval.stats is not None else {}
    acceptance = interval.acceptance
    counts = acceptance.counts if acceptance is not None else None
    throughput = values.get("generation_throughput")
    return Window(
        position=place.position,
        line=place.line,
        at=place.at,
        unit=unit,
        seconds=seconds,
        running_requests=values.get("running_requests"),
        waiting_requests=values.get("waiting_requests"),
        verify_steps=counts.verify_steps if counts is not None else None,
        accepted_tokens=counts.accepted if counts is not None else None,
        drafted_tokens=counts.drafted if counts is not None else None,
        generated_tokens=throughput * clock if throughput is not None and clock is not None else None,
        generation_throughput=throughput,
        printed_length=acceptance.length if acceptance is not None else None,
        printed_rate=acceptance.rate if acceptance is not None else None,
        kv_cache_usage=values.get("kv_cache_usage"),
        prefills=1 if values.get("prompt_throughput") else 0,
        accepted_at=counts.accepted_at if counts is not None else None,
    )


def interval_seconds(
    accepted: int, drafted: int, accepted_rate: float | None, drafted_rate: float | None
) -> float | None:
    """The engine's clock behind counts and throughputs; the larger count is the more precise."""
    for count, rate in ((drafted, drafted_rate), (accepted, accepted_rate)):
        if count and rate and math.isfinite(rate):
            return count / rate
    return None
