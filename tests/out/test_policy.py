"""Which alerts are held, gathered, silenced, repeated, slowed down, and for how long."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from collector.domain.findings import Severity
from collector.storage.deliveries import DeliveryStatus, list_channels, list_deliveries
from collector.storage.engine import Database
from collector.storage.silences import add_silence, end_silence, list_silences
from dashboard.alerts import Alerting, wants
from dashboard.outbox import Outbox
from dashboard.reminders import Reminders
from dashboard.settings import Channel
from dashboard.sinks.base import LONGEST_LIFE_SECONDS, MOST_IN_GROUP, SinkConfig
from dashboard.sinks.notice import Notice
from tests.out.channels import channel
from tests.out.conftest import webhook
from tests.out.receiver import Answer, Receiver
from tests.out.stored import finding, judge, save

NOW = 1_775_750_400.0
"""A whole number of the spans in which messages are gathered."""
URL = "https://draftscope.example.org"
ReceiverOf = Callable[..., Receiver]


class Service:
    """Judgements and the outbox on one database, at instants that the test gives."""

    def __init__(self, database: Database, *channels: Channel, quiet_until: float = 0.0) -> None:
        self.database = database
        self.alerting = Alerting(channels, URL, quiet_until)
        self.now = NOW

    def run(self, host: str = "gpu1", **options: object) -> int:
        with self.database.transaction() as connection:
            return save(connection, host=host, **options)

    def judge(self, run: int, *findings: object, after: float) -> None:
        with self.database.transaction() as connection:
            judge(connection, run, *findings, alerting=self.alerting, at=NOW + after)

    def send(self, *after: float) -> None:
        """One round of the outbox at each instant, by a new worker, as after a restart."""
        for seconds in after:
            worker = Outbox(
                self.database, self.alerting.channels, clock=lambda at=NOW + seconds: at, jitter=lambda: 0.0
            )

            async def once(worker: Outbox = worker) -> None:
                await worker.send_due()
                await worker.close()

            asyncio.run(once())

    def remind(self, after: float) -> int:
        return Reminders(self.database, self.alerting, clock=lambda: NOW + after).queue()

    def statuses(self) -> list[tuple[str, str]]:
        with self.database.reading() as connection:
            rows = sorted(list_deliveries(connection, limit=1000), key=lambda row: row.id)
        return [(row.event.removeprefix("finding."), row.status.value) for row in rows]


def events(receiver: Receiver) -> list[str]:
    return [json.loads(got.body)["type"].removeprefix("finding.") for got in receiver.got]


def ids(receiver: Receiver, kind: str = "webhook-id") -> list[str]:
    return [got.headers[kind] for got in receiver.got]


# ---- routes


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        ({}, True),
        ({"min_severity": Severity.CRITICAL}, True),
        ({"rules": ("PAY*",)}, True),
        ({"rules": ("pay001",)}, True),
        ({"rules": ("ACC*", "slower-*")}, True),
        ({"rules": ("ACC*", "FLG001")}, False),
        ({"labels": {"team": "search"}}, True),
        ({"labels": {"team": "s*"}}, True),
        ({"labels": {"team": "ads"}}, False),
        ({"labels": {"cluster": "*"}}, False),
        ({"rules": ("PAY*",), "labels": {"team": "ads"}}, False),
    ],
)
def test_a_channel_hears_of_what_it_asks_for(notice: Notice, options: dict[str, object], wanted: bool) -> None:
    assert wants(SinkConfig(name="ops", **options), notice) is wanted
    less = replace(notice, finding=replace(notice.finding, severity="info"))
    assert not wants(SinkConfig(name="ops", **options), less)


# ---- hysteresis and quiet start


def test_what_ends_before_it_was_open_long_enough_is_not_told(
    sqlite_database: Database, receiver_of: ReceiverOf
) -> None:
    receiver = receiver_of()
    service = Service(sqlite_database, webhook(receiver, open_after_seconds=60.0))
    run = service.run()
    service.judge(run, finding(), after=0)
    service.send(0, 59)
    service.judge(run, after=59.5)
    service.send(61, 1000)
    assert receiver.got == []
    assert service.statuses() == [("opened", "dropped")]
    service.judge(run, finding(), after=1000)
    service.send(1059, 1060)
    assert events(receiver) == ["opened"]


@pytest.mark.parametrize("fraction", [0.0000004, 0.0000006, 0.9999996])
def test_what_ends_at_the_instant_it_was_due_is_told(
    sqlite_database: Database, receiver_of: ReceiverOf, fraction: float
) -> None:
    receiver = receiver_of()
    service = Service(sqlite_database, webhook(receiver))
    run = service.run()
    service.judge(run, finding(), after=fraction)
    service.judge(run, after=fraction)
    service.send(1, 2)
    assert events(receiver) == ["opened", "resolved"]


def test_what_flaps_is_told_once(sqlite_database: Database, receiver_of: ReceiverOf) -> None:
    receiver = receiver_of()
    service = Service(sqlite_database, webhook(receiver, resolve_after_seconds=300.0))
    run = service.run()
    for after in range(0, 1000, 200):
        service.judge(run, finding(), after=after)
        service.send(after)
        service.judge(run, after=after + 100)
        service.send(after + 100)
    assert events(receiver) == ["opened"]
    service.send(1199, 1200)
    assert events(receiver) == ["opened", "resolved"]
    assert service.statuses() == [("opened", "sent"), *[("resolved", "dropped")] * 4, ("resolved", "sent")]


def test_after_its_own_start_the_service_is_quiet(sqlite_database: Database, receiver_of: ReceiverOf) -> None:
    receiver = receiver_of()
    service = Service(sqlite_database, webhook(receiver), quiet_until=NOW + 60)
    brief, lasting = service.run("gpu1"), service.run("gpu2")
    for run in (brief, lasting):
        service.judge(run, finding(), after=1)
    service.judge(brief, after=30)
    service.send(59)
    assert receiver.got == []
    service.send(60)
    assert events(receiver) == ["opened"]
    service.judge(lasting, after=61)
    service.send(61)
    assert events(receiver) == ["opened", "resolved"]


# ---- silences


def silence(service: Service, *, after: float, until: float, **what: object) -> int:
    with service.database.transaction() as connection:
        return add_silence(connection, at=NOW + after, until=NOW + until, **what).id


@pytest.mark.parametrize(
    ("what", "held"),
    [
        ({"rule": "PAY001"}, True),
        ({"rule": "PAY*"}, True),
        ({"rule": "slower-*"}, True),
        ({"deployment": "kimi*"}, True),
        ({"labels": {"team": "search"}}, True),
        ({"rule": "*"}, True),
        ({"rule": "ACC*"}, False),
        ({"deployment": "qwen"}, False),
        ({"run": "999"}, False),
        ({"rule": "PAY001", "labels": {"team": "ads"}}, False),
    ],
)
def test_a_silence_holds_back_what_fits(
    sqlite_database: Database, receiver_of: ReceiverOf, what: dict[str, object], held: bool
) -> None:
    receiver = receiver_of()
    service = Service(sqlite_database, webhook(receiver))
    silence(service, after=0, until=3600, **what)
    service.judge(service.run(deployment="kimi-prod"), finding(), after=1)
    service.send(1, 40, 3599)
    assert events(receiver) == ([] if held else ["opened"])
    service.send(3601)
    assert events(receiver) == ["opened"]


def test_what_ends_in_silence_is_not_told(sqlite_database: Database, receiver_of: ReceiverOf) -> None:
    receiver = receiver_of()
    service = Service(sqlite_database, webhook(receiver))
    silence(service, after=0, until=3600, rule="*")
    run = service.run()
    service.judge(run, finding(), after=1)
    service.send(1)
    service.judge(run, after=20)
    service.judge(run, finding(), after=100)
    service.send(100)
    service.judge(run, after=130.5)  # due to be looked at again, and not yet looked at
    service.send(131, 3601, 1e5)
    assert receiver.got == []
    assert {status for _, status in service.statuses()} == {"dropped"}


def test_the_end_of_what_was_told_is_told_in_silence_too(sqlite_database: Database, receiver_of: ReceiverOf) -> None:
    receiver = receiver_of()
    service = Service(sqlite_database, webhook(receiver))
    run = service.run()
    service.judge(run, finding(), after=0)
    service.send(0)
    silence(service, after=1, until=3600, rule="*")
    service.judge(run, after=2)
    service.send(2)
    assert events(receiver) == ["opened", "resolved"]


def test_a_silence_can_be_ended(sqlite_database: Database, receiver_of: ReceiverOf) -> None:
    receiver = receiver_of()
    service = Service(sqlite_database, webhook(receiver))
    number = silence(service, after=0, until=3600, rule="*", comment="maintenance")
    service.judge(service.run(), finding(), after=1)
    service.send(1)
    with sqlite_database.transaction() as connection:
        assert [(item.id, item.comment) for item in list_silences(connection, at=NOW + 2)] == [(number, "maintenance")]
        end_silence(connection, number, at=NOW + 2)
        assert list_silences(connection, at=NOW + 2) == []
    service.send(32)
    assert events(receiver) == ["opened"]


# ---- grouping


def texts(receiver: Receiver) -> list[str]:
    return [json.loads(got.body)["text"] for got in receiver.got]


def test_what_happens_together_is_told_together(database: Database, receiver_of: ReceiverOf) -> None:
    receiver = receiver_of()
    service = Service(database, channel("slack", receiver.url))
    runs = [service.run(f"gpu{n}", deployment="kimi" if n else "qwen") for n in range(4)]
    for number, run in enumerate(runs):
        service.judge(run, finding(), finding("ACC001"), after=number)
    service.send(29, 30)
    assert sorted(texts(receiver)) == ["2 opened: qwen", "6 opened: kimi"]
    service.judge(runs[1], finding("ACC001"), after=40)
    service.send(330, 359, 360)
    assert texts(receiver)[2:] == ["Resolved: Speculation makes this server 39% slower"]


def test_what_travelled_together_stays_together(sqlite_database: Database, receiver_of: ReceiverOf) -> None:
    receiver = receiver_of(Answer(500), Answer(200))
    service = Service(sqlite_database, channel("slack", receiver.url))
    service.judge(service.run("gpu1", deployment="kimi"), finding(), finding("ACC001"), after=1)
    service.send(30)
    service.judge(service.run("gpu2", deployment="kimi"), finding(), after=2)
    service.send(36)
    assert [got.body for got in receiver.got[:2]].count(receiver.got[0].body) == 2
    assert texts(receiver) == ["2 opened: kimi", "2 opened: kimi", "Warning: Speculation makes this server 39% slower"]
    with sqlite_database.reading() as connection:
        assert len({row.message_id for row in list_deliveries(connection)}) == 2


def test_a_message_tells_of_a_bounded_number_of_findings(sqlite_database: Database, receiver_of: ReceiverOf) -> None:
    receiver = receiver_of()
    service = Service(sqlite_database, channel("slack", receiver.url))
    for number in range(MOST_IN_GROUP + 5):
        service.judge(service.run(f"gpu{number}", deployment="kimi"), finding(), after=1)
    service.send(30)
    assert texts(receiver) == [f"{MOST_IN_GROUP} opened: kimi", "5 opened: kimi"]
    assert all(f"run {number + 1}" in "".join(got.body.decode() for got in receiver.got) for number in range(25))


# ---- reminders


def test_what_is_still_open_is_told_again(database: Database, receiver_of: ReceiverOf) -> None:
    receiver = receiver_of()
    service = Service(database, webhook(receiver, remind_after_hours=1.0))
    run = service.run()
    service.judge(run, finding(), after=0)
    assert service.remind(1e6) == 0  # it was not told yet
    service.send(1)
    assert service.remind(3600) == 0
    assert service.remind(3601) == 1
    assert service.remind(3602) == 0
    service.send(3602)
    later = service.run(started=5000.0, ended=5500.0, source="second.log")  # the engine was restarted meanwhile
    service.judge(later, finding(), after=4000)
    assert service.remind(7300) == 1
    service.send(7300)
    service.judge(later, after=7400)
    service.send(7400)
    assert service.remind(1e6) == 0
    assert events(receiver) == ["opened", "reminded", "reminded", "resolved"]
    assert len({json.loads(got.body)["data"]["key"] for got in receiver.got}) == 1
    assert len(set(ids(receiver))) == 4
    assert service.statuses() == [("opened", "sent"), ("reminded", "sent"), ("resolved", "sent")]
    assert json.loads(receiver.got[2].body)["data"]["run"]["id"] == str(later)


# ---- how much, and what if nobody answers


def test_no_more_messages_than_allowed(sqlite_database: Database, receiver_of: ReceiverOf) -> None:
    receiver, other = receiver_of(), receiver_of()
    service = Service(sqlite_database, webhook(receiver, most_per_minute=3), webhook(other, "other"))
    for number in range(8):
        service.judge(service.run(f"gpu{number}"), finding(), after=0)
    counts = []
    for after in (0, 1, 59, 61, 62, 122):
        service.send(after)
        counts.append(len(receiver.got))
    assert counts == [3, 3, 3, 6, 6, 8]
    assert len(other.got) == 8


def test_a_channel_that_does_not_answer_is_left_alone_and_then_tried(
    sqlite_database: Database, receiver_of: ReceiverOf
) -> None:
    receiver = receiver_of(*[Answer(500)] * 6, Answer(204))
    service = Service(sqlite_database, webhook(receiver))
    for number in range(8):
        service.judge(service.run(f"gpu{number}"), finding(), after=0)
    service.send(0, 4)
    assert len(receiver.got) == 5
    with sqlite_database.reading() as connection:
        (state,) = list_channels(connection)
    assert (state.failures_in_a_row, state.paused_until) == (5, NOW + 5)
    service.send(5)
    assert len(receiver.got) == 6  # one message, to see
    service.send(19, 20, 21)
    assert len(set(ids(receiver))) == 8
    with sqlite_database.reading() as connection:
        (state,) = list_channels(connection)
        assert {row.status for row in list_deliveries(connection)} == {DeliveryStatus.SENT}
    assert (state.failures_in_a_row, state.paused_until) == (0, None)


def test_who_asks_to_wait_is_left_alone_as_a_whole(sqlite_database: Database, receiver_of: ReceiverOf) -> None:
    receiver = receiver_of(Answer(429, {"Retry-After": "120"}), Answer(204))
    service = Service(sqlite_database, webhook(receiver))
    for number in range(3):
        service.judge(service.run(f"gpu{number}"), finding(), after=0)
    service.send(0, 60, 119)
    assert len(receiver.got) == 1
    service.send(120)
    assert len(set(ids(receiver))) == 3


def test_what_waited_too_long_is_given_up(sqlite_database: Database, receiver_of: ReceiverOf) -> None:
    receiver = receiver_of()
    service = Service(sqlite_database, webhook(receiver))
    service.judge(service.run(), finding(), after=0)
    service.send(LONGEST_LIFE_SECONDS + 1)
    assert receiver.got == []
    assert service.statuses() == [("opened", "failed")]


# ---- the test message


def send_test(service: Service, channel: Channel) -> tuple[str, str]:
    async def once() -> tuple[str, str]:
        worker = Outbox(service.database, [channel], clock=lambda: NOW)
        try:
            made = await worker.send_test(channel, URL)
        finally:
            await worker.close()
        return made.status.value, made.answer or made.last_error

    return asyncio.run(once())


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [(Answer(200), ("sent", "200 OK")), (Answer(500), ("failed", "the receiver answered 500 Internal Server Error"))],
)
@pytest.mark.parametrize("kind", ["webhook", "slack", "pagerduty", "alertmanager"])
def test_a_channel_can_be_tried(
    sqlite_database: Database, receiver_of: ReceiverOf, kind: str, answer: Answer, outcome: tuple[str, str]
) -> None:
    receiver = receiver_of(answer)
    tried = channel(kind, receiver.url)
    service = Service(sqlite_database, tried)
    assert send_test(service, tried) == outcome
    service.send(0, 1e6)
    assert len(receiver.got) == 1
    assert "draftscope can reach this channel" in receiver.got[0].body.decode()
