"""One channel of each kind, with a secret wherever one can be."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from dashboard.masked import Secret, SecretUrl
from dashboard.settings import Channel
from dashboard.sinks import sink_kinds
from dashboard.sinks.base import Sink

SIGNING = "whsec_U0lHTklOR1NFQ1JFVC1TSUdOSU5HU0VDUkVU"
PLANTED = ("PATHSECRET", "QUERYSECRET", "ROUTINGSECRET", "BEARERSECRET", "MAILSECRET", SIGNING, SIGNING[6:])
HTTP: Mapping[str, Callable[[str], dict[str, Any]]] = {
    "webhook": lambda url: {"url": SecretUrl(url), "secret": Secret(SIGNING)},
    "slack": lambda url: {"url": SecretUrl(url)},
    "pagerduty": lambda url: {"url": SecretUrl(url), "routing_key": Secret("ROUTINGSECRET")},
    "alertmanager": lambda url: {"url": SecretUrl(url), "token": Secret("BEARERSECRET")},
}
"""Settings of the channels that send over HTTP, by kind."""


def channel(kind: str, url: str, name: str = "ops", **options: Any) -> Channel:
    return Channel(kind, sink_kinds()[kind].Config(name=name, **HTTP[kind](url), **options))


def sink_of(channel: Channel) -> Sink:
    return sink_kinds()[channel.kind](channel.config)
