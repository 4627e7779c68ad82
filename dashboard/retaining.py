"""Lets go of samples that are older than they are kept, once an hour."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from collector.domain.errors import StorageError
from collector.storage.limits import Retention

if TYPE_CHECKING:
    from collector.storage.engine import Database

EVERY_SECONDS: Final = 3600.0
_LOG: Final = logging.getLogger(__name__)


class Retaining:
    """Keeps the database small, in the process that collects."""

    def __init__(self, database: Database, limits: Retention, *, now: Callable[[], float] = time.time) -> None:
        self._database = database
        self._limits = limits
        self._now = now

    async def run(self, stop: asyncio.Event) -> None:
        """Work until told to stop; what goes wrong is tried again an hour later."""
        from collector.storage.retention import let_go

        while not stop.is_set():
            try:
                cuts = await asyncio.to_thread(let_go, self._database, self._limits, now=self._now())
            except StorageError as error:
                _LOG.warning("old samples could not be let go: %s", error)
            else:
                rows = sum(cut.rows for cut in cuts)
                if rows:
                    _LOG.info("%d samples were older than they are kept", rows)
            try:
                await asyncio.wait_for(stop.wait(), EVERY_SECONDS)
            except TimeoutError:
                continue
