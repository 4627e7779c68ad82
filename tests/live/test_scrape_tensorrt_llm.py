"""TensorRT-LLM over HTTP: its ``/metrics`` is a queue that is read only when somebody asks for it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pytest

from collector.domain.errors import SourceError, StorageError
from collector.scraping import Watch
from collector.sources.http import Endpoint
from collector.sources.scrape import Scraper
from collector.storage.engine import Database
from collector.storage.runs import load_run
from tests.live.replay import QuietHandler, serve
from tests.unit.metrics.test_counting_engines import BY_POSITION, CONFIGURED, TRTLLM, iteration


@dataclass
class Server:
    """Answers as ``trtllm-serve`` does; ``queue`` holds the iterations that nobody has taken."""

    metrics: str | None = TRTLLM + BY_POSITION + CONFIGURED
    queue: list[dict] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def answer(self, path: str) -> tuple[int, bytes]:
        self.requests.append(path)
        if path == "/prometheus/metrics" and self.metrics is not None:
            return 200, self.metrics.encode()
        if path == "/metrics":
            taken, self.queue = self.queue, []
            return 200, json.dumps(taken).encode()
        if path == "/version":
            return 200, b'{"version": "1.3.0rc5"}'
        if path == "/v1/models":
            return 200, b'{"object":"list","data":[{"id":"m","object":"model","owned_by":"tensorrt_llm"}]}'
        return 404, b'{"detail":"Not Found"}'


@contextmanager
def watching(database: Database, server: Server, *, take: bool = False) -> Iterator[Watch]:
    class Handler(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 - the base class calls it so
            status, body = server.answer(self.path)
            self.send(status, "text/plain", body)

    with serve(Handler) as url, Endpoint(url) as endpoint:
        times = iter(range(1_800_000_000, 1_900_000_000, 15))
        yield Watch(database, Scraper(endpoint, take_from_queue=take, clock=lambda: float(next(times))))


def test_the_queue_is_left_to_its_readers(sqlite_database: Database) -> None:
    server = Server(queue=[iteration(1)])
    with watching(sqlite_database, server) as watch:
        stored = [watch.take(), watch.take()]
    assert "/metrics" not in server.requests
    assert server.queue == [iteration(1)]
    assert stored[0].interval.windows[0].verify_steps == 390
    arguments = stored[0].scrape.info.arguments
    assert arguments.value("speculative_config.decoding_type") == "Eagle3"
    assert arguments.value("served_model_name") == "m"
    assert str(stored[0].scrape.info.engine_version) == "1.3.0rc5"


def test_what_is_taken_on_request_counts_instead_of_the_other_metrics(sqlite_database: Database) -> None:
    server = Server(queue=[iteration(1), iteration(2)])
    with watching(sqlite_database, server, take=True) as watch:
        watch.take()
        watch.take()  # an empty queue
        server.queue = [iteration(3)]
        run_id = watch.take().run_id
    with sqlite_database.reading() as connection:
        windows = load_run(connection, run_id).windows
    assert [window.verify_steps for window in windows] == [8, 4]
    assert sum(window.generated_tokens for window in windows) == 30


def test_the_queue_alone_is_enough(sqlite_database: Database) -> None:
    server = Server(metrics=None, queue=[iteration(1)])
    with watching(sqlite_database, server, take=True) as watch:
        first = watch.take()
        assert first.interval.windows[0].accepted_tokens == 6
        server.queue = [iteration(0)]  # numbers that begin anew: another process
        assert watch.take().restarted


def test_what_was_taken_waits_until_it_is_stored(sqlite_database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is gone from the engine, so a database that is away for a moment must not cost it."""
    server = Server(queue=[iteration(1)])
    with watching(sqlite_database, server, take=True) as watch:
        with monkeypatch.context() as broken:
            broken.setattr("collector.scraping.save_scrape", _refuse)
            with pytest.raises(StorageError):
                watch.take()
        server.queue = [iteration(2)]
        run_id = watch.take().run_id
    with sqlite_database.reading() as connection:
        assert sum(window.verify_steps for window in load_run(connection, run_id).windows) == 8


def _refuse(*_: object, **__: object) -> int:
    raise StorageError("the database is away")


def test_what_is_not_turned_on_is_told_and_nothing_is_taken(sqlite_database: Database) -> None:
    server = Server(metrics=None, queue=[iteration(1)])
    with watching(sqlite_database, server) as watch, pytest.raises(SourceError) as raised:
        watch.take()
    assert "return_perf_metrics: true" in raised.value.hint
    assert server.queue
