"""Watches the engines that the settings name, beside the web service.

Each address has its own pace: scrapes are spread over the interval, one that fails is tried again
ever more slowly, and a slow one holds up no other: one thread asks all of them, a second one stores
what came in since it last did, in one unit of work. Runs are judged by :class:`dashboard.judging.Sweep`,
which sees what was stored.
"""

from __future__ import annotations

import asyncio
import logging
import time
import zlib
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from collector.domain.errors import DraftscopeError, SourceError
from collector.sources.pace import Pace
from dashboard.targets import Found, Target, find_all

if TYPE_CHECKING:
    from collector.scraping import Recorder, Stored
    from collector.sources.fetching import Client, Fetching
    from collector.sources.scrape import Scrape, Scraper
    from collector.storage.engine import Database

LOOK_UP_SECONDS: Final = 30.0
"""Between two looks at files and names that stand for addresses."""
GATHER_SHARE: Final = 0.5
"""How long scrapes wait for others to be stored with, as a share of the shortest interval between two scrapes."""
MOST_GATHER_SECONDS: Final = 2.0
_LOG: Final = logging.getLogger(__name__)


@dataclass(slots=True)
class TargetState:
    """How watching one address goes.

    ``error`` says what is wrong now, "" while all is well; ``next_in_seconds`` is the pause that
    was last begun. ``scrapes`` counts those that were stored, ``failures`` the others.
    """

    address: str
    deployment: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    engine: str = ""
    run_id: int | None = None
    scrapes: int = 0
    failures: int = 0
    failures_in_a_row: int = 0
    last_success_at: float | None = None
    error: str = ""
    hint: str = ""
    next_in_seconds: float = 0.0


class Alarm:
    """A pause that can be cut short. It is much cheaper than waiting for an event with a time limit."""

    def __init__(self) -> None:
        """Nobody waits yet."""
        self.rung = False
        self._waiting: asyncio.Future[None] | None = None

    async def wait(self, seconds: float) -> bool:
        """Wait so long or until it is rung; whether it was."""
        if not self.rung:
            loop = asyncio.get_running_loop()
            self._waiting = loop.create_future()
            timer = loop.call_later(seconds, self._wake)
            try:
                await self._waiting
            finally:
                timer.cancel()
                self._waiting = None
        return self.rung

    def ring(self) -> None:
        """End the pause, and every later one."""
        self.rung = True
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)


@dataclass(slots=True)
class _Running:
    """One address that is watched."""

    found: Found
    state: TargetState
    stop: Alarm = field(default_factory=Alarm)
    task: asyncio.Task[None] | None = None


class Writer:
    """Stores scrapes of many engines together."""

    def __init__(self) -> None:
        """Nothing waits yet."""
        self._waiting: list[tuple[Recorder, Scrape, asyncio.Future[Stored]]] = []
        self._filled = asyncio.Event()
        self._ended = Alarm()
        self.gather_seconds = MOST_GATHER_SECONDS
        """How long scrapes wait for others."""

    async def store(self, recorder: Recorder, scrape: Scrape) -> Stored:
        """Store a scrape with those that come in at about the same time.

        Raises:
            StorageError: the database refused; the engine's next scrape stores the whole interval.
        """
        stored: asyncio.Future[Stored] = asyncio.get_running_loop().create_future()
        self._waiting.append((recorder, scrape, stored))
        self._filled.set()
        return await stored

    async def run(self) -> None:
        """Store what comes in until :meth:`end`."""
        from collector.scraping import store_all

        loop = asyncio.get_running_loop()
        with ThreadPoolExecutor(1, thread_name_prefix="store") as thread:
            while not (self._ended.rung and not self._waiting):
                await self._filled.wait()
                await self._ended.wait(self.gather_seconds)
                waiting, self._waiting = self._waiting, []
                if not self._ended.rung:
                    self._filled.clear()
                scrapes = [(recorder, scrape) for recorder, scrape, _ in waiting]
                outcomes = await loop.run_in_executor(thread, store_all, scrapes)
                for (_, _, future), outcome in zip(waiting, outcomes, strict=True):
                    if isinstance(outcome, Exception):
                        future.set_exception(outcome)
                    else:
                        future.set_result(outcome)

    def end(self) -> None:
        """Store what waits, and stop."""
        self._ended.ring()
        self._filled.set()


class Collection:
    """Scrapes every target until told to stop. The targets can be replaced while it works."""

    def __init__(
        self,
        database: Database,
        targets: Sequence[Target],
        *,
        client: Client | None = None,
        now: Callable[[], float] = time.time,
        look_up_seconds: float = LOOK_UP_SECONDS,
    ) -> None:
        """Nothing is asked yet. ``client`` is the library that asks, httpx by default; ``now`` gives seconds since 1970.

        Raises:
            InputError: that library is not installed.
        """
        from collector.sources.fetching import Client, Fetching

        self._fetching = Fetching(client or Client.HTTPX)
        self._database = database
        self._targets = tuple(targets)
        self._now = now
        self._steady = time.monotonic if now is time.time else None
        self._look_up_seconds = look_up_seconds
        self._changed = asyncio.Event()
        self._running: dict[str, _Running] = {}
        self._ending: list[asyncio.Task[None]] = []
        self.problems: Mapping[Target, DraftscopeError] = {}
        """Targets that could not be looked up last."""

    def states(self) -> list[TargetState]:
        """How watching each address goes, by address."""
        return sorted((running.state for running in self._running.values()), key=lambda state: state.address)

    def replace(self, targets: Sequence[Target]) -> None:
        """Watch these targets from now on; what stays the same goes on undisturbed."""
        self._targets = tuple(targets)
        self._changed.set()

    async def run(self, stop: asyncio.Event) -> None:
        """Work until ``stop`` is set; scrapes under way are waited for."""
        writer = Writer()
        async with self._fetching as fetching:
            writing = asyncio.create_task(writer.run())
            while not stop.is_set():
                self._changed.clear()
                await self._look_up(fetching, writer)
                await _first_of(stop, self._changed, seconds=self._look_up_seconds)
            for address in list(self._running):
                self._end(address)
            await asyncio.gather(*self._ending, return_exceptions=True)
            writer.end()
            await writing

    async def _look_up(self, fetching: Fetching, writer: Writer) -> None:
        """Begin with addresses that are new or set otherwise, and leave those that are gone.

        Where a file or name cannot be looked up right now, what it stood for before goes on.
        """
        found, problems = await asyncio.to_thread(find_all, self._targets)
        for target, problem in problems.items():
            if str(problem) != str(self.problems.get(target)):
                _LOG.warning("targets: %s", problem)
        self.problems = problems
        wanted = {item.address: item for item in found}
        shortest = min((item.target.interval_seconds for item in found), default=MOST_GATHER_SECONDS)
        writer.gather_seconds = min(MOST_GATHER_SECONDS, GATHER_SHARE * shortest)
        for address, running in list(self._running.items()):
            if wanted.get(address) != running.found and running.found.target not in problems:
                self._end(address)
        for address, item in wanted.items():
            if address not in self._running:
                running = _Running(item, TargetState(item.shown, item.target.deployment, item.labels))
                running.task = asyncio.create_task(self._watch(running, fetching, writer))
                self._running[address] = running
        self._ending = [task for task in self._ending if not task.done()]

    def _end(self, address: str) -> None:
        running = self._running.pop(address)
        running.stop.ring()
        if running.task is not None:
            self._ending.append(running.task)

    async def _watch(self, running: _Running, fetching: Fetching, writer: Writer) -> None:
        """Scrape one address until told to stop."""
        from collector.scraping import Place, Recorder
        from collector.sources.scrape import Scraper

        state, target = running.state, running.found.target
        try:
            endpoint = fetching.endpoint(running.found.address, **target.access)
        except DraftscopeError as error:
            self._failed(state, error)
            return
        async with endpoint:
            state.address = endpoint.address
            scraper = Scraper(endpoint, take_from_queue=target.take_iterations, clock=self._now, steady=self._steady)
            recorder = Recorder(
                self._database, Place.of(endpoint), deployment=target.deployment or None, labels=running.found.labels
            )
            pace = Pace(target.interval_seconds, share=spread(endpoint.address))
            pause = pace.first_in()
            while True:
                state.next_in_seconds = pause
                if await running.stop.wait(pause):
                    return
                pause = pace.next_in(failed=await self._scrape(scraper, recorder, writer, state))

    async def _scrape(self, scraper: Scraper, recorder: Recorder, writer: Writer, state: TargetState) -> bool:
        """Scrape once; whether the engine did not answer as it should."""
        try:
            stored = await writer.store(recorder, await scraper.scrape_async())
        except DraftscopeError as error:
            self._failed(state, error)
            return isinstance(error, SourceError)
        except Exception:  # noqa: BLE001 - logged with its traceback; one target must not stop the others
            _LOG.exception("%s: a fault of draftscope", state.address)
            state.failures += 1
            state.failures_in_a_row += 1
            state.error, state.hint = "a fault of draftscope", "look at the log of the service"
            return True
        if state.error:
            _LOG.info("%s: answers again", state.address)
        state.engine, state.run_id = stored.scrape.engine.engine, stored.run_id
        state.scrapes += 1
        state.failures_in_a_row, state.error, state.hint = 0, "", ""
        state.last_success_at = stored.scrape.state.at
        return False

    def _failed(self, state: TargetState, error: DraftscopeError) -> None:
        if state.error != error.what:
            _LOG.warning("%s: %s", state.address, error)
        state.failures += 1
        state.failures_in_a_row += 1
        state.error, state.hint = error.what, error.hint


def spread(address: str) -> float:
    """Where in the interval an address is scraped: 0 to 1, the same at every start."""
    return zlib.crc32(address.encode()) / 2**32


async def _first_of(*events: asyncio.Event, seconds: float) -> None:
    """Wait until one of the events is set, or so long."""
    waiting = [asyncio.create_task(event.wait()) for event in events]
    try:
        await asyncio.wait(waiting, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in waiting:
            task.cancel()
