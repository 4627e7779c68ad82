"""Stores what senders of logs bring, beside the web service that takes it."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import Final

from collector.domain.errors import StorageError
from collector.pushed_logs import PushedLogs

STORE_SECONDS: Final = 1.0
"""Between two looks at what came."""
_LOG: Final = logging.getLogger(__name__)


class Pushing:
    """Works until told to stop."""

    def __init__(self, pushed: PushedLogs) -> None:
        self._pushed = pushed

    async def run(self, stop: asyncio.Event) -> None:
        """Store what came, again and again, and once more in the end."""
        told, more = "", False
        while not stop.is_set():
            if not more:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(stop.wait(), STORE_SECONDS)
            try:
                more = await asyncio.to_thread(self._pushed.store)
            except StorageError as error:
                more = False
                if str(error) != told:
                    _LOG.warning("pushed logs: %s", error)
                told = str(error)
            else:
                told = ""
        self._pushed.close()
