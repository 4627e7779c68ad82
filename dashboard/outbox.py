"""Sends what is queued: each message at least once, in the order of its subject, until it is accepted or given up."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from collector.domain.errors import StorageError
from collector.storage.deliveries import Delivery, claim, due, mark_failed, mark_sent
from collector.storage.engine import Database
from dashboard.settings import Channel
from dashboard.sinks import sink_kinds
from dashboard.sinks.base import MOST_ATTEMPTS, TIME_LIMIT_SECONDS, SendError, Sink, retry_delay
from dashboard.sinks.notice import Notice

POLL_SECONDS: Final = 1.0
MOST_AT_ONCE: Final = 16
"""Messages taken together. All of them are tried, at worst one after the other, before others may take them."""
_CLAIM_SECONDS: Final = MOST_AT_ONCE * TIME_LIMIT_SECONDS + 30
_PAUSE_AFTER_ERROR_SECONDS: Final = 10.0

_LOG: Final = logging.getLogger(__name__)


class Outbox:
    """The worker that empties the outbox. Several processes may each run one on the same database."""

    def __init__(
        self,
        database: Database,
        channels: Sequence[Channel],
        *,
        clock: Callable[[], float] = time.time,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        """``jitter`` gives numbers between 0 and 1 that spread retries."""
        self._database = database
        self._sinks: Mapping[str, Sink] = {
            channel.config.name: sink_kinds()[channel.kind](channel.config) for channel in channels
        }
        self._clock = clock
        self._jitter = jitter

    async def run(self, stop: asyncio.Event) -> None:
        """Send until told to stop; a database that does not answer is asked again later."""
        try:
            while not stop.is_set():
                pause = POLL_SECONDS
                try:
                    if await self.send_due():
                        continue
                except StorageError as error:
                    _LOG.warning("alerts wait for the database: %s", error)
                    pause = _PAUSE_AFTER_ERROR_SECONDS
                except Exception:  # noqa: BLE001 - logged with its traceback
                    _LOG.exception("alerts could not be sent: a fault of draftscope")
                    pause = _PAUSE_AFTER_ERROR_SECONDS
                await _wait(stop, pause)
        finally:
            await self.close()

    async def send_due(self) -> int:
        """One attempt for each of the messages that are due, the channels at the same time; returns how many."""
        claimed = await asyncio.to_thread(self._claim)
        by_channel: dict[str, list[Delivery]] = {}
        for delivery in claimed:
            by_channel.setdefault(delivery.channel, []).append(delivery)
        work = [self._send_all(self._sinks.get(name), deliveries) for name, deliveries in by_channel.items()]
        outcomes = await asyncio.gather(*work, return_exceptions=True)  # each channel goes on to its end
        for outcome in outcomes:
            if outcome is not None:
                raise outcome
        return len(claimed)

    async def close(self) -> None:
        """Close the connections of all channels."""
        for sink in self._sinks.values():
            await sink.close()

    def _claim(self) -> list[Delivery]:
        now = self._clock()
        with self._database.reading() as connection:
            if not due(connection, at=now, limit=1):
                return []
        with self._database.transaction() as connection:
            return claim(connection, at=now, until=now + _CLAIM_SECONDS, limit=MOST_AT_ONCE)

    async def _send_all(self, sink: Sink | None, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            error = await self._attempt(sink, delivery)
            await asyncio.to_thread(self._note, delivery, error)

    async def _attempt(self, sink: Sink | None, delivery: Delivery) -> SendError | None:
        if sink is None:
            return SendError("the channel is not in the settings any more", permanent=True)
        try:
            await sink.send(delivery.message_id, [Notice.from_document(delivery.payload)], at=self._clock())
        except SendError as error:
            return error
        except Exception as error:  # noqa: BLE001 - a fault in one channel is noted, and the others go on
            # Its words may hold an address or a secret.
            return SendError(f"a fault of draftscope ({type(error).__name__})", permanent=False)
        return None

    def _note(self, delivery: Delivery, error: SendError | None) -> None:
        now = self._clock()
        attempt = delivery.attempts + 1
        with self._database.transaction() as connection:
            if error is None:
                mark_sent(connection, delivery, at=now)
                _LOG.info("alert %s reached %s at attempt %d", delivery.message_id, delivery.channel, attempt)
                return
            given_up = error.permanent or attempt >= MOST_ATTEMPTS
            wait = retry_delay(attempt, self._jitter(), error.retry_after)
            mark_failed(connection, delivery, str(error), next_try=None if given_up else now + wait, at=now)
        outcome = "is given up" if given_up else f"is tried again in {wait:.0f} s"
        _LOG.warning(
            "alert %s did not reach %s at attempt %d: %s; it %s",
            delivery.message_id, delivery.channel, attempt, error, outcome,
        )  # fmt: skip


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    """Until told to stop, at most these seconds."""
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return
