"""The page of alerts and its endpoints: what fires, silences, channels, test messages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from collector.storage.engine import Database
from dashboard.alerts import Alerting
from dashboard.diagnoses import Diagnoses
from dashboard.masked import Secret
from dashboard.service import build_app
from dashboard.settings import Service, Settings
from tests.out.channels import PLANTED, channel
from tests.out.receiver import Answer, Receiver, receiving
from tests.out.stored import finding, judge, save
from tests.web.conftest import Client
from tests.web.pages_read import Page


@dataclass
class Site:
    """An app with one open finding, told to nobody yet, and a channel."""

    client: Client
    receiver: Receiver

    def page(self, **options: Any) -> Page:
        return Page(self.client.get("/alerts", **options).text)

    def post(self, path: str, **fields: str) -> tuple[int, str]:
        answer = self.client.request("POST", path, data=fields)
        assert not [word for word in PLANTED if word in answer.text]
        return answer.status_code, Page(answer.text).said()


@pytest.fixture
def site_of(sqlite_database: Database) -> Iterator[Callable[..., Site]]:
    def make(answer: Answer, token: str | None = None) -> Site:
        receiver = started.enter(answer)
        channels = (channel("slack", receiver.url, "team"),)
        with sqlite_database.transaction() as connection:
            run = save(connection, deployment="chat")
            judge(connection, run, finding(), alerting=Alerting(channels, "https://x.example"), at=1000.0)
        settings = Settings(Service(token=Secret(token) if token else None), channels=channels)
        return Site(Client(build_app(Diagnoses(sqlite_database), settings)), receiver)

    started = _Receivers()
    try:
        yield make
    finally:
        started.close()


class _Receivers:
    def __init__(self) -> None:
        self._open: list[Any] = []

    def enter(self, answer: Answer) -> Receiver:
        manager = receiving([answer])
        self._open.append(manager)
        return manager.__enter__()

    def close(self) -> None:
        for manager in self._open:
            manager.__exit__(None, None, None)


def test_the_page_says_what_fires_and_whom_it_was_told(site_of) -> None:
    page = site_of(Answer(200)).page()
    said = page.said()
    for words in (
        "1 finding fires, 1 told to nobody",
        "Speculation makes this server 39% slower PAY001 · chat, run 1",
        "told nobody",
        "No silence holds.",
        "team slack · http://127.0.0.1/***",
        "warnings and critical 1 waiting",
        "not tried yet",
        "1 January 1970, 00:16 team opened",
    ):
        assert words in said, words
    assert "/runs/1#PAY001" in page.values("href")
    assert not [word for word in PLANTED if word in page.html]


def test_without_anything_it_says_what_to_do(client_of) -> None:
    said = Page(client_of().get("/alerts").text).said()
    for words in (
        "Nothing fires",
        "No silence holds.",
        "No channel is set, so nobody is told.",
        "Nothing was sent so far.",
    ):
        assert words in said


@pytest.mark.parametrize(
    ("answer", "words", "state"),
    [
        (Answer(200), "The test message to team arrived: 200 OK.", "reaches it"),
        (
            Answer(403),
            "The test message to team did not arrive: the receiver answered 403 Forbidden.",
            "last attempt failed",
        ),
    ],
)
def test_a_channel_is_tried_from_the_page(site_of, answer: Answer, words: str, state: str) -> None:
    site = site_of(answer)
    status, said = site.post("/alerts/test", channel="team")
    assert (status, words in said, state in said) == (200, True, True)
    assert b"draftscope can reach this channel" in site.receiver.got[0].body


def test_a_silence_begins_and_ends_on_the_page(site_of) -> None:
    site = site_of(Answer(200))
    assert 'value="PAY001"' in site.page(params={"rule": "PAY001", "deployment": "chat"}).html
    status, said = site.post(
        "/alerts/silences",
        rule="PAY001",
        deployment="ch*",
        label="team=search",
        lasting="8h",
        comment="<b>new</b> draft",
    )
    assert status == 200
    for words in (
        "Silence 1 holds until",
        "1 finding fires, 1 silenced",
        "PAY001, ch*, team=search",
        "<b>new</b> draft",
    ):
        assert words in said, words
    assert "Silence 1 has ended." in site.post("/alerts/silences/end", silence="1")[1]
    status, said = site.post("/alerts/silences/end", silence="1")
    assert (status, "No silence 1 holds" in said) == (404, True)


@pytest.mark.parametrize(
    ("path", "fields", "status", "words"),
    [
        ("/alerts/silences", {}, 400, "Nothing says what to keep quiet"),
        ("/alerts/silences", {"rule": "PAY001", "lasting": "soon"}, 400, "'soon' is no duration"),
        ("/alerts/silences", {"rule": "PAY001", "label": "team"}, 400, "'team' is no label"),
        ("/alerts/test", {"channel": "taem"}, 404, "did you mean team?"),
    ],
)
def test_what_cannot_be_done_is_said_on_the_page(
    site_of, path: str, fields: dict[str, str], status: int, words: str
) -> None:
    got, said = site_of(Answer(200)).post(path, **fields)
    assert (got, words in said, "Now firing" in said) == (status, True, True)


def test_the_page_asks_for_the_token_where_one_is_set(site_of) -> None:
    site = site_of(Answer(200), token="TOKENSECRET")
    assert site.page().html.count('name="token"') == 2
    for given in ({}, {"token": "another"}):
        for path, fields in (("/alerts/test", {"channel": "team"}), ("/alerts/silences", {"rule": "*"})):
            assert site.post(path, **fields, **given)[0] == 401
    assert site.receiver.got == []
    assert "arrived" in site.post("/alerts/test", channel="team", token="TOKENSECRET")[1]
    assert "TOKENSECRET" not in site.page().html


def test_another_site_cannot_write_through_the_page(site_of) -> None:
    site = site_of(Answer(200))
    answer = site.client.request(
        "POST", "/alerts/silences", data={"rule": "*"}, headers={"Origin": "https://evil.example"}
    )
    assert answer.status_code == 403
    assert site.client.get("/api/v1/alerts/silences").json() == {"silences": []}


def test_the_api_does_the_same(site_of) -> None:
    site = site_of(Answer(429, {"Retry-After": "60"}))
    client = site.client
    (firing,) = client.get("/api/v1/alerts").json()["firing"]
    assert (firing["rule"], firing["deployment"], firing["told"], firing["silence_id"]) == ("PAY001", "chat", [], None)
    tried = client.request("POST", "/api/v1/alerts/channels/team/test").json()
    assert (tried["status"], tried["attempts"], tried["answer"]) == (
        "failed",
        1,
        "the receiver answered 429 Too Many Requests",
    )
    (row,) = client.get("/api/v1/alerts/channels").json()["channels"]
    assert (row["name"], row["kind"], row["state"], row["waiting"]) == ("team", "slack", "paused", 1)
    made = client.request("POST", "/api/v1/alerts/silences", json={"rule": "PAY*", "seconds": 60, "comment": "x"})
    assert (made.status_code, made.json()["id"]) == (201, 1)
    assert client.get("/api/v1/alerts").json()["firing"][0]["silence_id"] == 1
    assert len(client.get("/api/v1/alerts/silences").json()["silences"]) == 1
    assert client.request("DELETE", "/api/v1/alerts/silences/1").json() == {"ended": 1}
    events = [(item["event"], item["status"]) for item in client.get("/api/v1/alerts/deliveries").json()["deliveries"]]
    assert events == [("test", "failed"), ("opened", "held")]
    held = client.get("/api/v1/alerts/deliveries", params={"status": "held", "channel": "team", "limit": 1})
    assert [item["event"] for item in held.json()["deliveries"]] == ["opened"]


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "/api/v1/alerts/silences", {"seconds": 60}, 400),
        ("POST", "/api/v1/alerts/silences", {"rule": "*", "seconds": -1}, 422),
        ("POST", "/api/v1/alerts/silences", {"rule": "*", "seconds": 1e9}, 422),
        ("POST", "/api/v1/alerts/silences", {"rule": "x" * 300, "seconds": 60}, 422),
        ("DELETE", "/api/v1/alerts/silences/7", None, 404),
        ("POST", "/api/v1/alerts/channels/nobody/test", None, 404),
        ("GET", "/api/v1/alerts/deliveries?limit=0", None, 422),
        ("GET", "/api/v1/alerts/deliveries?status=lost", None, 422),
    ],
)
def test_what_the_api_cannot_do_has_an_honest_status(site_of, method: str, path: str, body: Any, status: int) -> None:
    answer = site_of(Answer(200)).client.request(method, path, json=body)
    assert (answer.status_code, sorted(answer.json()["error"])) == (status, ["try", "what", "where", "why"])


def test_without_a_database_there_is_nothing_to_alert(client_of) -> None:
    client = client_of()
    assert client.get("/api/v1/alerts").json() == {"firing": []}
    answer = client.request("POST", "/api/v1/alerts/channels/team/test")
    assert (answer.status_code, answer.json()["error"]["what"]) == (404, "nothing is alerted here")


def test_writing_needs_the_token(site_of) -> None:
    client = site_of(Answer(200), token="TOKENSECRET").client
    for method, path in (
        ("POST", "/api/v1/alerts/silences"),
        ("DELETE", "/api/v1/alerts/silences/1"),
        ("POST", "/api/v1/alerts/channels/team/test"),
    ):
        options = {"json": {"rule": "*", "seconds": 60}} if path.endswith("silences") else {}
        assert client.request(method, path, **options).status_code == 401
        accepted = client.request(method, path, **options, headers={"Authorization": "Bearer TOKENSECRET"})
        assert accepted.status_code in (200, 201, 404)
