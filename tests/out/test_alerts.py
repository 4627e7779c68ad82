"""Which changes of findings are told, and to whom."""

from __future__ import annotations

import pytest
from sqlalchemy import Connection

from collector.domain.findings import Severity
from collector.storage.deliveries import Delivery, due, list_channels, list_deliveries, mark_failed, mark_sent
from collector.storage.engine import Database
from dashboard.alerts import Alerting
from dashboard.masked import Secret, SecretUrl
from dashboard.outbox import _release
from dashboard.settings import Channel
from dashboard.sinks.webhook import WebhookConfig
from tests.out.conftest import SIGNING
from tests.out.stored import finding, judge, save

URL = "https://draftscope.example.org"


def channel(name: str, severity: Severity = Severity.WARNING, **options: object) -> Channel:
    url = SecretUrl("https://hooks.example.org/PATHSECRET")
    config = WebhookConfig(
        name=name, url=url, secret=Secret(SIGNING), min_severity=severity, resolve_after_seconds=0.0, **options
    )
    return Channel("webhook", config)


@pytest.fixture
def alerting() -> Alerting:
    return Alerting((channel("all", Severity.INFO), channel("ops"), channel("pager", Severity.CRITICAL)), URL)


def released(connection: Connection, *, at: float) -> list[Delivery]:
    """What would be sent now."""
    _release(connection, at=at)
    return due(connection, at=at)


def told(database: Database) -> list[tuple[str, str, str]]:
    """Channel, event and severity of all messages in their order."""
    with database.reading() as connection:
        messages = sorted(list_deliveries(connection), key=lambda item: item.id)
    return [(m.channel, m.event, m.payload["data"]["finding"]["severity"]) for m in messages]


def test_a_finding_is_told_once_until_it_is_gone(database: Database, alerting: Alerting) -> None:
    with database.transaction() as connection:
        run = save(connection)
        for at in (2000.0, 2001.0):
            judge(connection, run, finding(), alerting=alerting, at=at)
        judge(connection, run, alerting=alerting, at=2002.0)
        judge(connection, run, alerting=alerting, at=2003.0)
        judge(connection, run, finding(), alerting=alerting, at=2004.0)
    both = [("all", "warning"), ("ops", "warning")]
    events = ["finding.opened", "finding.resolved", "finding.opened"]
    assert told(database) == [(name, event, severity) for event in events for name, severity in both]
    with database.reading() as connection:
        assert [(item.name, item.kind) for item in list_channels(connection)] == [
            (name, "webhook") for name in ("all", "ops", "pager")
        ]


def test_the_message_says_what_where_and_how_to_get_there(database: Database, alerting: Alerting) -> None:
    with database.transaction() as connection:
        run = save(connection, deployment="kimi-prod")
        judge(connection, run, finding(), alerting=alerting, at=2000.25)
        judge(connection, run, alerting=alerting, at=2001.0)
        resolved, opened = (item.payload for item in list_deliveries(connection, channel="ops"))
    assert opened["timestamp"] == "1970-01-01T00:33:20.250Z"
    data = opened["data"]
    assert (data["deployment"], data["labels"]) == ("kimi-prod", {"team": "search"})
    assert data["run"] == {
        "id": str(run),
        "engine": "sglang",
        "engine_version": "0.5.10",
        "method": "eagle3",
        "model": "Kimi-K2.5",
        "draft": "kimi-k25-eagle3",
        "source": "input.log",
        "started_at": "1970-01-01T00:16:40.000Z",
    }
    assert (data["finding"]["rule"], data["finding"]["values"]) == ("PAY001", {"speedup": 0.609})
    assert (data["link"], resolved["data"]["link"]) == (f"{URL}/runs/{run}#PAY001", f"{URL}/runs/{run}")
    assert data["key"] == resolved["data"]["key"]


def test_a_finding_that_becomes_graver_reaches_those_it_did_not(database: Database, alerting: Alerting) -> None:
    with database.transaction() as connection:
        run = save(connection)
        for at, severity in enumerate((Severity.INFO, Severity.WARNING, Severity.CRITICAL, Severity.WARNING), 2000):
            judge(connection, run, finding(severity=severity), alerting=alerting, at=float(at))
        judge(connection, run, alerting=alerting, at=2010.0)
    opened = [("all", "info"), ("ops", "warning"), ("pager", "critical")]
    assert told(database) == [
        *((name, "finding.opened", severity) for name, severity in opened),
        *((name, "finding.resolved", severity) for name, severity in opened),
    ]


def test_who_was_not_told_of_the_beginning_is_not_told_of_the_end(database: Database, alerting: Alerting) -> None:
    with database.transaction() as connection:
        run = save(connection)
        judge(connection, run, finding(), at=2000.0)  # without alerts
        judge(connection, run, finding(severity=Severity.INFO), finding("ACC001"), alerting=alerting, at=2001.0)
        judge(connection, run, finding("ACC001"), alerting=alerting, at=2002.0)
    assert told(database) == [(name, "finding.opened", "warning") for name in ("all", "ops")]


def test_an_alert_that_was_given_up_is_as_if_it_had_not_been(database: Database, alerting: Alerting) -> None:
    with database.transaction() as connection:
        run = save(connection)
        judge(connection, run, finding(), alerting=alerting, at=2000.0)
        for delivery in released(connection, at=2000.0):
            if delivery.channel == "ops":
                mark_failed(connection, [delivery], "410 Gone", next_try=None, at=2000.0)
            else:
                mark_sent(connection, [delivery], "204 No Content", at=2000.0)
        judge(connection, run, alerting=alerting, at=2001.0)
    assert [(name, event) for name, event, _ in told(database)][2:] == [("all", "finding.resolved")]


@pytest.mark.parametrize("host", ["gpu7", ""])
def test_a_restart_neither_repeats_nor_loses_an_alert(database: Database, alerting: Alerting, host: str) -> None:
    with database.transaction() as connection:
        first = save(connection, host=host, source="first.log")
        judge(connection, first, finding(), alerting=alerting, at=2000.0)
        second = save(connection, host=host, started=3000.0, ended=3500.0, source="second.log")
        judge(connection, second, finding(), alerting=alerting, at=4000.0)
        assert len(list_deliveries(connection)) == 2
        judge(connection, first, finding(), alerting=alerting, at=4500.0)  # the earlier one is looked at once more
        third = save(connection, host=host, started=5000.0, ended=5500.0, source="third.log")
        judge(connection, third, alerting=alerting, at=6000.0)
        resolved, opened = list_deliveries(connection, channel="ops")
    assert (opened.event, resolved.event) == ("finding.opened", "finding.resolved")
    assert (opened.subject, opened.payload["data"]["key"]) == (resolved.subject, resolved.payload["data"]["key"])
    assert (opened.payload["data"]["run"]["id"], resolved.payload["data"]["run"]["id"]) == (str(first), str(third))


def test_the_end_waits_for_the_beginning_across_a_restart(database: Database, alerting: Alerting) -> None:
    with database.transaction() as connection:
        judge(connection, save(connection), finding(), alerting=alerting, at=2000.0)
        second = save(connection, started=3000.0, ended=3500.0, source="second.log")
        judge(connection, second, finding(), alerting=alerting, at=4000.0)
        judge(connection, second, alerting=alerting, at=4001.0)
        waiting = released(connection, at=5000.0)
        assert {item.event for item in waiting} == {"finding.opened"}
        for delivery in waiting:
            mark_sent(connection, [delivery], "204 No Content", at=5000.0)
        assert {item.event for item in released(connection, at=5000.0)} == {"finding.resolved"}


def test_replicas_are_told_of_apart(database: Database, alerting: Alerting) -> None:
    with database.transaction() as connection:
        one, other = save(connection), save(connection, host="gpu8")
        judge(connection, one, finding(), alerting=alerting, at=2000.0)
        judge(connection, other, finding(), alerting=alerting, at=2000.0)
        judge(connection, one, alerting=alerting, at=2001.0)
        opened = list_deliveries(connection, channel="ops")
    assert [item.event for item in opened] == ["finding.resolved", "finding.opened", "finding.opened"]
    assert len({item.subject for item in opened}) == 2


def test_samples_and_findings_about_other_runs_are_not_told(database: Database, alerting: Alerting) -> None:
    with database.transaction() as connection:
        judge(connection, save(connection, sample=True), finding(), alerting=alerting, at=2000.0)
        about_others = finding(scope="previous"), finding(scope="baseline")
        judge(connection, save(connection), *about_others, alerting=alerting, at=2000.0)
        assert list_deliveries(connection) == []
        unit = save(connection, host="gpu9")
        judge(connection, unit, finding("ACC007", scope="DP1 TP0"), alerting=alerting, at=2000.0)
        assert [item.channel for item in list_deliveries(connection)] == ["ops", "all"]
