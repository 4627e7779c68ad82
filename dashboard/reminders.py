"""Reminders: what is still open is told again, to channels that ask for it."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable
from typing import Final

from sqlalchemy import Connection

from collector.domain.errors import StorageError
from collector.storage.deliveries import enqueue, forget, told_before
from collector.storage.engine import Database
from dashboard.alerts import Alerting, as_told, notice_of, open_subjects
from dashboard.settings import Channel
from dashboard.sinks.notice import NoticeType

SWEEP_SECONDS: Final = 60.0
_TOLD: Final = (NoticeType.OPENED.value, NoticeType.REMINDED.value)
_LOG: Final = logging.getLogger(__name__)


class Reminders:
    """The worker that queues them."""

    def __init__(self, database: Database, alerting: Alerting, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._alerting = alerting
        self._clock = clock

    async def run(self, stop: asyncio.Event) -> None:
        """Queue until told to stop."""
        while not stop.is_set():
            try:
                await asyncio.to_thread(self.queue)
            except StorageError as error:
                _LOG.warning("reminders wait for the database: %s", error)
            try:
                await asyncio.wait_for(stop.wait(), SWEEP_SECONDS)
            except TimeoutError:
                continue

    def queue(self) -> int:
        """Queue a reminder of everything that is open and was last told long enough ago; returns how many."""
        wanting = [channel for channel in self._alerting.channels if channel.config.remind_after_hours]
        if not wanting:
            return 0
        with self._database.transaction() as connection:
            return sum(self._queue(connection, channel) for channel in wanting)

    def _queue(self, connection: Connection, channel: Channel) -> int:
        now, name = self._clock(), channel.config.name
        queued = 0
        waiting = told_before(connection, name, _TOLD, now - 3600 * channel.config.remind_after_hours)
        still_open = open_subjects(connection) if waiting else {}
        for told in waiting:
            if told.subject not in still_open:
                continue
            run, stored = still_open[told.subject]
            notice = notice_of(run, stored, NoticeType.REMINDED, self._alerting.public_url, at=now)
            document = as_told(notice, told.payload).document()
            enqueue(
                connection, name, notice.type.value, document,
                finding_id=stored.id, subject=told.subject, hold_until=now, at=now,
            )  # fmt: skip
            if told.event == NoticeType.REMINDED.value:
                forget(connection, told)
            queued += 1
        return queued
