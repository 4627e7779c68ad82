"""Every kind of channel: its payload, what it tries again, and that it tells no secret."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import pytest

from dashboard.masked import Secret, SecretUrl
from dashboard.settings import Channel
from dashboard.sinks import base, sink_kinds
from dashboard.sinks.apprise import AppriseConfig
from dashboard.sinks.base import SendError
from dashboard.sinks.mail import Encryption, MailConfig, MailSink
from dashboard.sinks.notice import Notice, NoticeType
from dashboard.sinks.words import told, two_figures
from tests.out.answers import ACCEPTED, NOW, REFUSALS, WAITS
from tests.out.channels import HTTP, PLANTED, channel, sink_of
from tests.out.golden import rewrite
from tests.out.mail import MailServer, mail_server
from tests.out.receiver import Answer, Receiver

ReceiverOf = Callable[..., Receiver]
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated")  # Apprise imports it


def send(channel: Channel, *notices: Notice) -> str:
    sink = sink_of(channel)

    async def once() -> str:
        try:
            return await sink.send("msg_1", notices, at=NOW)
        finally:
            await sink.close()

    return asyncio.run(once())


def mail(server: MailServer, **options: Any) -> Channel:
    settings = {"host": "127.0.0.1", "port": server.port, "encryption": Encryption.NONE, "sender": "draftscope@example.org",
                "to": ("ops@example.org", "ml@example.org"), **options}  # fmt: skip
    return Channel("email", MailConfig(name="ops", **settings))


# ---- payloads


@pytest.mark.parametrize("kind", rewrite.KINDS)
def test_the_payload_is_the_golden_one(kind: str) -> None:
    assert rewrite.text_of(kind) == rewrite.path_of(kind).read_text(encoding="utf-8")


def test_every_kind_has_a_golden_payload() -> None:
    assert sorted(rewrite.KINDS) == sorted(sink_kinds())


@pytest.mark.parametrize("kind", HTTP)
def test_it_arrives(kind: str, notice: Notice, receiver_of: ReceiverOf) -> None:
    receiver = receiver_of()
    assert send(channel(kind, receiver.url), notice) == "204 No Content"
    (got,) = receiver.got
    assert got.headers["content-type"] == "application/json"
    assert json.loads(got.body)
    path, _, query = got.path.partition("?")
    assert (path, query) == (
        "/hook-PATHSECRET" + ("/api/v2/alerts" if kind == "alertmanager" else ""),
        "key=QUERYSECRET",
    )
    assert (got.headers.get("authorization") == "Bearer BEARERSECRET") == (kind == "alertmanager")


@pytest.mark.parametrize("kind", ["slack", "alertmanager", "pagerduty"])
def test_texts_stay_within_what_the_receiver_takes(kind: str, notice: Notice) -> None:
    long = "é<&>|" * 3000
    finding = replace(
        notice.finding, title=long, why=long, fix=(long,) * 9, values={"flag": long, "effective": long, "requested": 1}
    )
    hostile = replace(notice, finding=finding, deployment=long, labels={long: long}, link="https://x.example/runs/1")
    sink = sink_of(channel(kind, "https://x.example"))
    for notices in ([hostile], [hostile] * (20 if kind == "slack" else 1)):
        body = sink.render("msg_1", notices, at=NOW).body  # type: ignore[attr-defined]
        assert len(body) <= base.LARGEST_BODY
        document = json.loads(body)
        if kind == "slack":
            texts = [block["text"]["text"] for block in document["blocks"] if "text" in block]
            assert max(map(len, texts)) <= 3000
            assert len(document["blocks"]) <= 50
            assert not [text for text in texts if "<&>" in text]
        if kind == "pagerduty":
            assert len(document["payload"]["summary"]) <= 1024


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (
            {"acceptance_length": 1.8, "realistic_acceptance_length": 2.864},
            "Acceptance length 1.80 tokens, healthy 2.86",
        ),
        ({"flag": "num_draft_tokens", "requested": 16, "effective": 2}, "num_draft_tokens runs with 2, asked 16"),
        (
            {"generation_throughput": 54.83, "baseline_throughput": 90.0, "acceptance_length": 1.8},
            "Throughput 54.8 tok/s, without speculation 90.0",
        ),
        ({"step_cost_ratio": 2.96, "usual_step_cost": 2.0}, "Step cost 2.96 plain steps, usual 2.00"),
        ({"previous": 2.1, "last": 1.6}, "Acceptance length 1.60 tokens, at first 2.10"),
        ({"draft_ids": [-1, 2], "previous_ids": None}, "Draft ids -1, 2, before unset"),
        ({"speedup": 0.609, "step_cost_ratio": 2.96, "draft_depth": 5}, "Speed-up ×0.609, Step cost 2.96 plain steps"),
        ({"message": "x"}, ""),
    ],
)
def test_the_two_figures_are_named(values: dict[str, Any], words: str) -> None:
    assert two_figures(values) == words


def test_what_is_not_known_leaves_no_empty_words(notice: Notice) -> None:
    bare = replace(notice, cause=None, finding=replace(notice.finding, fix=(), why="", values={}))
    assert told(bare).lines() == ["kimi-prod, SGLang 0.5.10, EAGLE-3, run 17"]


# ---- what is worth trying again


@pytest.mark.parametrize("answer", REFUSALS)
@pytest.mark.parametrize("kind", HTTP)
def test_each_answer_is_retried_or_not(
    kind: str, answer: str, notice: Notice, receiver_of: ReceiverOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    given, permanent, words = REFUSALS[answer]
    if answer == "silence":
        monkeypatch.setattr(base, "TIME_LIMIT_SECONDS", 0.3)
    receiver = receiver_of(given)
    with pytest.raises(SendError, match=words) as caught:
        send(channel(kind, receiver.url), notice)
    assert caught.value.permanent is permanent
    assert caught.value.retry_after == WAITS.get(answer)
    assert len(receiver.got) == 1
    assert not [secret for secret in PLANTED if secret in str(caught.value) + repr(caught.value)]


@pytest.mark.parametrize("answer", ACCEPTED)
@pytest.mark.parametrize("kind", HTTP)
def test_acceptance_needs_no_body(kind: str, answer: str, notice: Notice, receiver_of: ReceiverOf) -> None:
    receiver = receiver_of(ACCEPTED[answer])
    assert send(channel(kind, receiver.url), notice).startswith(answer[:3])
    assert len(receiver.got) == 1


@pytest.mark.parametrize("kind", HTTP)
def test_private_receivers_can_be_refused(kind: str, notice: Notice, receiver_of: ReceiverOf) -> None:
    receiver = receiver_of()
    for url in (receiver.url, receiver.url.replace("127.0.0.1", "localhost")):
        with pytest.raises(SendError, match="private") as caught:
            send(channel(kind, url, allow_private=False), notice)
        assert caught.value.permanent
    assert receiver.got == []


# ---- mail


def test_a_mail_arrives(notice: Notice) -> None:
    with mail_server() as server:
        assert send(mail(server), notice) == "250 accepted"
        (got,) = server.got
    assert got["Subject"] == "Critical: Speculation makes this server 39% slower"
    assert got["To"] == "ops@example.org, ml@example.org"
    assert "https://draftscope.example.org/runs/17#PAY001" in got.get_content()
    assert "→ ×0.609" in got.get_content()


def test_mails_about_one_finding_form_a_thread(notice: Notice) -> None:
    sink = MailSink(mail(MailServer()).config)
    ended = replace(notice, type=NoticeType.RESOLVED)
    opened, resolved = sink.render("msg_1", [notice]), sink.render("msg_2", [ended])
    assert opened["References"] == resolved["References"]
    assert opened["Message-ID"] != resolved["Message-ID"]


MAIL_ANSWERS = {
    "421": ({"answer": "421 closing"}, False, "answered 421"),
    "450": ({"answer": "450 busy"}, False, "answered 450"),
    "451": ({"answer": "451 later"}, False, "answered 451"),
    "550": ({"answer": "550 no"}, True, "answered 550"),
    "554": ({"answer": "554 refused"}, True, "answered 554"),
    "nobody is known": ({"refused": ("ops@example.org", "ml@example.org")}, True, "answered 550"),
    "silence": ({"silent_seconds": 1.0}, False, "no answer within 0.3 s"),
    "reset": ({"hang_up": True}, False, "closed the connection"),
}


@pytest.mark.parametrize("name", MAIL_ANSWERS)
def test_each_answer_of_a_mail_server_is_retried_or_not(
    name: str, notice: Notice, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, permanent, words = MAIL_ANSWERS[name]
    if name == "silence":
        monkeypatch.setattr(base, "TIME_LIMIT_SECONDS", 0.3)
    with mail_server(**options) as server:
        with pytest.raises(SendError, match=words) as caught:
            send(mail(server), notice)
        assert server.got == []
    assert caught.value.permanent is permanent


def test_one_unknown_address_keeps_nothing_from_the_others(notice: Notice) -> None:
    with mail_server(refused=("ml@example.org",)) as server:
        assert send(mail(server), notice) == "250 accepted, 1 of 2 addresses refused"
        assert len(server.got) == 1


def test_without_encryption_nothing_is_sent_where_it_is_asked_for(notice: Notice) -> None:
    secret = {"username": "ops", "password": Secret("MAILSECRET"), "encryption": Encryption.STARTTLS}
    with mail_server() as server:
        with pytest.raises(SendError, match="does not offer") as caught:
            send(mail(server, **secret), notice)
        assert caught.value.permanent
        with pytest.raises(SendError) as caught:
            send(mail(server, encryption=Encryption.TLS), notice)
        assert not caught.value.permanent
        assert server.got == []


def test_a_mail_server_that_is_not_there_is_tried_again(notice: Notice) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with pytest.raises(SendError, match="the mail server refuses connections") as caught:
        send(mail(MailServer(port=port)), notice)
    assert not caught.value.permanent


def test_private_mail_servers_can_be_refused(notice: Notice) -> None:
    with mail_server() as server:
        with pytest.raises(SendError, match="private"):
            send(mail(server, host="localhost", allow_private=False), notice)
        assert server.got == []


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({}, ""),
        ({"to": ()}, "need addresses"),
        ({"to": ("ops",)}, "need addresses"),
        ({"sender": "a@b\nBcc: c@d"}, "need addresses"),
        ({"port": 0}, "no server"),
        ({"username": "ops"}, "belong together"),
        ({"username": "ops", "password": Secret("MAILSECRET")}, "encrypted connection"),
    ],
)
def test_settings_of_a_mail_channel_are_checked(options: dict[str, Any], problem: str) -> None:
    config = mail(MailServer(port=25), **options).config
    assert problem in MailSink.check(config)
    assert bool(MailSink.check(config)) == bool(problem)


# ---- everything else


def apprise(url: str) -> Channel:
    return Channel("apprise", AppriseConfig(name="chat", url=SecretUrl(url.replace("http://", "json://"))))


def test_apprise_delivers(notice: Notice, receiver_of: ReceiverOf) -> None:
    receiver = receiver_of(Answer(200))
    assert send(apprise(receiver.url), notice) == "accepted by Apprise"
    document = json.loads(receiver.got[0].body)
    assert document["title"] == "Critical: Speculation makes this server 39% slower"
    assert "Likely cause: The draft is fed other layers" in document["message"]


@pytest.mark.parametrize("answer", [Answer(404), Answer(500), Answer(reset=True)])
def test_what_apprise_cannot_deliver_is_tried_again(
    answer: Answer, notice: Notice, receiver_of: ReceiverOf, caplog: pytest.LogCaptureFixture
) -> None:
    receiver = receiver_of(answer)
    with caplog.at_level(logging.DEBUG), pytest.raises(SendError, match="could not deliver") as caught:
        send(apprise(receiver.url), notice)
    assert not caught.value.permanent
    assert not [secret for secret in PLANTED if secret in caplog.text]


def test_an_address_that_apprise_does_not_know_is_refused() -> None:
    kind = sink_kinds()["apprise"]
    assert (
        kind.check(AppriseConfig(name="x", url=SecretUrl("nosuch://PATHSECRET")))
        == "url is no address that Apprise knows"
    )
    assert kind.check(apprise("http://127.0.0.1/x").config) == ""


# ---- secrets


@pytest.mark.parametrize("kind", HTTP)
def test_nothing_secret_is_logged_or_printed(
    kind: str, notice: Notice, receiver_of: ReceiverOf, caplog: pytest.LogCaptureFixture
) -> None:
    wanted: Sequence[Channel] = [channel(kind, receiver_of(answer).url) for answer in (Answer(200), Answer(500))]
    with caplog.at_level(logging.DEBUG):
        send(wanted[0], notice)
        with pytest.raises(SendError):
            send(wanted[1], notice)
    shown = caplog.text + repr(wanted)
    assert not [secret for secret in PLANTED if secret in shown]
