"""The service as people start it: its own process, signals, and refusals."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from standardwebhooks import Webhook

from dashboard.samples import FOLDER
from tests.out.conftest import SIGNING
from tests.out.receiver import Answer, Receiver

ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-c", "from dashboard.cli import main; main()"]
WAIT = 60.0


@dataclass
class Place:
    """A folder of its own for settings, data and the working directory."""

    folder: Path
    environ: dict[str, str] = field(default_factory=dict)

    def settings(self, text: str) -> None:
        (self.folder / "draftscope.toml").write_text(text, encoding="utf-8")

    @property
    def environment(self) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("DRAFTSCOPE_")}
        homes = {name: str(self.folder / name.lower()) for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "HOME")}
        return {**kept, **homes, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1", **self.environ}

    def run(self, *arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*COMMAND, *arguments], cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False,
            timeout=WAIT, stdin=subprocess.DEVNULL,
        )  # fmt: skip

    @contextmanager
    def serving(self, *arguments: str) -> Iterator[Running]:
        """A service on a free port; afterwards it must stop when asked to, and say nothing was wrong."""
        log = (self.folder / "service.log").open("wb")
        process = subprocess.Popen(
            [*COMMAND, *(arguments or ("serve",)), "--port", "0"], cwd=self.folder, env=self.environment,
            stdout=subprocess.PIPE, stderr=log, stdin=subprocess.DEVNULL, text=True,
        )  # fmt: skip
        try:
            assert process.stdout is not None
            first = process.stdout.readline()
            found = re.search(r"http://\S+", first)
            assert found, first + (self.folder / "service.log").read_text()
            running = Running(process, found[0], self.folder / "service.log")
            with httpx.Client(base_url=running.address, timeout=WAIT) as client:
                running.client = client
                yield running
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT) == 0, running.log
            running.printed = first + process.stdout.read()
        finally:
            process.kill()
            process.wait()
            if process.stdout is not None:
                process.stdout.close()
            log.close()


@dataclass
class Running:
    process: subprocess.Popen[str]
    address: str
    path: Path
    client: httpx.Client = field(default_factory=httpx.Client)
    printed: str = ""

    @property
    def log(self) -> str:
        return self.path.read_text(encoding="utf-8")

    def until(self, holds: Callable[[], Any]) -> Any:
        """What holds at last."""
        deadline = time.monotonic() + WAIT
        while time.monotonic() < deadline:
            if found := holds():
                return found
            time.sleep(0.05)
        raise AssertionError(self.log)


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


def bundle(place: Place) -> str:
    shutil.copytree(FOLDER / "kimi-k25-capture-fixed", place.folder / "bundle")
    return "bundle"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_serves_and_stops_when_asked(place: Place, number: signal.Signals) -> None:
    with place.serving() as service:
        assert service.client.get("/healthz").json()["status"] == "ok"
        assert service.client.get("/api/v1/runs").json()["total"] == 0
        assert service.client.get("/metrics").text.startswith("# HELP draftscope_run_info")
        service.process.send_signal(number)
        service.process.wait(WAIT)
    assert f"draftscope is at {service.address}" in service.printed
    assert service.address.startswith("http://127.0.0.1:")
    assert service.log == ""
    assert (place.folder / "xdg_data_home" / "draftscope" / "draftscope.db").is_file()
    assert (place.folder / "xdg_data_home" / "draftscope").stat().st_mode & 0o077 == 0


def test_the_exporter_runs_alone(place: Place) -> None:
    with place.serving("exporter") as service:
        assert service.address.endswith("/metrics")
        metrics = httpx.get(service.address)
        assert metrics.text.startswith("# HELP draftscope_run_info")
        assert "draftscope_exporter_scrapes_total 1.0" in metrics.text
        root = service.address.removesuffix("metrics")
        assert [httpx.get(root + path).status_code for path in ("healthz", "", "api/v1/runs")] == [200, 404, 404]
    assert service.log == ""


@pytest.mark.parametrize(("command", "host"), [("serve", "0.0.0.0"), ("serve", "::"), ("exporter", "0.0.0.0")])
def test_it_does_not_listen_openly_without_a_token(place: Place, command: str, host: str) -> None:
    done = place.run(command, "--host", host, "--port", "0")
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"refusing to listen on {host} without a token" in done.stderr
    assert "DRAFTSCOPE_TOKEN" in done.stderr
    assert not (place.folder / "xdg_data_home").exists()


def test_with_a_token_it_listens_openly_and_reading_needs_none(place: Place) -> None:
    place.environ["DRAFTSCOPE_TOKEN"] = "TOKENSECRET"
    with place.serving("serve", "--host", "0.0.0.0") as service:
        assert service.client.get("/healthz").status_code == 200
    assert "TOKENSECRET" not in service.printed + service.log


def test_a_port_that_is_taken_is_named(place: Place) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = place.run("serve", "--port", str(port))
    assert done.returncode == 2
    assert f"cannot listen on 127.0.0.1:{port}" in done.stderr
    assert "another program listens there" in done.stderr
    assert "Traceback" not in done.stderr


def test_wrong_settings_stop_it_before_anything_is_made(place: Place) -> None:
    place.settings("prot = 1")
    done = place.run("serve")
    assert done.returncode == 2
    assert "no setting is named 'prot'" in done.stderr
    assert "did you mean port?" in done.stderr
    assert not (place.folder / "xdg_data_home").exists()


@pytest.mark.parametrize("asked", [("db", "upgrade"), ("serve", "--migrate")])
def test_postgresql_is_not_touched_until_somebody_asks(place: Place, postgres_url: str, asked: tuple[str, ...]) -> None:
    place.environ["DRAFTSCOPE_DATABASE_URL"] = postgres_url
    refused = place.run("serve", "--port", "0")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "the database has no draftscope schema" in refused.stderr
    assert "try: draftscope db upgrade, or draftscope serve --migrate" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert "no schema" in place.run("db", "current").stdout
    if asked == ("db", "upgrade"):
        assert place.run(*asked).returncode == 0
        asked = ("serve",)
    with place.serving(*asked) as service:
        assert service.client.get("/api/v1/runs").json()["total"] == 0
    assert "newest" in place.run("db", "current").stdout


def test_looking_at_the_schema_makes_no_database(place: Place) -> None:
    done = place.run("db", "current")
    assert (done.returncode, "no schema" in done.stdout) == (0, True)
    assert not (place.folder / "xdg_data_home").exists()


def test_the_demo_shows_samples_and_serve_never_does(place: Place) -> None:
    with place.serving("demo") as service:
        runs = service.client.get("/api/v1/runs").json()["runs"]
        assert len(runs) == 4
        assert all(run["sample"] for run in runs)
        (main,) = [run for run in runs if run["headline"].startswith("Two faults")]
        page = service.client.get(f"/runs/{main['id']}").text
        for figure in ("0.449", "2.96", "3.27", "2.86"):
            assert figure in page
        assert "sample" in service.client.get("/").text
        assert 'run="' not in service.client.get("/metrics").text
    assert (place.folder / "xdg_data_home" / "draftscope" / "demo").is_dir()
    with place.serving() as service:
        assert service.client.get("/api/v1/runs").json()["total"] == 0


def test_ingested_runs_are_shown_and_alerted(place: Place, receiver_of: Callable[..., Receiver]) -> None:
    receiver = receiver_of(Answer(500), Answer(204))
    place.settings(
        f'public_url = "https://draftscope.example.org"\n[[alerts.channel]]\nname = "ops"\nkind = "webhook"\n'
        f'url = "{receiver.url}"\nsecret = "{SIGNING}"\n'
    )
    bundle(place)
    with place.serving() as service:
        done = place.run("ingest", "bundle", "--label", "team=search")
        assert done.returncode == 0, done.stderr
        sent = service.until(lambda: re.search(r'status="sent"\} (\d+)', service.client.get("/metrics").text))
        assert int(sent[1]) >= 1
        runs = service.client.get("/api/v1/runs").json()["runs"]
        assert [service.client.get(f"/runs/{run['id']}").status_code for run in runs] == [200] * len(runs)
        service.until(lambda: "alert msg_" in service.log)
    assert {run["labels"]["team"] for run in runs} == {"search"}
    assert "the receiver answered 500 Internal Server Error" in service.log
    messages = [Webhook(SIGNING).verify(got.body, got.headers) for got in receiver.got]
    assert {message["type"] for message in messages} == {"finding.opened"}
    assert all(message["data"]["link"].startswith("https://draftscope.example.org/runs/") for message in messages)


# ---- draftscope ingest


def test_ingest_says_what_it_read_and_repeating_adds_nothing(place: Place) -> None:
    bundle(place)
    first, again = place.run("ingest", "bundle"), place.run("ingest", "bundle")
    assert (first.returncode, again.returncode) == (0, 0), first.stderr + again.stderr
    assert "input.log: read 23 lines" in first.stdout
    assert "1 run" in first.stdout
    assert "Two faults" in first.stdout
    assert "http://127.0.0.1:8787/runs/" in first.stdout
    assert again.stdout.count("known already, nothing new") == 3
    assert first.stdout.partition("\n\n")[2] == again.stdout.partition("\n\n")[2]
    assert max(map(len, first.stdout.splitlines())) <= 80


def test_a_dry_run_says_what_would_be_stored_and_stores_nothing(place: Place) -> None:
    bundle(place)
    done = place.run("ingest", "--dry-run", "bundle", "--validation-accuracy", "0.747")
    assert done.returncode == 0, done.stderr
    assert "input.log: read 23 lines, understood 23; 1 run, " in done.stdout
    assert "/runs/" not in done.stdout
    assert not (place.folder / "xdg_data_home").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "nothing was given to read"),
        (["nowhere.log"], "there is no such file"),
        (["empty.log"], "empty"),
        (["random.log"], "it holds binary data"),
        (["bundle", "--label", "team"], "--label 'team' is not NAME=TEXT"),
        (["bundle", "--engine-version", "new"], "--engine-version 'new' is not a release"),
    ],
)
def test_what_cannot_be_read_is_named_and_ends_with_2(place: Place, arguments: list[str], words: str) -> None:
    bundle(place)
    (place.folder / "empty.log").touch()
    (place.folder / "random.log").write_bytes(bytes(range(256)) * 20)
    done = place.run("ingest", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert "try:" in done.stderr
    assert "Traceback" not in done.stderr


def test_one_bad_file_does_not_hide_the_rest(place: Place) -> None:
    bundle(place)
    done = place.run("ingest", "bundle", "nowhere.log")
    assert done.returncode == 0
    assert "Two faults" in done.stdout
    assert "nowhere.log" in done.stderr
