"""Reads the sources that the settings name, beside the web service: each at its own pace, none holds up another."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from collector.domain.errors import DraftscopeError, SourceError
from collector.sources.pace import Pace
from dashboard.feeds.base import Feed, Source

if TYPE_CHECKING:
    from collector.storage.engine import Database

READ_AT_ONCE: Final = 8
_LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class SourceState:
    """How reading one source goes.

    ``runs`` counts those it told of since the service started, ``problems`` are what is to be said of
    some of them; ``error`` says what is wrong now, "" while all is well.
    """

    kind: str
    place: str
    runs: int = 0
    failures_in_a_row: int = 0
    last_success_at: float | None = None
    problems: tuple[str, ...] = ()
    error: str = ""
    hint: str = ""


@dataclass(slots=True)
class _Reading:
    """One source that is read."""

    source: Source
    state: SourceState
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    feed: Feed | None = None
    task: asyncio.Task[None] | None = None


class Feeding:
    """Reads every source until told to stop. The sources can be replaced while it works."""

    def __init__(self, database: Database, sources: Sequence[Source], *, now: Callable[[], float] = time.time) -> None:
        """Nothing is opened yet. ``now`` gives seconds since 1970."""
        self._database = database
        self._sources = tuple(sources)
        self._now = now
        self._changed = asyncio.Event()
        self._readings: list[_Reading] = []

    def states(self) -> list[SourceState]:
        """How reading each source goes, in the order of the settings."""
        return [reading.state for reading in self._readings]

    def replace(self, sources: Sequence[Source]) -> None:
        """Read these sources from now on; what stays the same goes on undisturbed."""
        self._sources = tuple(sources)
        self._changed.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Work until ``stop`` is set; pieces under way are waited for."""
        with ThreadPoolExecutor(READ_AT_ONCE, thread_name_prefix="source") as pool:
            ended: list[asyncio.Task[None]] = []
            while not stop.is_set():
                self._changed.clear()
                ended = [task for task in ended if not task.done()] + self._take_over(pool)
                waiting = [asyncio.create_task(event.wait()) for event in (stop, self._changed)]
                await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
                for task in waiting:
                    task.cancel()
            readings, self._readings = self._readings, []
            for reading in readings:
                reading.stop.set()
            await asyncio.gather(*ended, *(reading.task for reading in readings if reading.task is not None))

    def _take_over(self, pool: ThreadPoolExecutor) -> list[asyncio.Task[None]]:
        """Begin with sources that are new and end those that are gone; gives the tasks of these."""
        gone = [reading for reading in self._readings if reading.source not in self._sources]
        for reading in gone:
            reading.stop.set()
        known = {reading.source: reading for reading in self._readings}
        self._readings = [
            known.get(source) or _Reading(source, SourceState(source.kind, source.place))
            for source in dict.fromkeys(self._sources)
        ]
        for reading in self._readings:
            if reading.task is None:
                reading.task = asyncio.create_task(self._read(reading, pool))
        return [reading.task for reading in gone if reading.task is not None]

    async def _read(self, reading: _Reading, pool: ThreadPoolExecutor) -> None:
        """Read one source until told to stop."""
        pace = Pace(reading.source.interval_seconds)
        loop = asyncio.get_running_loop()
        while not reading.stop.is_set():
            more, failed = await loop.run_in_executor(pool, self._step, reading)
            if more:
                continue
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(reading.stop.wait(), pace.next_in(failed=failed))
        if reading.feed is not None:
            await loop.run_in_executor(pool, reading.feed.close)

    def _step(self, reading: _Reading) -> tuple[bool, bool]:
        """Store the next piece; whether more may be there, and whether that went wrong."""
        state = reading.state
        try:
            if reading.feed is None:
                reading.feed = reading.source.open(self._database, self._now)
            more = reading.feed.step()
        except DraftscopeError as error:
            if state.error != error.what:
                _LOG.warning("%s: %s", state.place, error)
            state.error, state.hint = error.what, error.hint
            if not isinstance(error, SourceError):
                self._close(reading)
        except Exception:  # noqa: BLE001 - logged with its traceback; one source must not stop the others
            _LOG.exception("%s: a fault of draftscope", state.place)
            state.error, state.hint = "a fault of draftscope", "look at the log of the service"
            self._close(reading)
        else:
            if state.error:
                _LOG.info("%s: can be read again", state.place)
            state.failures_in_a_row, state.error, state.hint = 0, "", ""
            state.last_success_at = self._now()
            state.runs, state.problems = len(reading.feed.run_ids), tuple(reading.feed.problems.values())
            return more, False
        state.failures_in_a_row += 1
        return False, True

    @staticmethod
    def _close(reading: _Reading) -> None:
        """Begin anew next time, from what is stored."""
        if reading.feed is not None:
            reading.feed.close()
            reading.feed = None
