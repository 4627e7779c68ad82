"""Of several services on one database one collects; the others stand by and take over when it is gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from typing import Final, Protocol

from collector.domain.errors import StorageError
from collector.storage.leadership import RENEW_SECONDS, Leadership

_LOG: Final = logging.getLogger(__name__)


class Collector(Protocol):
    """What runs only in the process that collects; it can be run again."""

    async def run(self, stop: asyncio.Event) -> None:
        """Work until ``stop`` is set."""


class Election:
    """Runs collectors while this process is the one that collects."""

    def __init__(self, leadership: Leadership, collectors: Sequence[Collector]) -> None:
        """Nothing runs yet. The collectors have to write to ``leadership.database``."""
        self._leadership = leadership
        self._collectors = tuple(collectors)

    async def run(self, stop: asyncio.Event) -> None:
        """Stand by, collect, and stand by again, until told to stop."""
        said = ""
        while not stop.is_set():
            try:
                leads = await asyncio.to_thread(self._leadership.take)
                problem = "" if leads else "another process collects; this one stands by"
            except StorageError as error:
                leads, problem = False, f"nothing is collected: {error}"
            if problem and problem != said:
                _LOG.warning("%s", problem)
            if said and leads:
                _LOG.info("collects from now on")
            said = problem
            if leads:
                await self._collect(stop)
            else:
                await _wait(stop)

    async def _collect(self, stop: asyncio.Event) -> None:
        """Collect until told to stop or until this process is not the collector any more."""
        stand_down = asyncio.Event()
        try:
            async with asyncio.TaskGroup() as group:
                for collector in self._collectors:
                    group.create_task(collector.run(stand_down))
                try:
                    while not stop.is_set():
                        await _wait(stop)
                        await asyncio.to_thread(self._leadership.renew)
                except StorageError as error:
                    _LOG.warning("collects no longer: %s", error)
                finally:
                    stand_down.set()
        finally:
            await asyncio.to_thread(self._leadership.resign)


async def _wait(stop: asyncio.Event) -> None:
    try:
        await asyncio.wait_for(stop.wait(), RENEW_SECONDS)
    except TimeoutError:
        return
