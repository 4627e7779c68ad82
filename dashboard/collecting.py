"""Watches the engines that the settings name, beside the web service.

Each address has its own pace: scrapes are spread over the interval, one that fails is tried again
ever more slowly, and a slow one holds up no other. Runs are judged by :class:`dashboard.judging.Sweep`,
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
    from collector.scraping import Watch
    from collector.storage.engine import Database

LOOK_UP_SECONDS: Final = 30.0
"""Between two looks at files and names that stand for addresses."""
SCRAPES_AT_ONCE: Final = 16
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


@dataclass(slots=True)
class _Running:
    """One address that is watched."""

    found: Found
    state: TargetState
    stop: asyncio.Event = field(default_factory=asyncio.Event)
    task: asyncio.Task[None] | None = None


class Collection:
    """Scrapes every target until told to stop. The targets can be replaced while it works."""

    def __init__(
        self,
        database: Database,
        targets: Sequence[Target],
        *,
        now: Callable[[], float] = time.time,
        look_up_seconds: float = LOOK_UP_SECONDS,
    ) -> None:
        """Nothing is asked yet. ``now`` gives seconds since 1970."""
        self._database = database
        self._targets = tuple(targets)
        self._now = now
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
        with ThreadPoolExecutor(SCRAPES_AT_ONCE, thread_name_prefix="scrape") as pool:
            while not stop.is_set():
                self._changed.clear()
                await self._look_up(pool)
                await _first_of(stop, self._changed, seconds=self._look_up_seconds)
            for address in list(self._running):
                self._end(address)
            await asyncio.gather(*self._ending, return_exceptions=True)

    async def _look_up(self, pool: ThreadPoolExecutor) -> None:
        """Begin with addresses that are new or set otherwise, and leave those that are gone.

        Where a file or name cannot be looked up right now, what it stood for before goes on.
        """
        found, problems = await asyncio.to_thread(find_all, self._targets)
        for target, problem in problems.items():
            if str(problem) != str(self.problems.get(target)):
                _LOG.warning("targets: %s", problem)
        self.problems = problems
        wanted = {item.address: item for item in found}
        for address, running in list(self._running.items()):
            if wanted.get(address) != running.found and running.found.target not in problems:
                self._end(address)
        for address, item in wanted.items():
            if address not in self._running:
                running = _Running(item, TargetState(item.shown, item.target.deployment, item.labels))
                running.task = asyncio.create_task(self._watch(running, pool))
                self._running[address] = running
        self._ending = [task for task in self._ending if not task.done()]

    def _end(self, address: str) -> None:
        running = self._running.pop(address)
        running.stop.set()
        if running.task is not None:
            self._ending.append(running.task)

    async def _watch(self, running: _Running, pool: ThreadPoolExecutor) -> None:
        """Scrape one address until told to stop."""
        from collector.scraping import Watch
        from collector.sources.scrape import Scraper

        state, target = running.state, running.found.target
        try:
            endpoint = running.found.endpoint()
        except DraftscopeError as error:
            self._failed(state, error)
            return
        with endpoint:
            state.address = endpoint.address
            scraper = Scraper(endpoint, take_from_queue=target.take_iterations, clock=self._now)
            watch = Watch(self._database, scraper, deployment=target.deployment or None, labels=running.found.labels)
            pace = Pace(target.interval_seconds)
            pause = spread(endpoint.address) * target.interval_seconds
            while True:
                state.next_in_seconds = pause
                await _first_of(running.stop, seconds=pause)
                if running.stop.is_set():
                    return
                failed = await asyncio.get_running_loop().run_in_executor(pool, self._scrape, watch, state)
                pause = pace.next_in(failed=failed)

    def _scrape(self, watch: Watch, state: TargetState) -> bool:
        """Scrape once; whether the engine did not answer as it should."""
        try:
            stored = watch.take()
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
