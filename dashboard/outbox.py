"""Sends what is queued: each message at least once, in the order of its subject, until it is accepted or given up."""

from __future__ import annotations

import asyncio
import json
import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from sqlalchemy import Connection

from collector.domain.errors import StorageError
from collector.storage.deliveries import (
    UNFINISHED,
    Delivery,
    claim,
    companions,
    drop,
    due,
    enqueue,
    give_up,
    held_until,
    hold,
    last_told,
    list_channels,
    load_delivery,
    mark_failed,
    mark_sent,
    put_back,
    release,
    save_channel,
    tried_since,
)
from collector.storage.deliveries import (
    Channel as ChannelState,
)
from collector.storage.engine import Database
from collector.storage.silences import list_silences
from dashboard.alerts import silenced_by, test_notice
from dashboard.settings import Channel
from dashboard.sinks import sink_kinds
from dashboard.sinks.base import (
    FAILURES_TO_PAUSE,
    LARGEST_BODY,
    LONGEST_LIFE_SECONDS,
    LONGEST_WAIT_SECONDS,
    MOST_ATTEMPTS,
    MOST_IN_GROUP,
    TIME_LIMIT_SECONDS,
    SendError,
    Sink,
    retry_delay,
)
from dashboard.sinks.notice import Notice, NoticeType

POLL_SECONDS: Final = 1.0
MOST_AT_ONCE: Final = 16
"""Messages that a channel is given together. All are tried, at worst one after the other, before others may take them."""
_CLAIM_SECONDS: Final = MOST_AT_ONCE * TIME_LIMIT_SECONDS + 30
_PAUSE_AFTER_ERROR_SECONDS: Final = 10.0
_SILENCE_SECONDS: Final = 30.0
"""How soon the end of a silence is noticed."""

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
        work = [self._send_all(self._sinks[name], messages) for name, messages in claimed.items()]
        outcomes = await asyncio.gather(*work, return_exceptions=True)  # each channel goes on to its end
        for outcome in outcomes:
            if isinstance(outcome, BaseException):
                raise outcome
        return sum(outcome for outcome in outcomes if isinstance(outcome, int))

    async def close(self) -> None:
        """Close the connections of all channels."""
        for sink in self._sinks.values():
            await sink.close()

    def _claim(self) -> dict[str, list[list[Delivery]]]:
        """Messages to send by channel, each made of the deliveries that travel together."""
        now = self._clock()
        with self._database.reading() as connection:
            if not due(connection, at=now, limit=1) and not held_until(connection, at=now, limit=1):
                return {}
        with self._database.transaction() as connection:
            give_up(connection, "the channel is not in the settings any more", at=now, besides=self._sinks)
            give_up(connection, "it waited too long", at=now, before=now - LONGEST_LIFE_SECONDS)
            _release(connection, at=now)
            states = {state.name: state for state in list_channels(connection)}
            claimed = {
                name: self._messages(connection, sink, states[name], now)
                for name, sink in self._sinks.items()
                if name in states
            }
            for messages in claimed.values():
                claim(connection, messages, at=now, until=now + _CLAIM_SECONDS)
        return {name: messages for name, messages in claimed.items() if messages}

    def _messages(self, connection: Connection, sink: Sink, state: ChannelState, now: float) -> list[list[Delivery]]:
        """What a channel may be sent now: nothing while it is paused, one message to try it, else up to its limit."""
        if state.paused_until is not None and state.paused_until > now:
            return []
        most = min(MOST_AT_ONCE, sink.config.most_per_minute - tried_since(connection, state.name, now - 60.0))
        if state.failures_in_a_row >= FAILURES_TO_PAUSE:
            most = min(most, 1)
        if most <= 0:
            return []
        waiting = due(connection, at=now, channel=state.name, limit=most * (MOST_IN_GROUP if sink.groups else 1))
        return _grouped(companions(connection, waiting), together=sink.groups)[:most]

    async def _send_all(self, sink: Sink, messages: Sequence[Sequence[Delivery]]) -> int:
        """Try messages one after the other; returns how many were tried before the channel had to be left alone."""
        for number, deliveries in enumerate(messages):
            answer, error = await self._attempt(sink, deliveries)
            paused_until = await asyncio.to_thread(self._note, deliveries, answer, error)
            if paused_until is not None:
                rest = [delivery.id for message in messages[number + 1 :] for delivery in message]
                await asyncio.to_thread(self._put_back, rest, paused_until)
                return number + 1
        return len(messages)

    async def _attempt(self, sink: Sink, deliveries: Sequence[Delivery]) -> tuple[str, SendError | None]:
        notices = [Notice.from_document(delivery.payload) for delivery in deliveries]
        try:
            return await sink.send(deliveries[0].message_id, notices, at=self._clock()), None
        except SendError as error:
            return "", error
        except Exception as error:  # noqa: BLE001 - a fault in one channel is noted, and the others go on
            # Its words may hold an address or a secret.
            return "", SendError(f"a fault of draftscope ({type(error).__name__})", permanent=False)

    def _note(
        self, deliveries: Sequence[Delivery], answer: str, error: SendError | None, *, last: bool = False
    ) -> float | None:
        """Note how an attempt went; returns until when the channel is to be left alone, if so."""
        now = self._clock()
        first = deliveries[0]
        attempt = first.attempts + 1
        with self._database.transaction() as connection:
            if error is None:
                mark_sent(connection, deliveries, answer, at=now)
                _LOG.info("alert %s reached %s at attempt %d", first.message_id, first.channel, attempt)
                return None
            given_up = last or error.permanent or attempt >= MOST_ATTEMPTS
            wait = retry_delay(attempt, self._jitter(), error.retry_after)
            paused_until = mark_failed(
                connection, deliveries, str(error), next_try=None if given_up else now + wait, at=now,
                pause=lambda failures: self._pause(failures, error, now),
            )  # fmt: skip
        if last:  # whoever asked is told
            return paused_until
        outcome = "is given up" if given_up else f"is tried again in {wait:.0f} s"
        _LOG.warning(
            "alert %s did not reach %s at attempt %d: %s; it %s",
            first.message_id,
            first.channel,
            attempt,
            error,
            outcome,
        )
        return paused_until

    def _pause(self, failures: int, error: SendError, now: float) -> float | None:
        """Until when a channel is left alone: as long as it asks for, and ever longer while it does not answer."""
        if error.retry_after:
            return now + min(error.retry_after, LONGEST_WAIT_SECONDS)
        if error.permanent or failures < FAILURES_TO_PAUSE:
            return None
        return now + retry_delay(failures - FAILURES_TO_PAUSE + 1, self._jitter())

    def _put_back(self, ids: Iterable[int], next_try: float) -> None:
        with self._database.transaction() as connection:
            put_back(connection, ids, next_try=next_try)

    async def send_test(self, channel: Channel, public_url: str) -> Delivery:
        """Try a channel with one message, now and only once; returns how it went."""
        name = channel.config.name
        deliveries = await asyncio.to_thread(self._queue_test, name, channel.kind, public_url)
        answer, error = await self._attempt(self._sinks[name], deliveries)
        await asyncio.to_thread(lambda: self._note(deliveries, answer, error, last=True))
        with self._database.reading() as connection:
            return load_delivery(connection, deliveries[0].id)

    def _queue_test(self, name: str, kind: str, public_url: str) -> list[Delivery]:
        now = self._clock()
        with self._database.transaction() as connection:
            save_channel(connection, name, kind)
            document = test_notice(public_url, key=f"test-{name}", at=now).document()
            made = load_delivery(connection, enqueue(connection, name, NoticeType.TEST.value, document, at=now))
            claim(connection, [[made]], at=now, until=now + _CLAIM_SECONDS)
        return [made]


def _release(connection: Connection, *, at: float) -> None:
    """Let go of what was held long enough, unless a silence keeps it back; what ended in silence is not told at all."""
    silences = list_silences(connection, at=at)
    ready: dict[int, Delivery] = {delivery.id: delivery for delivery in held_until(connection, at=at)}
    for delivery in list(ready.values()):
        silence = None if delivery.event == NoticeType.RESOLVED.value else silenced_by(silences, delivery.payload)
        if silence is None:
            continue
        del ready[delivery.id]
        latest = last_told(connection, delivery.channel, delivery.subject)
        if latest is not None and latest.event == NoticeType.RESOLVED.value:
            both = delivery.event == NoticeType.OPENED.value and latest.status.value in UNFINISHED
            drop(connection, [delivery.id, latest.id] if both else [delivery.id], f"silence {silence.id}", at=at)
            if both:
                ready.pop(latest.id, None)
        else:
            until = min(silence.ends_at, at + _SILENCE_SECONDS)
            hold(connection, delivery, until=until, reason=f"silence {silence.id}")
    release(connection, list(ready), at=at)


def _grouped(deliveries: Sequence[Delivery], *, together: bool) -> list[list[Delivery]]:
    """Deliveries as messages: what travelled together before stays so, and what is new is gathered by deployment."""
    messages: dict[str, list[Delivery]] = {}
    for delivery in deliveries:
        messages.setdefault(delivery.message_id, []).append(delivery)
    if not together:
        return list(messages.values())
    gathered: list[list[Delivery]] = []
    open_groups: dict[tuple[str, str], tuple[list[Delivery], int]] = {}
    for message in messages.values():
        first = message[0]
        if len(message) > 1 or first.tried_at is not None or first.event == NoticeType.TEST.value:
            gathered.append(message)
            continue
        key = (first.channel, first.payload["data"]["deployment"])
        size = len(json.dumps(first.payload, ensure_ascii=False).encode())
        group, filled = open_groups.get(key, ([], LARGEST_BODY))
        if len(group) >= MOST_IN_GROUP or filled + size > LARGEST_BODY // 2:
            group, filled = [], 0
            gathered.append(group)
        group.append(first)
        open_groups[key] = (group, filled + size)
    return gathered


async def _wait(stop: asyncio.Event, seconds: float) -> None:
    """Until told to stop, at most these seconds."""
    try:
        await asyncio.wait_for(stop.wait(), seconds)
    except TimeoutError:
        return
