"""Channels: what is posted, what is tried again, and that nothing secret gets out."""

from __future__ import annotations

import asyncio
import json
import socket
import ssl
from collections.abc import Callable
from dataclasses import replace
from email.utils import formatdate
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from standardwebhooks import Webhook

from dashboard.masked import Secret, SecretUrl
from dashboard.sinks import base, sink_kinds
from dashboard.sinks.addresses import is_public
from dashboard.sinks.base import LONGEST_DELAY_SECONDS, LONGEST_WAIT_SECONDS, SendError, Sink, retry_delay
from dashboard.sinks.notice import MOST_FIGURES, Notice
from dashboard.sinks.posting import wait_asked, words_of
from dashboard.sinks.webhook import WebhookConfig, WebhookSink
from tests.out.answers import NOW
from tests.out.conftest import SIGNING, webhook
from tests.out.notices import NOTICE
from tests.out.receiver import Receiver

SECRETS = ("PATHSECRET", "QUERYSECRET", SIGNING, SIGNING.removeprefix("whsec_"))


def send(sink: Sink, notice: Notice, *, at: float = NOW) -> None:
    async def once() -> None:
        try:
            await sink.send("msg_1", [notice], at=at)
        finally:
            await sink.close()

    asyncio.run(once())


def sink_for(receiver: Receiver, **options: object) -> WebhookSink:
    return WebhookSink(webhook(receiver, **options).config)


# ---- payload and signature


def test_every_field_is_in_the_documentation(notice: Notice) -> None:
    page = (Path(__file__).parents[2] / "docs" / "alerts.md").read_text(encoding="utf-8")
    document = notice.document()
    fields = [*document, *document["data"], *document["data"]["run"], *document["data"]["finding"]]
    assert [name for name in fields if f'"{name}"' not in page] == []


def test_a_notice_comes_back_from_its_document(notice: Notice) -> None:
    document = json.loads(json.dumps(notice.document()))
    assert Notice.from_document(document).document() == notice.document()


def test_the_receiver_can_verify_the_signature(notice: Notice, receiver_of: Callable[..., Receiver]) -> None:
    import time

    receiver = receiver_of()
    send(sink_for(receiver), notice, at=time.time())
    (got,) = receiver.got
    assert got.path == "/hook-PATHSECRET?key=QUERYSECRET"
    assert got.headers["content-type"] == "application/json"
    assert got.headers["webhook-id"] == "msg_1"
    assert Webhook(SIGNING).verify(got.body, got.headers) == notice.document()


@given(st.text(max_size=20_000), st.dictionaries(st.text(max_size=300), st.text(max_size=3000), max_size=60))
def test_no_message_outgrows_what_receivers_take(text: str, table: dict[str, str]) -> None:
    finding = replace(
        NOTICE.finding,
        title=text,
        why=text,
        fix=(text,) * 50,
        values={**table, "nested": [table] * 40},
    )
    document = replace(NOTICE, finding=finding, labels=table, deployment=text).document()
    assert len(json.dumps(document, ensure_ascii=False).encode(errors="replace")) <= base.LARGEST_BODY
    assert len(json.dumps(document["data"]["finding"]["values"])) <= max(MOST_FIGURES, 32 * 2 * 200 * 12)


def test_a_receiver_that_is_not_there_is_tried_again(notice: Notice, receiver_of: Callable[..., Receiver]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    config = WebhookConfig(name="ops", url=SecretUrl(f"http://127.0.0.1:{port}/PATHSECRET"), secret=Secret(SIGNING))
    with pytest.raises(SendError, match="refuses connections") as caught:
        send(WebhookSink(config), notice)
    assert not caught.value.permanent


def test_a_receiver_without_encryption_is_named(notice: Notice, receiver_of: Callable[..., Receiver]) -> None:
    url = receiver_of().url.replace("http://", "https://")
    config = WebhookConfig(name="ops", url=SecretUrl(url), secret=Secret(SIGNING))
    with pytest.raises(SendError, match="no secure connection"):
        send(WebhookSink(config), notice)


@pytest.mark.parametrize(
    ("cause", "words"),
    [
        (ssl.SSLCertVerificationError("x"), "certificate is not trusted"),
        (socket.gaierror(-2, "x"), "host name is not known"),
        (ConnectionResetError(), "closed the connection"),
    ],
)
def test_causes_have_words(cause: Exception, words: str) -> None:
    error = RuntimeError("https://hooks.example.org/PATHSECRET")
    error.__cause__ = cause
    assert words in words_of(error)


# ---- when


def test_delays_grow_to_a_limit_and_are_spread() -> None:
    assert [retry_delay(attempt, 0.0) for attempt in (1, 2, 3, 6, 7, 12)] == [5, 15, 45, 1215, 3600, 3600]
    assert retry_delay(2, 1.0) == 7.5
    assert retry_delay(1, 0.5, retry_after=120) == 120
    assert retry_delay(12, 0.0, retry_after=10) == LONGEST_DELAY_SECONDS
    assert retry_delay(1, 0.0, retry_after=1e9) == LONGEST_WAIT_SECONDS


@given(st.text(max_size=40))
def test_any_retry_after_is_a_wait_or_nothing(text: str) -> None:
    wait = wait_asked(text, at=NOW)
    assert wait is None or wait >= 0


@pytest.mark.parametrize(
    ("text", "wait"),
    [
        ("0", 0.0),
        (" 7 ", 7.0),
        (formatdate(NOW - 5, usegmt=True), 0.0),
        (formatdate(NOW + 5), 5.0),
        ("soon", None),
        ("-1", None),
        (None, None),
    ],
)
def test_retry_after_is_a_number_or_a_date(text: str | None, wait: float | None) -> None:
    assert wait_asked(text, at=NOW) == wait


# ---- where


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True),
        ("2606:4700::1111", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("169.254.169.254", False),
        ("100.64.0.1", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("fc00::1", False),
        ("::ffff:10.0.0.1", False),
    ],
)
def test_which_addresses_are_public(address: str, public: bool) -> None:
    assert is_public(address) is public


@pytest.mark.parametrize(
    ("url", "host", "sent"),
    [
        ("https://8.8.8.8:8443/x?y=1", "8.8.8.8:8443", "https://8.8.8.8:8443/x?y=1"),
        ("http://user:word@8.8.8.8/x", "8.8.8.8", "http://user:word@8.8.8.8/x"),
        ("https://[2606:4700::1111]/x", "[2606:4700::1111]", "https://[2606:4700::1111]/x"),
    ],
)
def test_what_was_checked_is_what_is_connected_to(url: str, host: str, sent: str) -> None:
    sink = WebhookSink(WebhookConfig(name="ops", url=SecretUrl(url), secret=Secret(SIGNING), allow_private=False))
    target, headers, extensions = asyncio.run(sink._target())
    assert (str(target).replace("[secure]", "word"), headers["Host"]) == (sent, host)
    assert extensions["sni_hostname"] == target.host


# ---- what does not get out


def test_secrets_do_not_print() -> None:
    url = SecretUrl("https://user:word@hooks.example.org:8443/services/PATHSECRET?key=QUERYSECRET")
    config = WebhookConfig(name="ops", url=url, secret=Secret(SIGNING))
    shown = f"{config!r} {config} {url} {url!r} {Secret(SIGNING)!s}"
    assert not [secret for secret in (*SECRETS, "word") if secret in shown]
    assert "https://hooks.example.org/***" in shown
    assert str(SecretUrl("https://[broken/PATHSECRET")) == "***"


def test_every_kind_has_a_module_of_its_own() -> None:
    kinds = sink_kinds()
    assert kinds["webhook"] is WebhookSink
    assert len({kind.__module__ for kind in kinds.values()}) == len(kinds)
