"""From the exporter to a pager: a real Prometheus scrapes and judges, a real Alertmanager calls a receiver."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import yaml

from collector.domain.findings import Severity
from collector.storage.engine import open_database
from dashboard.sinks.notice import Notice
from tests.live.stores import free_port, program
from tests.out.channels import channel, sink_of
from tests.out.monitoring import DEPLOY
from tests.out.receiver import Receiver, receiving
from tests.out.stored import finding, judge, save
from tests.out.test_serve import Place

WAIT = 60.0


@dataclass
class Pager:
    """What a receiver got of Alertmanager: the last status of each alert."""

    receiver: Receiver
    alerts: dict[str, dict[str, Any]] = field(default_factory=dict)

    def until(self, name: str, status: str) -> dict[str, Any]:
        """The alert of this name, once it was told with this status."""
        deadline = time.monotonic() + WAIT
        while (left := deadline - time.monotonic()) > 0:
            for got in self.receiver.got:
                for alert in json.loads(got.body)["alerts"]:
                    self.alerts[alert["labels"]["alertname"]] = alert
            if self.alerts.get(name, {}).get("status") == status:
                return self.alerts[name]
            self.receiver.arrivals.acquire(timeout=left)
        raise AssertionError(f"{name} was not {status}: {self.alerts}")


@contextmanager
def alertmanager(folder: Path, receiver: Receiver) -> Iterator[str]:
    """Alertmanager with the configuration that is shipped, without its patience, calling a receiver."""
    folder.mkdir()
    config = yaml.safe_load((DEPLOY / "alertmanager.yml").read_text(encoding="utf-8"))
    config["route"] |= {"group_wait": "0s", "group_interval": "1s"}
    for entry in config["receivers"]:
        entry["webhook_configs"] = [{"url": f"{receiver.url}/{entry['name']}"}]
    (folder / "alertmanager.yml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    arguments = [
        "prometheus-alertmanager", "--config.file=alertmanager.yml", "--storage.path=data", "--cluster.listen-address=",
        f"--web.listen-address={address}",
    ]  # fmt: skip
    with program(arguments, folder, f"http://{address}/-/ready"):
        yield address


@contextmanager
def prometheus(folder: Path, exporter: str, pager: str) -> Iterator[None]:
    """Prometheus with the configuration and rules that are shipped, looking every second."""
    folder.mkdir()
    shutil.copytree(DEPLOY / "rules", folder / "rules")
    shutil.copy(DEPLOY / "engines.yml", folder)
    config = yaml.safe_load((DEPLOY / "prometheus.yml").read_text(encoding="utf-8"))
    config["global"] = {"scrape_interval": "1s", "evaluation_interval": "1s"}
    config["scrape_configs"][0]["static_configs"] = [{"targets": [exporter]}]
    config["alerting"]["alertmanagers"][0]["static_configs"] = [{"targets": [pager]}]
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    address = f"127.0.0.1:{free_port()}"
    arguments = [
        "prometheus", "--config.file=prometheus.yml", "--storage.tsdb.path=data", f"--web.listen-address={address}",
    ]  # fmt: skip
    with program(arguments, folder, f"http://{address}/-/ready"):
        yield


@pytest.mark.needs("prometheus-alertmanager")
@pytest.mark.needs("promtool")
def test_a_finding_reaches_the_receiver_and_its_end_does_too(tmp_path: Path, notice: Notice) -> None:
    place = Place(tmp_path)
    url = f"sqlite:///{tmp_path / 'draftscope.db'}"
    place.environ["DRAFTSCOPE_DATABASE_URL"] = url
    now = time.time()
    with open_database(url) as database, receiving() as receiver:

        def judged(*findings: Any) -> None:
            with database.transaction() as connection:
                judge(connection, run, *findings, at=time.time(), summary={"changed": 2})

        with database.transaction() as connection:
            run = save(connection, deployment="chat", started=now - 60, ended=now)
        judged(finding("ACC002", Severity.CRITICAL), finding("FLG001"))
        pager = Pager(receiver)
        with (
            place.serving("exporter") as exporter,
            alertmanager(tmp_path / "alertmanager", receiver) as address,
            prometheus(tmp_path / "prometheus", exporter.address.split("/")[2], address),
        ):
            alert = pager.until("SpeculationProblem", "firing")
            assert alert["labels"]["rule"] == "ACC002"
            assert alert["annotations"]["summary"] == "gpu7:30000 (chat): critical finding ACC002"
            assert pager.until("RestartedWithChangedFlags", "firing")["labels"]["severity"] == "info"
            paths = {
                json.loads(got.body)["alerts"][0]["labels"]["alertname"]: got.path.rsplit("/", 1)[-1]
                for got in receiver.got
            }
            assert paths == {"SpeculationProblem": "on-call", "RestartedWithChangedFlags": "nobody"}
            # The product's own channel posts into the same Alertmanager.
            sink = sink_of(channel("alertmanager", f"http://{address}"))
            asyncio.run(sink.send("m1", [notice], at=time.time()))
            own = pager.until("DraftscopeFinding", "firing")
            assert (own["labels"]["rule"], own["labels"]["deployment"]) == ("PAY001", "kimi-prod")
            judged(finding("FLG001"))
            pager.until("SpeculationProblem", "resolved")


@pytest.mark.needs("amtool")
def test_alertmanager_takes_its_configuration() -> None:
    done = subprocess.run(
        ["amtool", "check-config", DEPLOY / "alertmanager.yml"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
