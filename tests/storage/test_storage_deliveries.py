from __future__ import annotations

import pytest
from sqlalchemy import Connection

from collector.domain.errors import StorageError
from collector.domain.findings import Confidence, Finding, Severity
from collector.domain.runs import RunRecord
from collector.storage.deliveries import (
    DeliveryStatus,
    due,
    enqueue,
    list_channels,
    list_deliveries,
    mark_failed,
    mark_sent,
    save_channel,
)
from collector.storage.engine import Database
from collector.storage.findings import Judgement, load_findings, save_judgement
from collector.storage.runs import save_run
from collector.storage.sources import source_at


def a_finding(connection: Connection) -> int:
    source = source_at(connection, "input.log", at=1.0)
    run_id = save_run(connection, RunRecord("sglang", "input.log"), source_id=source, at=1.0)
    found = Finding("PAY001", "slower-than-baseline", Severity.WARNING, Confidence.HIGH, "slower", "it costs")
    return save_judgement(connection, run_id, Judgement(findings=(found,)), at=1.0).opened[0].id


def test_a_message_is_tried_again_until_it_is_accepted(database: Database) -> None:
    with database.transaction() as connection:
        save_channel(connection, "ops", "webhook")
        enqueue(connection, "ops", "opened", {"figure": 1.8}, at=10.0)
        assert due(connection, at=9.9) == []
        (first,) = due(connection, at=10.0)
        mark_failed(connection, [first], "503 Service Unavailable", next_try=40.0, at=11.0)
        assert due(connection, at=39.0) == []
        (second,) = due(connection, at=40.0)
        assert (second.message_id, second.attempts, second.payload) == (first.message_id, 1, {"figure": 1.8})
        assert list_channels(connection)[0].last_error == "503 Service Unavailable"
        mark_sent(connection, [second], "204 No Content", at=41.0)
        assert due(connection, at=1e9) == []
        (done,) = list_deliveries(connection, status=DeliveryStatus.SENT)
        assert (done.attempts, done.finished_at, done.last_error, done.answer) == (2, 41.0, "", "204 No Content")
        (channel,) = list_channels(connection)
        assert (channel.kind, channel.last_success, channel.last_failure, channel.last_error) == (
            "webhook",
            41.0,
            11.0,
            "",
        )


def test_a_message_given_up_is_kept_with_its_reason(database: Database) -> None:
    with database.transaction() as connection:
        save_channel(connection, "ops", "webhook")
        enqueue(connection, "ops", "test", {}, at=1.0)
        mark_failed(connection, due(connection, at=1.0), "410 Gone", next_try=None, at=2.0)
        assert due(connection, at=1e9) == []
        (given_up,) = list_deliveries(connection, channel="ops")
        assert (given_up.status, given_up.last_error, given_up.finished_at) == (DeliveryStatus.FAILED, "410 Gone", 2.0)


def test_resolved_waits_for_opened(database: Database) -> None:
    with database.transaction() as connection:
        finding = a_finding(connection)
        for name in ("ops", "chat"):
            save_channel(connection, name, "webhook")
        enqueue(connection, "ops", "opened", {}, finding_id=finding, at=1.0)
        enqueue(connection, "ops", "resolved", {}, finding_id=finding, at=2.0)
        enqueue(connection, "ops", "test", {}, at=2.0)
        enqueue(connection, "chat", "resolved", {}, finding_id=finding, at=2.0)
        opened, *others = due(connection, at=3.0)
        assert [(item.channel, item.event) for item in others] == [("ops", "test"), ("chat", "resolved")]
        mark_failed(connection, [opened], "timeout", next_try=60.0, at=3.0)
        assert "resolved" not in [item.event for item in due(connection, at=3.0) if item.channel == "ops"]
        mark_sent(connection, due(connection, at=60.0)[:1], "", at=60.0)
        assert "resolved" in [item.event for item in due(connection, at=60.0) if item.channel == "ops"]
        assert [item.event for item in list_deliveries(connection, finding_id=finding)] == [
            "resolved",
            "resolved",
            "opened",
        ]


def test_a_message_is_queued_exactly_if_its_finding_is_stored(database: Database) -> None:
    def judge_and_queue(connection: Connection, channel: str) -> None:
        enqueue(connection, channel, "opened", {}, finding_id=a_finding(connection), at=1.0)

    with database.transaction() as connection:
        save_channel(connection, "ops", "webhook")
    with pytest.raises(StorageError), database.transaction() as connection:
        judge_and_queue(connection, "unknown")
    with database.reading() as connection:
        assert (load_findings(connection), list_deliveries(connection)) == ([], [])
    with database.transaction() as connection:
        judge_and_queue(connection, "ops")
    with database.reading() as connection:
        assert len(load_findings(connection)) == len(due(connection, at=1.0)) == 1
