"""Windows of SGLang between two scrapes.

Verify steps come from the best of three sources, chosen once a window:

1. ``spec_verify_calls_total`` (0.5.13+): the server counts the steps of requests that finished. It
   does so for all ranks together, so it serves a server of one unit.
2. The mean length since start (``/server_info``): two of them, with the tokens behind each, give
   all steps between them. A mean moves when the engine writes a decode line.
3. The gauge: the steps of the last decode line, and those alone. Lines in between are not seen;
   the same line is never counted twice. Such windows are samples (:attr:`Origin.GAUGES`).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from collector.domain.arguments import Arguments
from collector.domain.windows import Origin, PrefillWindow, Window
from collector.metrics.base import EngineState, Interval, UnitState
from collector.metrics.sglang.acceptance import (
    LARGEST_WIDTH,
    Counts,
    Definition,
    counts_of_line,
    interval_of,
)

_AT_START: Final = UnitState(verify_steps=0.0, accepted_tokens=0.0)


def interval(before: EngineState | None, after: EngineState, arguments: Arguments) -> Interval:
    """Windows and prefills of every unit; without a scrape before, since the start of the process."""
    found = Interval(after)
    units: dict[str, UnitState] = {}
    position = round(after.at * 1000)
    for name, unit in after.units.items():
        earlier = before.units.get(name) if before is not None else None
        reader = _Unit(earlier, unit, arguments)
        seconds = after.at - before.at if before is not None and earlier is not None and after.at > before.at else None
        found.windows.append(reader.window(position, after.at, name, seconds))
        if earlier is not None and earlier.verify_steps is None and unit.verify_steps is not None:
            # Counted for the first time: all steps since the start of the process come with it.
            since_start = _Unit(None, unit, arguments).window(position + 1, after.at, name, None)
            found.windows.append(since_start._replace(generated_tokens=None, prefills=0))
        if reader.delta("computed_tokens"):
            computed, cached = reader.delta("computed_tokens") or 0.0, reader.delta("cached_tokens") or 0.0
            found.prefills.append(PrefillWindow(position, 0, after.at, name, computed, cached))
        units[name] = reader.settled()
    kept = any(units[name] is not unit for name, unit in after.units.items())
    return replace(found, state=replace(after, units=units)) if kept else found


class _Unit:
    """One unit at two instants; ``None`` before stands for the start of the process."""

    def __init__(self, before: UnitState | None, after: UnitState, arguments: Arguments) -> None:
        self.since_start = before is None
        self.before, self.after = before or _AT_START, after
        self.definition = Definition.of(arguments)
        self.line_steps = interval_of(arguments)
        self.width = arguments.value("speculative_num_draft_tokens")
        self.tokens = self.delta("generated_tokens")
        self.passes = self.delta("target_passes")
        self.fresh = self._is_fresh()
        self.counts = self._counted()

    def delta(self, counter: str) -> float | None:
        """How far a counter moved; one that appears had been 0."""
        after = getattr(self.after, counter)
        return None if after is None else after - (getattr(self.before, counter) or 0.0)

    def window(self, position: int, at: float, unit: str, seconds: float | None) -> Window:
        """The window between both instants; ``seconds`` is ``None`` where no clock ran over all of it."""
        counts, origin = self.counts, Origin.COUNTERS
        if counts is None and (counts := self._sampled()) is not None:
            origin = Origin.GAUGES
        throughput = None
        if seconds and self.tokens is not None:
            throughput = self.tokens / seconds
        elif seconds and self.fresh:
            throughput = self.after.generation_throughput
        return Window(
            position=position,
            line=0,
            at=at,
            unit=unit,
            seconds=seconds,
            running_requests=self._running(counts) if seconds else None,
            waiting_requests=self.after.waiting_requests if seconds else None,
            verify_steps=counts.verify_steps if counts else None,
            accepted_tokens=counts.accepted_tokens if counts else None,
            generated_tokens=self.tokens,
            generation_throughput=throughput,
            printed_length=self.after.printed_length if self.fresh else None,
            printed_rate=self.after.printed_rate if self.fresh else None,
            tokens_in_use=self.after.tokens_in_use,
            kv_cache_usage=self.after.kv_cache_usage,
            graph=self._graph(),
            prefills=int(self.delta("prompts") or 0),
            origin=origin,
        )

    # ---- acceptance

    def settled(self) -> UnitState:
        """The later state, with the counts from which the next window has to go on."""
        counts = self.counts
        if self.since_start or self.before.verify_steps is None or (counts is not None and counts.verify_steps):
            return self.after
        known = self.before
        return self.after._replace(
            verify_steps=known.verify_steps, accepted_tokens=known.accepted_tokens, mean_length=known.mean_length
        )

    def _counted(self) -> Counts | None:
        """Counts between both instants, where both are counted in one way."""
        steps, accepted = self.delta("verify_steps"), self.delta("accepted_tokens")
        if steps is None or accepted is None or self.before.verify_steps is None:
            return None
        if self.after.mean_length is None:
            return Counts(steps, accepted) if self.before.mean_length is None else None
        if self.after.mean_length == self.before.mean_length and not self.fresh:
            return Counts(0.0, 0.0)
        # A mean that was reset gives counts of another stretch: what no server can do is not taken.
        most = steps * ((self.width or LARGEST_WIDTH) - self.definition.own)
        return Counts(steps, accepted) if steps > 0 and 0 <= accepted <= most else None

    def _sampled(self) -> Counts | None:
        """The counts of the last decode line, if it is a new one."""
        length = self.after.printed_length
        if self.since_start or not self.fresh or length is None:
            return None
        running = self.after.running_requests or self._mean_batch(length) or 1.0
        return counts_of_line(length, running, self.line_steps, self.definition)

    def _is_fresh(self) -> bool:
        """Whether the gauges were set since: they hold their value while nothing decodes."""
        length = self.after.printed_length
        if length is None or self.tokens == 0:
            return False
        if length != self.before.printed_length:
            return True
        if self.passes is not None:
            return self.passes >= self.line_steps
        return self.after.generation_throughput not in (self.before.generation_throughput, 0.0)

    # ---- load

    def _running(self, counts: Counts | None) -> float | None:
        """Requests that decoded: their mean over the window's passes, where passes are counted, else the gauge.

        The gauge is as old as the last decode line, and can say 5 on an idle server.
        """
        if self.passes is None:
            return self.after.running_requests
        if not self.passes:  # steps are counted when a request finishes, at times after its last pass
            return None if counts and counts.verify_steps > 0 else 0.0
        length = None
        if counts and counts.verify_steps > 0:
            length = counts.accepted_tokens / counts.verify_steps + self.definition.own
        elif self.after.printed_length is not None:
            length = self.after.printed_length - self.definition.surplus
        return self._mean_batch(length or 1.0)

    def _mean_batch(self, length: float) -> float | None:
        if not self.passes or not self.tokens or not length > 0:
            return None
        return self.tokens / self.passes / length

    def _graph(self) -> bool | None:
        """Whether most passes of the window ran from a captured graph; where they are not counted, whether the last did."""
        if self.passes:
            return (self.delta("graphless_passes") or 0.0) < self.passes / 2
        if self.passes is None and self.tokens and self.after.graph is not None:
            return self.after.graph > 0
        return None
