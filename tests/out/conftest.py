from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from dashboard.masked import Secret, SecretUrl
from dashboard.settings import Channel
from dashboard.sinks.notice import Notice
from dashboard.sinks.webhook import WebhookConfig
from tests.out.channels import SIGNING
from tests.out.notices import NOTICE
from tests.out.receiver import Answer, Receiver, receiving


@pytest.fixture
def receiver_of() -> Iterator[Callable[..., Receiver]]:
    """Starts receivers that answer in a given way."""
    with ExitStack() as stack:
        yield lambda *answers: stack.enter_context(receiving(answers))


@pytest.fixture
def notice() -> Notice:
    return NOTICE


def webhook(receiver: Receiver, name: str = "ops", **options: object) -> Channel:
    """A channel that tells everything at once, if not said otherwise."""
    settings = {"resolve_after_seconds": 0.0, "most_per_minute": 10_000, **options}
    config = WebhookConfig(name=name, url=SecretUrl(receiver.url), secret=Secret(SIGNING), **settings)
    return Channel("webhook", config)


OK = Answer()
