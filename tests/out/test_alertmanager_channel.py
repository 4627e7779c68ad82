"""The channel to Alertmanager through the outbox, against the real one."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from collector.domain.findings import Severity
from collector.storage.engine import Database
from dashboard.settings import Channel
from tests.out.channels import channel
from tests.out.receiver import Receiver, receiving
from tests.out.stored import finding
from tests.out.test_alertmanager import WAIT, alertmanager
from tests.out.test_policy import NOW, Service


def until(holds: Callable[[], Any]) -> None:
    deadline = time.monotonic() + WAIT
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def alerts(url: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = httpx.get(f"{url}/api/v2/alerts", timeout=10.0).json()
    return found


@pytest.mark.needs("prometheus-alertmanager")
def test_findings_fire_and_resolve_in_a_real_alertmanager(sqlite_database: Database, tmp_path: Path) -> None:
    with receiving() as receiver, alertmanager(tmp_path / "alertmanager", receiver) as address:
        fire_and_resolve(Service(sqlite_database, channel_to(address)), f"http://{address}", receiver)


def channel_to(address: str) -> Channel:
    return channel("alertmanager", f"http://{address}", resolve_after_seconds=0.0)


def fire_and_resolve(service: Service, url: str, receiver: Receiver) -> None:
    now = time.time() - NOW
    runs = [service.run(f"gpu{number}", deployment="kimi-prod") for number in range(3)]
    for run in runs:
        service.judge(run, finding(severity=Severity.CRITICAL), after=now - 60)
    service.send(now - 59)
    firing = alerts(url)
    assert len(firing) == 3
    assert {alert["status"]["state"] for alert in firing} == {"active"}
    (labels,) = {tuple(sorted((k, v) for k, v in alert["labels"].items() if k != "finding")) for alert in firing}
    assert dict(labels) == {
        "alertname": "DraftscopeFinding", "rule": "PAY001", "name": "slower-than-baseline", "severity": "critical",
        "scope": "run", "deployment": "kimi-prod", "engine": "sglang", "model": "Kimi-K2.5", "team": "search",
    }  # fmt: skip
    assert {alert["generatorURL"] for alert in firing} == {
        f"https://draftscope.example.org/runs/{run}#PAY001" for run in runs
    }
    assert all(alert["annotations"]["summary"].startswith("Speculation makes") for alert in firing)
    until(lambda: receiver.got)

    service.judge(runs[0], finding(severity=Severity.WARNING), after=now - 50)  # less grave: still the same alert
    service.judge(runs[0], after=now - 40)
    service.send(now - 39)
    assert len(alerts(url)) == 2
    until(lambda: any(b'"status":"resolved"' in got.body for got in receiver.got))
