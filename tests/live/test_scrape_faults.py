"""Servers that do not answer as an engine should: what a person is told, and that nothing false is stored."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from collector.domain.errors import InputError, SourceError
from collector.scraping import Watch
from collector.sources.http import LARGEST_BODY, Endpoint
from collector.sources.scrape import Scraper
from collector.storage.engine import Database
from collector.storage.runs import list_runs
from tests.live.replay import QuietHandler, Recording, replay, serve

SNAPSHOT = Recording("0.5.9-eagle3").snapshots[-1][1]
TEXT = "text/plain; version=0.0.4"


def answering(metrics: Callable[[QuietHandler], None], info: Callable[[QuietHandler], None] | None = None):
    class Handler(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 - the base class calls it so
            (metrics if self.path == "/metrics" else info or nothing_there)(self)

    return serve(Handler)


def nothing_there(handler: QuietHandler) -> None:
    handler.send(404, "application/json", b'{"detail":"Not Found"}')


def saying(status: int, body: bytes, kind: str = TEXT) -> Callable[[QuietHandler], None]:
    return lambda handler: handler.send(status, kind, body)


def broken_off(handler: QuietHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(SNAPSHOT)))
    handler.end_headers()
    handler.wfile.write(SNAPSHOT[: len(SNAPSHOT) // 2])
    handler.wfile.flush()
    handler.close_connection = True
    handler.connection.shutdown(socket.SHUT_RDWR)


def half_a_line(handler: QuietHandler) -> None:
    handler.send(200, TEXT, SNAPSHOT[: SNAPSHOT.rindex(b"\n", 0, -100) - 3])


def trickling(handler: QuietHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(SNAPSHOT)))
    handler.end_headers()
    for byte in SNAPSHOT[:200]:
        handler.wfile.write(bytes([byte]))
        handler.wfile.flush()
        time.sleep(0.05)


def hanging(handler: QuietHandler) -> None:
    _RELEASE.wait(5)
    handler.close_connection = True


def endless(handler: QuietHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(LARGEST_BODY * 64))
    handler.end_headers()
    for _ in range(LARGEST_BODY * 2 >> 20):
        handler.wfile.write(b"#" * (1 << 20))


def endless_in_chunks(handler: QuietHandler) -> None:
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    for _ in range(LARGEST_BODY * 2 >> 20):
        handler.wfile.write(b"100000\r\n" + b"#" * (1 << 20) + b"\r\n")


def hanging_in_the_middle(handler: QuietHandler) -> None:
    handler.send_response(200)
    handler.send_header("Content-Length", str(len(SNAPSHOT)))
    handler.end_headers()
    handler.wfile.write(SNAPSHOT[: len(SNAPSHOT) // 2])
    handler.wfile.flush()
    hanging(handler)


_RELEASE = threading.Event()


@pytest.fixture(autouse=True)
def released() -> Iterator[None]:
    _RELEASE.clear()
    yield
    _RELEASE.set()


@contextmanager
def watching(database: Database, url: str, timeout: float = 5.0) -> Iterator[Watch]:
    with Endpoint(url, timeout=timeout) as endpoint:
        yield Watch(database, Scraper(endpoint))


OTHER = b'# TYPE other:num_requests_running gauge\nother:num_requests_running{model_name="m"} 1.0\n'
DUPLICATED = SNAPSHOT + b'sglang:num_running_reqs{a="b",a="c"} 1.0\n'
TWICE = SNAPSHOT + SNAPSHOT.splitlines(keepends=True)[2]

FAULTS = [
    (
        "html",
        saying(200, b"<!DOCTYPE html><html><body>Sign in</body></html>", "text/html"),
        "web page",
        "address of the engine",
    ),
    ("other", saying(200, OTHER), "not the metrics of an engine that is read", "llama.cpp, SGLang, TensorRT-LLM, vLLM"),
    ("nothing known", saying(200, b"up 1\n"), "not the metrics of an engine that is read", "SGLang"),
    ("missing", nothing_there, "exposes no metrics", "--enable-metrics"),
    ("error", saying(500, b"oops"), "answered 500", "log"),
    ("moved", saying(302, b""), "answered 302", "leads to"),
    ("forbidden", saying(403, b""), "refuses this key", "--api-key"),
    ("empty", saying(200, b""), "empty", "log"),
    ("broken off", broken_off, "broke off", "log"),
    ("half a line", half_a_line, "cut off", "curl"),
    ("no line", saying(200, SNAPSHOT + b"oh no\n"), "cannot be read", "curl"),
    ("label twice", saying(200, DUPLICATED), "label a appears twice", "curl"),
    ("series twice", saying(200, TWICE), "same series appears twice", "curl"),
    ("too large", endless, "larger than 16 MiB", "inference engine"),
    ("too large, of no stated length", endless_in_chunks, "larger than 16 MiB", "inference engine"),
]


@pytest.mark.parametrize(("metrics", "what", "hint"), [f[1:] for f in FAULTS], ids=[f[0] for f in FAULTS])
def test_a_wrong_answer_is_told_with_what_to_do(
    sqlite_database: Database, metrics: Callable[[QuietHandler], None], what: str, hint: str
) -> None:
    with answering(metrics, saying(200, b"{}", "application/json")) as url, watching(sqlite_database, url) as watch:
        with pytest.raises(SourceError, match=what) as raised:
            watch.take()
        assert hint in raised.value.hint
        assert raised.value.where.startswith(f"{url}/metrics")
    with sqlite_database.reading() as connection:
        assert not list_runs(connection).runs


@pytest.mark.parametrize("behaviour", [hanging, hanging_in_the_middle, trickling])
def test_an_answer_that_does_not_end_is_given_up(
    sqlite_database: Database, behaviour: Callable[[QuietHandler], None]
) -> None:
    with answering(behaviour) as url, watching(sqlite_database, url, timeout=0.3) as watch:
        with pytest.raises(SourceError, match=r"within 0\.3 s") as raised:
            watch.take()
        assert "--timeout" in raised.value.hint
        _RELEASE.set()


def test_nothing_listening_is_told(sqlite_database: Database) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with watching(sqlite_database, f"127.0.0.1:{port}") as watch, pytest.raises(SourceError) as raised:
            watch.take()
    assert raised.value.what == "nothing answers at this address"
    assert "refused" in raised.value.why
    assert raised.value.where == f"http://127.0.0.1:{port}/v1/models"


@pytest.mark.parametrize(
    ("info", "what"),
    [
        (saying(401, b'{"error":"Unauthorized"}'), "wants a key"),
        (saying(500, b""), "answered 500"),
        (saying(200, b"<html></html>"), "not a JSON document"),
        (saying(200, b"[1, 2]"), "not a JSON document"),
        (saying(200, b"[" * 100_000), "not a JSON document"),
    ],
    ids=["key", "error", "page", "list", "deep"],
)
def test_the_first_scrape_needs_to_know_what_runs(
    sqlite_database: Database, info: Callable[[QuietHandler], None], what: str
) -> None:
    with answering(saying(200, SNAPSHOT), info) as url, watching(sqlite_database, url) as watch:
        with pytest.raises(SourceError, match=what) as raised:
            watch.take()
        assert raised.value.where == f"{url}/server_info"


def test_metrics_alone_are_taken_where_there_is_nothing_else(sqlite_database: Database) -> None:
    with answering(saying(200, SNAPSHOT)) as url, watching(sqlite_database, url) as watch:
        stored = watch.take()
    assert "404" in stored.scrape.notes[0]
    assert not stored.scrape.info.arguments
    (window,) = stored.interval.windows
    assert window.generated_tokens == 4441.0
    assert window.verify_steps is None


def test_an_information_endpoint_that_fails_later_costs_no_scrape(sqlite_database: Database) -> None:
    with replay("0.5.9-eagle3") as served, watching(sqlite_database, served.url) as watch:
        watch.take()
        answer = served.answer

        def failing(path: str, authorization: str | None):
            return (503, "text/plain", b"") if path == "/server_info" else answer(path, authorization)

        served.answer = failing
        stored = watch.take()
    assert "answered 503" in stored.scrape.notes[0]
    assert stored.interval.windows[0].generated_tokens == 355 - 259


@pytest.mark.parametrize(
    ("text", "address", "host", "port"),
    [
        ("gpu7:30000", "http://gpu7:30000", "gpu7", 30000),
        ("http://gpu7:30000/metrics", "http://gpu7:30000", "gpu7", 30000),
        ("https://gpu7/", "https://gpu7", "gpu7", 443),
        ("http://10.0.0.7", "http://10.0.0.7", "10.0.0.7", 80),
        ("http://proxy/engines/7/metrics/", "http://proxy/engines/7", "proxy", 80),
        ("http://[::1]:30000", "http://[::1]:30000", "::1", 30000),
        ("http://user:secret@gpu7:30000", "http://gpu7:30000", "gpu7", 30000),
    ],
)
def test_addresses_as_people_write_them(text: str, address: str, host: str, port: int) -> None:
    with Endpoint(text) as endpoint:
        assert (endpoint.address, endpoint.host, endpoint.port) == (address, host, port)


@pytest.mark.parametrize(
    "text", ["", "ftp://gpu7", "http://", "http://gpu7:port", "http://gpu7:30000/?a=b", "http://gpu7:0", "a b"]
)
def test_what_is_no_address_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(InputError) as raised:
        Endpoint(text)
    assert "http://" in raised.value.hint


@pytest.mark.parametrize("key", ["ключ", "a\nb", "a\x7fb"])
def test_a_key_that_no_header_can_hold_is_refused(key: str) -> None:
    with pytest.raises(InputError, match="key"):
        Endpoint("gpu7:30000", api_key=key)


def test_credentials_in_the_address_are_used_and_not_shown(sqlite_database: Database) -> None:
    seen: list[str | None] = []

    def metrics(handler: QuietHandler) -> None:
        seen.append(handler.headers.get("Authorization"))
        handler.send(500, TEXT, b"")

    with (
        answering(metrics) as url,
        watching(sqlite_database, url.replace("//", "//user:topsecret@")) as watch,
        pytest.raises(SourceError) as raised,
    ):
        watch.take()
    assert seen[0].startswith("Basic ")
    assert "topsecret" not in str(raised.value)
