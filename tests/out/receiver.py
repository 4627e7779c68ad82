"""A receiver of webhooks on this machine that answers as it is told, and keeps what it got."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass(frozen=True)
class Answer:
    """How to answer one request: a status, or one of the ways in which there is none."""

    status: int = 204
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""
    silent_seconds: float = 0.0
    reset: bool = False
    drip_body: bool = False


@dataclass
class Got:
    """One request as it arrived."""

    path: str
    headers: dict[str, str]
    body: bytes
    answer: Answer


@dataclass
class Receiver:
    """The server; ``answers`` are given in turn, the last one for good."""

    url: str
    answers: list[Answer]
    got: list[Got] = field(default_factory=list)
    arrivals: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))


@contextmanager
def receiving(answers: Sequence[Answer] = ()) -> Iterator[Receiver]:
    receiver = Receiver("", list(answers) or [Answer()])
    turn = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            headers = {name.lower(): value for name, value in self.headers.items()}
            with turn:
                answer = receiver.answers.pop(0) if len(receiver.answers) > 1 else receiver.answers[0]
                receiver.got.append(Got(self.path, headers, body, answer))
            receiver.arrivals.release()
            self.close_connection = True
            if answer.reset:
                linger = struct.pack("ii", 1, 0)
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
                self.connection.close()
                return
            time.sleep(answer.silent_seconds)
            self.send_response(answer.status)
            for name, value in answer.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", "1000000" if answer.drip_body else str(len(answer.body)))
            self.end_headers()
            self.wfile.write(answer.body)

        def log_message(self, *_: Any) -> None:
            """Be quiet."""

        def finish(self) -> None:
            try:
                super().finish()
            except OSError:  # it was reset on purpose, or the other side had enough
                self.rfile.close()

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """A sender that hangs up is what some of these tests are about."""

    server = Server(("127.0.0.1", 0), Handler)
    receiver.url = f"http://127.0.0.1:{server.server_address[1]}/hook-PATHSECRET?key=QUERYSECRET"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield receiver
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
