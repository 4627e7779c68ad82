"""A small server that answers like SGLang: it replays what a real one answered."""

from __future__ import annotations

import gzip
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

GOLDEN = Path(__file__).parents[1] / "golden" / "metrics" / "sglang"
RECORDINGS = tuple(sorted(folder.name for folder in GOLDEN.iterdir() if folder.is_dir()))


@dataclass(frozen=True)
class Truth:
    """What the requests themselves were answered, summed over some of them."""

    requests: int
    tokens: int
    steps: int
    accepted: int | None

    @property
    def lowest(self) -> float:
        """Length without what was cut off at the end of each request; the first token comes from the prefill."""
        return (self.tokens - self.requests) / self.steps

    @property
    def highest(self) -> float:
        """Length with all drafts that were accepted, cut off or not."""
        return self.tokens / self.steps if self.accepted is None else 1 + self.accepted / self.steps


@dataclass(frozen=True)
class Recording:
    """One folder of recorded answers."""

    name: str

    @property
    def folder(self) -> Path:
        return GOLDEN / self.name

    @cached_property
    def truth(self) -> dict[str, Any]:
        return json.loads((self.folder / "truth.json").read_text())

    @cached_property
    def snapshots(self) -> list[tuple[float, bytes]]:
        """Instants and bodies of ``/metrics``."""
        files = sorted(self.folder.glob("metrics-*.prom.gz"))
        return [
            (int(file.name.split("-")[1].split(".")[0]) / 1000, gzip.decompress(file.read_bytes())) for file in files
        ]

    def process_at(self, at: float) -> int:
        return max(sum(start <= at for start in self.truth["starts"]) - 1, 0)

    def info_at(self, at: float) -> dict[str, Any]:
        """What was said at the start of the process of that instant; at the very end, what was said after the load."""
        number = self.process_at(at)
        name = f"server_info-start{number or ''}" if at < self.snapshots[-1][0] else "server_info"
        return _document(self.folder / f"{name}.json.gz")

    def sums(self, *, before: bool = False, process: int | None = None) -> Truth:
        """The requests of the load; ``before`` adds those before the first snapshot."""
        stages = [s for s in self.truth["stages"] if process is None or s["start"] == process]
        parts = [*(self.truth["before"] if before else []), *stages]
        drafts = [part["accepted_drafts"] for part in parts]
        return Truth(
            sum(part["requests"] for part in parts),
            sum(part["completion_tokens"] for part in parts),
            sum(part["spec_verify_ct"] or 0 for part in parts),
            None if None in drafts else sum(drafts),
        )


@cache
def _document(path: Path) -> dict[str, Any]:
    return json.loads(gzip.decompress(path.read_bytes()))


@dataclass
class Replay:
    """Serves a recording: each request for ``/metrics`` is answered with the next snapshot.

    ``change`` may alter what is served; ``api_key`` is asked for where SGLang asks for it.
    """

    recording: Recording
    snapshots: list[tuple[float, bytes]]
    api_key: str | None = None
    change_info: Callable[[dict[str, Any]], dict[str, Any]] = lambda info: info
    index: int = -1
    requests: list[tuple[str, str]] = field(default_factory=list)
    url: str = ""

    def clock(self) -> float:
        """The instant of the snapshot that was served last."""
        return self.snapshots[max(self.index, 0)][0]

    @property
    def left(self) -> int:
        return len(self.snapshots) - 1 - self.index

    def answer(self, path: str, authorization: str | None) -> tuple[int, str, bytes]:
        if self.api_key and path != "/metrics" and authorization != f"Bearer {self.api_key}":
            return 401, "application/json", b'{"error":"Unauthorized"}'
        if path == "/metrics":
            self.index = min(self.index + 1, len(self.snapshots) - 1)
            return 200, "text/plain; version=0.0.4; charset=utf-8", self.snapshots[self.index][1]
        release_path = self.recording.truth["info_path"]
        if path in (release_path, "/get_server_info"):
            info = self.change_info(self.recording.info_at(self.clock()))
            return 200, "application/json", json.dumps(info).encode()
        if path == "/v1/models":
            return 200, "application/json", b'{"object":"list","data":[{"id":"tiny"}]}'
        return 404, "application/json", b'{"detail":"Not Found"}'


@contextmanager
def replay(name: str, *, only: slice | None = None, **options: Any) -> Iterator[Replay]:
    """A running server that replays a recording, or a part of its snapshots."""
    recording = Recording(name)
    served = Replay(recording, recording.snapshots[only or slice(None)], **options)

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            served.requests.append(("GET", self.path))
            status, kind, body = served.answer(self.path, self.headers.get("Authorization"))
            self.send(status, kind, body)

        def do_POST(self) -> None:
            served.requests.append(("POST", self.path))
            self.send(405, "text/plain", b"")

    with serve(Handler) as served.url:
        yield served


class QuietHandler(BaseHTTPRequestHandler):
    """HTTP/1.1 without a log on stderr."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    timeout = 5

    def log_message(self, *_: object) -> None:
        pass

    def send(self, status: int, kind: str, body: bytes, **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": kind, **headers}.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def serve(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """A server on a free port of this machine; yields its address."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True
        block_on_close = False

        def handle_error(self, request: Any, client_address: Any) -> None:
            """A client that went away is what some tests are about."""

    server = Server(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
