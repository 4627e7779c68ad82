"""A thousand alerts through refusals, silence, kills and restarts: a tenth of them by default."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path

import pytest

from collector.storage.deliveries import DeliveryStatus, list_deliveries
from collector.storage.engine import Database, open_database
from dashboard.alerts import Alerting
from tests.out.conftest import SIGNING, webhook
from tests.out.receiver import Answer, Receiver
from tests.out.stored import finding, judge, save

ROOT = Path(__file__).parents[2]
SOAK = os.environ.get("DRAFTSCOPE_SOAK") == "1"
RUNS = 40 if SOAK else 4
FINDINGS_OF_A_RUN = 25
KILLS = 12 if SOAK else 2
SEED = 20261130
WAIT = 900.0 if SOAK else 120.0

WORKER = """
import asyncio, sys
from collector.storage.engine import open_database
from dashboard import outbox
from dashboard.masked import Secret, SecretUrl
from dashboard.outbox import Outbox
from dashboard.settings import Channel
from dashboard.sinks import base
from dashboard.sinks.webhook import WebhookConfig
base.TIME_LIMIT_SECONDS = 0.5
base.FIRST_DELAY_SECONDS = base.LONGEST_DELAY_SECONDS = 0.02
outbox.POLL_SECONDS, outbox._CLAIM_SECONDS, outbox.MOST_ATTEMPTS = 0.02, 4.0, 1000
config = WebhookConfig(name="ops", url=SecretUrl(sys.argv[2]), secret=Secret(sys.argv[3]), most_per_minute=10**9)
asyncio.run(Outbox(open_database(sys.argv[1]), [Channel("webhook", config)]).run(asyncio.Event()))
"""


def answers(random_: random.Random) -> list[Answer]:
    kinds = [Answer(204)] * 14 + [
        Answer(500),
        Answer(503, {"Retry-After": "0"}),
        Answer(408),
        Answer(429),
        Answer(reset=True),
    ]
    drawn = random_.choices(kinds, k=RUNS * FINDINGS_OF_A_RUN)
    for at in random_.sample(range(len(drawn)), k=3):
        drawn[at] = Answer(silent_seconds=0.8)
    return [*drawn, Answer(204)]


@contextmanager
def worker(url: str, receiver: Receiver) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-c", WORKER, url, receiver.url, SIGNING], cwd=ROOT, stdin=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def open_all(database: Database, alerting: Alerting) -> list[int]:
    found = [finding("ACC007", scope=f"DP{number} TP0") for number in range(FINDINGS_OF_A_RUN)]
    runs = []
    for number in range(RUNS):
        with database.transaction() as connection:
            runs.append(save(connection, host=f"gpu{number}"))
            judge(connection, runs[-1], *found, alerting=alerting, at=time.time())
    return runs


def test_each_arrives_at_least_once_in_order_under_one_id(
    sqlite_url: str, receiver_of: Callable[..., Receiver]
) -> None:
    deliver(sqlite_url, receiver_of)


@pytest.mark.skipif(not SOAK, reason="on PostgreSQL with DRAFTSCOPE_SOAK=1")
def test_the_same_on_postgresql(postgres_url: str, receiver_of: Callable[..., Receiver]) -> None:
    deliver(postgres_url, receiver_of)


def deliver(database_url: str, receiver_of: Callable[..., Receiver]) -> None:
    random_ = random.Random(SEED)
    receiver = receiver_of(*answers(random_))
    alerting = Alerting((webhook(receiver),), "https://x.example")
    with open_database(database_url, migrate=True) as database:
        runs = open_all(database, alerting)
        half = FINDINGS_OF_A_RUN // 2
        for kill in range(KILLS):
            with worker(database_url, receiver), worker(database_url, receiver) if kill % 2 else nullcontext():
                for _ in range(random_.randint(3, RUNS * FINDINGS_OF_A_RUN // KILLS)):
                    assert receiver.arrivals.acquire(timeout=WAIT)
                if kill < RUNS:  # half of a run's findings end while messages are on their way
                    with database.transaction() as connection:
                        left = [finding("ACC007", scope=f"DP{number} TP0") for number in range(half)]
                        judge(connection, runs[kill], *left, alerting=alerting, at=time.time())
        expected = RUNS * FINDINGS_OF_A_RUN + min(KILLS, RUNS) * (FINDINGS_OF_A_RUN - half)
        with worker(database_url, receiver):
            deadline = time.monotonic() + WAIT
            while time.monotonic() < deadline:
                with database.reading() as connection:
                    rows = list_deliveries(connection, limit=10_000)
                if all(row.status is DeliveryStatus.SENT for row in rows):
                    break
                time.sleep(0.1)
    assert len(rows) == expected
    assert {row.status for row in rows} == {DeliveryStatus.SENT}

    accepted: dict[str, int] = {}
    bodies: dict[str, set[bytes]] = {}
    first_seen: dict[tuple[str, str], int] = {}
    told: dict[tuple[str, str], int] = {}
    for place, got in enumerate(receiver.got):
        number = got.headers["webhook-id"]
        document = json.loads(got.body)
        what = (document["data"]["key"], document["type"])
        bodies.setdefault(number, set()).add(got.body)
        first_seen.setdefault(what, place)
        if got.answer == Answer(204):
            accepted.setdefault(number, place)
            told.setdefault(what, place)
    assert set(accepted) == {row.message_id for row in rows}
    assert {len(different) for different in bodies.values()} == {1}
    ends = [key for key, event in first_seen if event == "finding.resolved"]
    assert len(ends) == min(KILLS, RUNS) * (FINDINGS_OF_A_RUN - half)
    assert all(told[key, "finding.opened"] < first_seen[key, "finding.resolved"] for key in ends)
    assert len(receiver.got) > len(rows)  # some had to be repeated
