"""The channel to Alertmanager against the real one."""

from __future__ import annotations

import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from collector.domain.findings import Severity
from collector.storage.engine import Database
from tests.out.channels import channel
from tests.out.receiver import Receiver
from tests.out.stored import finding
from tests.out.test_policy import NOW, Service

WAIT = 60.0
PROGRAMS = ("prometheus-alertmanager", "alertmanager")
pytestmark = pytest.mark.needs(*PROGRAMS)

CONFIGURATION = """
route:
  receiver: team
  group_by: [alertname, deployment]
  group_wait: 0s
  group_interval: 1s
receivers:
  - name: team
    webhook_configs:
      - url: {url}
        send_resolved: true
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return int(taken.getsockname()[1])


def until(holds: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + WAIT
    while time.monotonic() < deadline:
        if found := holds():
            return found
        time.sleep(0.05)
    raise AssertionError("it never happened")


@pytest.fixture
def alertmanager(tmp_path: Path, receiver_of: Callable[..., Receiver]) -> Iterator[tuple[str, Receiver]]:
    """The address of a running Alertmanager, and the receiver that it calls."""
    receiver = receiver_of()
    (tmp_path / "alertmanager.yml").write_text(CONFIGURATION.format(url=receiver.url), encoding="utf-8")
    program = next(found for name in PROGRAMS if (found := shutil.which(name)))
    url = f"http://127.0.0.1:{free_port()}"
    with (tmp_path / "log").open("wb") as log:
        process = subprocess.Popen(
            [program, f"--config.file={tmp_path / 'alertmanager.yml'}", f"--storage.path={tmp_path / 'data'}",
             f"--web.listen-address={url.removeprefix('http://')}", "--cluster.listen-address="],
            stdout=log, stderr=log, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            until(lambda: _is_ready(url))
            yield url, receiver
        finally:
            process.kill()
            process.wait()


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/-/ready", timeout=1.0).status_code == 200
    except httpx.HTTPError:
        return False


def alerts(url: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = httpx.get(f"{url}/api/v2/alerts", timeout=10.0).json()
    return found


def test_findings_fire_and_resolve_in_a_real_alertmanager(
    sqlite_database: Database, alertmanager: tuple[str, Receiver]
) -> None:
    url, receiver = alertmanager
    now = time.time() - NOW
    service = Service(sqlite_database, channel("alertmanager", url, resolve_after_seconds=0.0))
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
