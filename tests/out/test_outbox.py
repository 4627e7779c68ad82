"""Delivery: at least once, in order, through failures, restarts and kills."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from standardwebhooks import Webhook

from collector.domain.findings import Severity
from collector.storage.deliveries import DeliveryStatus, list_channels, list_deliveries
from collector.storage.engine import Database, open_database
from dashboard import outbox as outbox_module
from dashboard.alerts import Alerting
from dashboard.outbox import Outbox
from dashboard.settings import Channel
from dashboard.sinks import base
from dashboard.sinks.base import MOST_ATTEMPTS
from tests.out.conftest import SIGNING, webhook
from tests.out.receiver import Answer, Receiver
from tests.out.stored import finding, judge, save

ROOT = Path(__file__).parents[2]
ReceiverOf = Callable[..., Receiver]


class Clock:
    """The present instant, moved by hand."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock(time.time())


def open_finding(database: Database, channels: Sequence[Channel], *, at: float, **others: object) -> int:
    with database.transaction() as connection:
        run = save(connection, **others)
        judge(connection, run, finding(), alerting=Alerting(tuple(channels), "https://x.example"), at=at)
    return run


def resolve_finding(database: Database, run: int, channels: Sequence[Channel], *, at: float) -> None:
    with database.transaction() as connection:
        judge(connection, run, alerting=Alerting(tuple(channels), "https://x.example"), at=at)


def rounds(
    database: Database, channels: Sequence[Channel], clock: Clock, moments: Sequence[float] = (0.0,)
) -> list[int]:
    """How many attempts were made at each moment after the present; a new worker each time, as after restarts."""
    start = clock.now
    made = []
    for moment in moments:
        clock.now = start + moment
        worker = Outbox(database, channels, clock=clock, jitter=lambda: 0.0)

        async def once(worker: Outbox = worker) -> int:
            try:
                return await worker.send_due()
            finally:
                await worker.close()

        made.append(asyncio.run(once()))
    return made


def test_two_failures_then_acknowledged_then_resolved(
    database: Database, receiver_of: ReceiverOf, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(base, "TIME_LIMIT_SECONDS", 2.0)
    receiver = receiver_of(Answer(500), Answer(silent_seconds=4.0), Answer(503, {"Retry-After": "40"}), Answer(204))
    channels = [webhook(receiver)]
    run = open_finding(database, channels, at=clock.now)
    resolve_finding(database, run, channels, at=clock.now)  # before anything was accepted
    assert rounds(database, channels, clock, [0.0, 4.9, 5.1]) == [1, 0, 1]
    assert rounds(database, channels, clock, [14.0, 16.0]) == [0, 1]
    assert rounds(database, channels, clock, [39.0, 44.0, 46.0]) == [0, 0, 1]
    assert rounds(database, channels, clock) == [1]
    assert rounds(database, channels, clock, [1e6]) == [0]
    *opened, resolved = receiver.got
    assert len(opened) == 4
    assert len({got.headers["webhook-id"] for got in opened}) == 1
    assert len({got.body for got in opened}) == 1
    assert resolved.headers["webhook-id"] != opened[0].headers["webhook-id"]
    for got in receiver.got:
        document = Webhook(SIGNING).verify(got.body, got.headers)
        assert document["type"] == ("finding.resolved" if got is resolved else "finding.opened")
    with database.reading() as connection:
        messages = list_deliveries(connection)
        assert [(m.status, m.attempts) for m in messages] == [(DeliveryStatus.SENT, 1), (DeliveryStatus.SENT, 4)]
        (channel,) = list_channels(connection)
    assert (channel.last_error, channel.last_success is not None) == ("", True)


def test_a_permanent_refusal_is_given_up_and_the_next_message_goes_out(
    database: Database, receiver_of: ReceiverOf, clock: Clock
) -> None:
    receiver = receiver_of(Answer(401), Answer(204))
    channels = [webhook(receiver)]
    run = open_finding(database, channels, at=clock.now)
    resolve_finding(database, run, channels, at=clock.now)
    assert rounds(database, channels, clock, [0, 0, 1e6]) == [1, 1, 0]
    with database.reading() as connection:
        resolved, opened = list_deliveries(connection)
    assert (opened.status, opened.last_error) == (DeliveryStatus.FAILED, "the receiver answered 401 Unauthorized")
    assert resolved.status is DeliveryStatus.SENT


def test_a_message_is_given_up_after_enough_attempts(database: Database, receiver_of: ReceiverOf, clock: Clock) -> None:
    receiver = receiver_of(Answer(500))
    channels = [webhook(receiver)]
    open_finding(database, channels, at=clock.now)
    assert (
        rounds(database, channels, clock, [4000.0 * i for i in range(MOST_ATTEMPTS + 3)])
        == [1] * MOST_ATTEMPTS + [0] * 3
    )
    with database.reading() as connection:
        (message,) = list_deliveries(connection)
    assert (message.status, message.attempts) == (DeliveryStatus.FAILED, MOST_ATTEMPTS)
    assert message.last_error == "the receiver answered 500 Internal Server Error"


def test_a_channel_that_fails_does_not_hold_up_the_others(
    database: Database, receiver_of: ReceiverOf, clock: Clock
) -> None:
    broken, fine = receiver_of(Answer(reset=True)), receiver_of()
    channels = [webhook(broken, "broken"), webhook(fine, "fine", min_severity=Severity.INFO)]
    open_finding(database, channels, at=clock.now)
    assert rounds(database, channels, clock) == [2]
    assert (len(broken.got), len(fine.got)) == (1, 1)
    with database.reading() as connection:
        status = {message.channel: message.status for message in list_deliveries(connection)}
    assert status == {"broken": DeliveryStatus.PENDING, "fine": DeliveryStatus.SENT}


def test_messages_to_a_channel_that_was_removed_are_given_up(
    database: Database, receiver_of: ReceiverOf, clock: Clock
) -> None:
    receiver = receiver_of()
    open_finding(database, [webhook(receiver)], at=clock.now)
    assert rounds(database, [], clock) == [0]
    with database.reading() as connection:
        (message,) = list_deliveries(connection)
    assert (message.status, "not in the settings" in message.last_error) == (DeliveryStatus.FAILED, True)
    assert receiver.got == []


def test_two_workers_share_the_work(database_url: str, receiver_of: ReceiverOf, clock: Clock) -> None:
    receiver = receiver_of()
    channels = [webhook(receiver)]
    with open_database(database_url, migrate=True) as first, open_database(database_url) as second:
        for number in range(24):
            open_finding(first, channels, at=clock.now, host=f"gpu{number}")
        workers = [Outbox(database, channels, clock=clock) for database in (first, second)]

        async def empty(worker: Outbox) -> None:
            while await worker.send_due():
                pass
            await worker.close()

        async def both() -> None:
            await asyncio.gather(*map(empty, workers))

        asyncio.run(both())
    ids = [got.headers["webhook-id"] for got in receiver.got]
    assert len(ids) == len(set(ids)) == 24


@pytest.fixture
def killed_while_sending(database_url: str, receiver_of: ReceiverOf, clock: Clock) -> tuple[str, Receiver]:
    """A worker in a process of its own that is killed while the receiver has its request and has not answered."""
    receiver = receiver_of(Answer(silent_seconds=1.0), Answer(204))
    channels = [webhook(receiver)]
    with open_database(database_url, migrate=True) as database:
        open_finding(database, channels, at=clock.now)
    script = f"""
import asyncio
from collector.storage.engine import open_database
from dashboard.masked import Secret, SecretUrl
from dashboard.outbox import Outbox
from dashboard.settings import Channel
from dashboard.sinks.webhook import WebhookConfig
config = WebhookConfig(name="ops", url=SecretUrl({receiver.url!r}), secret=Secret({SIGNING!r}))
asyncio.run(Outbox(open_database({database_url!r}), [Channel("webhook", config)]).send_due())
"""
    process = subprocess.Popen([sys.executable, "-c", script], cwd=ROOT)
    try:
        assert receiver.arrivals.acquire(timeout=30)
        os.kill(process.pid, signal.SIGKILL)
    finally:
        process.kill()
        process.wait()
    return database_url, receiver


def test_a_kill_while_sending_loses_nothing(killed_while_sending: tuple[str, Receiver], clock: Clock) -> None:
    url, receiver = killed_while_sending
    with open_database(url) as database:
        assert rounds(database, [webhook(receiver)], clock, [0, outbox_module._CLAIM_SECONDS + 60]) == [0, 1]
        with database.reading() as connection:
            (message,) = list_deliveries(connection)
    assert message.status is DeliveryStatus.SENT
    assert [got.headers["webhook-id"] for got in receiver.got] == [message.message_id] * 2
    assert len({json.dumps(json.loads(got.body)) for got in receiver.got}) == 1


def test_the_worker_runs_until_told_to_stop_and_names_no_secret(
    sqlite_database: Database, receiver_of: ReceiverOf, caplog: pytest.LogCaptureFixture
) -> None:
    receiver = receiver_of(Answer(404), Answer(204))
    channels = [webhook(receiver)]
    for host in ("gpu1", "gpu2"):
        open_finding(sqlite_database, channels, at=time.time() - 1, host=host)

    async def work() -> None:
        stop = asyncio.Event()
        worker = asyncio.create_task(Outbox(sqlite_database, channels).run(stop))
        for _ in range(2):
            await asyncio.to_thread(receiver.arrivals.acquire, timeout=30)
        stop.set()
        await worker

    with caplog.at_level(logging.DEBUG):
        asyncio.run(asyncio.wait_for(work(), 30))
    assert "the receiver answered 404 Not Found; it is given up" in caplog.text
    assert not [word for word in ("PATHSECRET", "QUERYSECRET", SIGNING) if word in caplog.text]
