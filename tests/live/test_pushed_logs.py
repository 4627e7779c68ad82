"""Logs that senders post: in every form, once, whole, and kept whatever happens after the answer."""

from __future__ import annotations

import asyncio
import gzip
import json
import signal
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
import zstandard

from analysis.thresholds import Thresholds
from collector import pushed_logs as pushed_module
from collector.log_writer import Owner
from collector.pushed_logs import PushedLogs
from collector.sources.pushed import lines_of
from collector.storage.engine import Database, open_database
from dashboard.api import bodies
from dashboard.diagnoses import Diagnoses
from dashboard.masked import Secret
from dashboard.service import build_app
from dashboard.settings import Service, Settings
from tests.live.test_loki import RESTARTS, list_all, of_file, runs
from tests.out.test_serve import Place

assert of_file  # a fixture
LINES = RESTARTS.splitlines()


@dataclass
class Posting:
    """An app with its pushed logs, asked in this process."""

    app: Any
    pushed: PushedLogs

    def post(self, body: bytes, path: str = "/api/v1/logs", **headers: str) -> httpx.Response:
        async def ask() -> httpx.Response:
            transport = httpx.ASGITransport(self.app, raise_app_exceptions=False)
            async with httpx.AsyncClient(transport=transport, base_url="http://draftscope.test") as client:
                sent = {name.replace("_", "-"): text for name, text in headers.items()}
                return await client.post(path, content=body, headers=sent)

        return asyncio.run(ask())


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with open_database(f"sqlite:///{tmp_path / 'runs.db'}") as opened:
        yield opened


@pytest.fixture
def service_of(database: Database, tmp_path: Path) -> Iterator[Callable[..., Posting]]:
    opened: list[PushedLogs] = []

    def start(token: str | None = None) -> Posting:
        for pushed in opened:
            pushed.close()
        opened.append(PushedLogs(Owner(database, time.time), tmp_path / "pushed"))
        settings = Settings(Service(token=Secret(token) if token else None))
        app = build_app(Diagnoses(database, Thresholds()), settings, pushed=opened[-1])
        return Posting(app, opened[-1])

    yield start
    opened[-1].close()


def vector_array(lines: list[str]) -> bytes:
    fields = {"file": "/logs/server.log", "host": "gpu7", "source_type": "file"}
    return json.dumps([{"message": line, "timestamp": "2026-11-30T05:00:00Z", **fields} for line in lines]).encode()


def fluent_bit_lines(lines: list[str]) -> bytes:
    pod = {"pod_name": "sglang-0", "namespace_name": "llm", "container_name": "server", "labels": {"app": "x"}}
    documents = (
        {"date": 1795.5 + n, "log": line + "\n", "stream": "stderr", "kubernetes": pod} for n, line in enumerate(lines)
    )
    return "".join(json.dumps(document) + "\n" for document in documents).encode()


def fluent_bit_stream(lines: list[str]) -> bytes:
    return "".join(json.dumps({"date": n, "log": line}) for n, line in enumerate(lines)).encode()


FORMS: dict[str, tuple[Callable[[list[str]], bytes], str, dict[str, str]]] = {
    "plain": (lambda lines: "".join(line + "\n" for line in lines).encode(), "text/plain", {}),
    "windows": (lambda lines: "\r\n".join(lines).encode(), "text/plain", {}),
    "vector array": (vector_array, "application/json", {"file": "/logs/server.log", "host": "gpu7"}),
    "vector ndjson": (
        lambda lines: "\n".join(json.dumps({"message": line}) for line in lines).encode(), "application/x-ndjson", {},
    ),
    "fluent bit json_lines": (
        fluent_bit_lines, "application/x-ndjson", {"namespace": "llm", "pod": "sglang-0", "container": "server"},
    ),
    "fluent bit json_stream": (fluent_bit_stream, "application/json", {}),
    "texts": (lambda lines: json.dumps(lines).encode(), "application/json", {}),
}  # fmt: skip


@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_lines_of_the_file(form: str) -> None:
    write, _, labels = FORMS[form]
    assert lines_of(write(LINES), {"team": "search"}) == {
        tuple(sorted({**labels, "team": "search"}.items())): [line.encode() for line in LINES]
    }


@pytest.mark.parametrize("form", ["plain", "vector array", "fluent bit json_lines"])
def test_what_senders_post_gives_the_rows_of_the_file(
    service_of: Callable[..., Posting], database: Database, of_file: Callable[[str], list[Any]], form: str
) -> None:
    write, kind, labels = FORMS[form]
    service = service_of()
    names = set()
    for first in range(0, len(LINES), 40):
        part = LINES[first : first + 40]
        answer = service.post(write(part), "/api/v1/logs?team=search&deployment=chat", Content_Type=kind)
        assert answer.status_code == 200, answer.text
        assert (answer.json()["lines"], answer.json()["repeated"]) == (len(part), 0)
        names |= set(answer.json()["logs"])
    service.pushed.store()
    assert len(names) == 1
    assert runs(database) == of_file(RESTARTS)
    for run in list_all(database):
        assert run.labels == {"team": "search", **labels}
        assert run.deployment == "chat"


@pytest.mark.parametrize(
    ("encoding", "pack"),
    [("gzip", gzip.compress), ("deflate", zlib.compress), ("zstd", zstandard.ZstdCompressor().compress), ("", bytes)],
)
def test_packed_bodies(
    service_of: Callable[..., Posting],
    database: Database,
    of_file: Callable[[str], list[Any]],
    encoding: str,
    pack: Any,
) -> None:
    service = service_of()
    assert service.post(pack(RESTARTS.encode()), Content_Encoding=encoding).status_code == 200
    service.pushed.store()
    assert runs(database) == of_file(RESTARTS)


def test_a_body_that_is_sent_again_adds_nothing(
    service_of: Callable[..., Posting], database: Database, of_file: Callable[[str], list[Any]]
) -> None:
    service = service_of()
    bodies = [vector_array(LINES[first : first + 50]) for first in range(0, len(LINES), 50)]
    for number, body in enumerate(bodies):
        service.post(body)
        if number % 2:
            service.pushed.store()
            service = service_of()  # the service was started anew
        again = service.post(body).json()
        assert (again["lines"], again["repeated"]) == (0, len(json.loads(body)))
    service.pushed.store()
    assert runs(database) == of_file(RESTARTS)


def test_a_key_tells_repeated_bodies_from_equal_ones(service_of: Callable[..., Posting]) -> None:
    service = service_of()
    answers = [service.post(b"same line\n", Idempotency_Key=key).json()["lines"] for key in ("a", "b", "a")]
    assert answers == [1, 1, 0]


def test_labels_tell_logs_apart(service_of: Callable[..., Posting], database: Database) -> None:
    service = service_of()
    service.post(RESTARTS.encode(), "/api/v1/logs?host=gpu1")
    service.post(RESTARTS.encode(), "/api/v1/logs?host=gpu2")
    service.pushed.store()
    hosts = sorted(str(run.labels["host"]) for run in list_all(database))
    assert hosts == ["gpu1"] * 3 + ["gpu2"] * 3


@pytest.mark.parametrize(
    ("body", "headers", "status", "words"),
    [
        (b'[{"message": "a"}, {"message"', {}, 400, "no JSON"),
        (b'{"date": 3}', {}, 400, "document 1 holds no line"),
        (b'{"log": 3}', {}, 400, "document 1 holds no line"),
        (b'[["a"]]', {"Content_Type": "application/json"}, 200, ""),
        (b"xyzw", {"Content_Encoding": "gzip"}, 400, "damaged"),
        (gzip.compress(b"line\n" * 100, mtime=0)[:-10], {"Content_Encoding": "gzip"}, 400, "cut off"),
        (b"x", {"Content_Encoding": "snappy"}, 415, "use gzip"),
        (b"\x82", {"Content_Type": "application/msgpack"}, 415, "JSON lines"),
        (b"", {}, 200, ""),
    ],
)
def test_what_cannot_be_read_is_told(
    service_of: Callable[..., Posting], body: bytes, headers: dict[str, str], status: int, words: str
) -> None:
    answer = service_of().post(body, **headers)
    assert answer.status_code == status
    assert words in answer.text


def test_bodies_are_bounded_packed_and_unpacked(
    service_of: Callable[..., Posting], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "LARGEST_BODY", 10_000)
    monkeypatch.setattr(bodies, "LARGEST_CONTENT", 100_000)
    service = service_of()
    assert service.post(b"x" * 10_001).status_code == 413
    bomb = gzip.compress(b"x" * 10_000_000)
    assert len(bomb) < 10_000 or service.post(bomb, Content_Encoding="gzip").status_code == 413
    small = gzip.compress(b"x" * 100_001)
    assert service.post(small, Content_Encoding="gzip").status_code == 413
    assert service.post(gzip.compress(b"x" * 99_999), Content_Encoding="gzip").status_code == 200


def test_logs_are_bounded_in_number(service_of: Callable[..., Posting], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pushed_module, "MOST_LOGS", 3)
    service = service_of()
    statuses = [service.post(b"line\n", f"/api/v1/logs?request={number}").status_code for number in range(5)]
    assert statuses == [200, 200, 200, 400, 400]
    assert service.post(b"line\n", "/api/v1/logs?request=1").status_code == 200


def test_writing_needs_the_token(service_of: Callable[..., Posting], database: Database) -> None:
    service = service_of(token="t0ken")
    assert service.post(RESTARTS.encode()).status_code == 401
    assert service.post(RESTARTS.encode(), Authorization="Bearer other").status_code == 401
    assert not list_all(database)
    assert service.post(RESTARTS.encode(), Authorization="Bearer t0ken").status_code == 200
    service = service_of()
    assert service.post(b"x\n", Origin="http://elsewhere.test").status_code == 403


def test_engines_lines_that_begin_with_a_bracket_are_no_json() -> None:
    line = b"[2026-11-30 05:00:00] server_args=ServerArgs(model_path='x')\n"
    assert lines_of(line, {}) == {(): [line.rstrip()]}


def test_what_was_answered_outlasts_a_service_that_is_killed(
    tmp_path: Path, of_file: Callable[[str], list[Any]]
) -> None:
    place = Place(tmp_path)
    place.settings(f'database_url = "sqlite:///{tmp_path}/runs.db"\n')
    half = len(LINES) // 2
    body = "".join(line + "\n" for line in LINES[:half]).encode()
    with pytest.raises(AssertionError), place.serving() as running:  # noqa: PT012 - it did not end by itself
        assert running.client.post("/api/v1/logs?host=gpu7", content=body).json()["lines"] == half
        running.process.send_signal(signal.SIGKILL)
        running.process.wait()
    with place.serving() as running:
        assert running.client.post("/api/v1/logs?host=gpu7", content=body).json()["repeated"] == half
        rest = "".join(line + "\n" for line in LINES[half:]).encode()
        assert running.client.post("/api/v1/logs?host=gpu7", content=rest).json()["lines"] == len(LINES) - half
        running.until(lambda: len(running.client.get("/api/v1/runs").json()["runs"]) == 3)
    with open_database(f"sqlite:///{tmp_path / 'runs.db'}") as database:
        assert runs(database) == of_file(RESTARTS)
