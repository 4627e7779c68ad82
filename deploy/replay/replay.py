"""Serves what an engine's ``/metrics`` answered once, again and again, as a running engine would.

Usage: python replay.py FOLDER [--port 8000]

FOLDER holds scrapes named ``metrics-MILLISECONDS.prom``, plain or as ``.gz``. Counters go on growing from one round
to the next, so the engine seems never to restart. Needs Python alone.
"""

from __future__ import annotations

import argparse
import gzip
import re
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

COUNTER = re.compile(r"_(total|bucket|sum|count)$")


class Recording:
    """Scrapes by their second since the first one."""

    def __init__(self, folder: Path) -> None:
        found = sorted(folder.glob("metrics-*.prom*"))
        if len(found) < 2:
            raise SystemExit(f"{folder} holds fewer than two scrapes named metrics-MILLISECONDS.prom")
        at = [int(re.findall(r"\d+", path.name)[0]) / 1000 for path in found]
        self.scrapes = [(second - at[0], _text(path)) for second, path in zip(at, found, strict=True)]
        self.seconds = self.scrapes[-1][0] + (at[1] - at[0])
        first, last = (dict(_samples(self.scrapes[end][1])) for end in (0, -1))
        self.gain = {
            series: value - first.get(series, 0.0)
            for series, value in last.items()
            if COUNTER.search(series.partition("{")[0])
        }

    def body(self, elapsed: float) -> str:
        """What the engine tells so many seconds after the replay began."""
        rounds, second = divmod(elapsed, self.seconds)
        text = next(text for at, text in reversed(self.scrapes) if at <= second)
        return "\n".join(self._later(line, rounds) for line in text.splitlines()) + "\n"

    def _later(self, line: str, rounds: float) -> str:
        series, _, value = line.rpartition(" ")
        gained = self.gain.get(series, 0.0) * rounds
        return f"{series} {float(value) + gained!r}" if gained else line


def _text(path: Path) -> str:
    body = path.read_bytes()
    return (gzip.decompress(body) if path.suffix == ".gz" else body).decode()


def _samples(text: str) -> list[tuple[str, float]]:
    parts = (line.rpartition(" ") for line in text.splitlines() if line and not line.startswith("#"))
    return [(series, float(value)) for series, _, value in parts]


def main() -> None:
    """Serve until stopped."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--port", type=int, default=8000)
    options = parser.parse_args()
    recording, begun = Recording(options.folder), time.monotonic()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known = self.path.partition("?")[0] == "/metrics"
            body = recording.body(time.monotonic() - begun).encode() if known else b"only /metrics is recorded\n"
            self.send_response(200 if known else 404)
            self.send_header("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Scrapes are no news."""

    with ThreadingHTTPServer(("", options.port), Handler) as server:
        print(f"http://localhost:{server.server_port}/metrics", flush=True)
        server.serve_forever()


if __name__ == "__main__":
    main()
