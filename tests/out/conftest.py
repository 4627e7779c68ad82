from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from dashboard.masked import Secret, SecretUrl
from dashboard.settings import Channel
from dashboard.sinks.notice import Notice, NoticedCause, NoticedFinding, NoticedRun, NoticeType
from dashboard.sinks.webhook import WebhookConfig
from tests.out.receiver import Answer, Receiver, receiving

SIGNING = "whsec_U0lHTklOR1NFQ1JFVC1TSUdOSU5HU0VDUkVU"


@pytest.fixture
def receiver_of() -> Iterator[Callable[..., Receiver]]:
    """Starts receivers that answer in a given way."""
    with ExitStack() as stack:
        yield lambda *answers: stack.enter_context(receiving(answers))


@pytest.fixture
def notice() -> Notice:
    run = NoticedRun(
        id="17",
        engine="sglang",
        engine_version="0.5.10",
        method="eagle3",
        model="Kimi-K2.5",
        draft="kimi-k25-eagle3",
        source="input.log",
        started_at=1775743330.0,
    )
    finding = NoticedFinding(
        rule="PAY001",
        name="slower-than-baseline",
        severity="critical",
        confidence="high",
        scope="run",
        title="Speculation makes this server 39% slower",
        why="54.8 tok/s against 89.9 tok/s → ×0.609.",
        values={"speedup": 0.609, "step_cost_ratio": 2.96, "acceptance_rate_at": [0.5, float("nan")]},
        fix=("Repair acceptance.", "Lower the step cost."),
    )
    return Notice(
        type=NoticeType.OPENED,
        at=1775750000.25,
        key="5f3f0a3c9be24a5d8e1b0c2d4e6f8091",
        deployment="kimi-prod",
        run=run,
        finding=finding,
        link="https://draftscope.example.org/runs/17#PAY001",
        labels={"team": "search"},
        cause=NoticedCause("capture-layers-wrong", "The draft is fed other layers than it was trained on", "likely"),
    )


def webhook(receiver: Receiver, name: str = "ops", **options: object) -> Channel:
    config = WebhookConfig(name=name, url=SecretUrl(receiver.url), secret=Secret(SIGNING), **options)
    return Channel("webhook", config)


OK = Answer()
