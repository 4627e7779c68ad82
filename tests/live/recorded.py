"""Servers of engines that count their drafts: each answers ``/metrics`` with the next recorded snapshot."""

from __future__ import annotations

import gzip
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tests.live.replay import QuietHandler, serve

GOLDEN = Path(__file__).parents[1] / "golden" / "metrics"
RECORDED = tuple(
    f"{engine}/{folder.name}"
    for engine in ("llamacpp", "vllm")
    for folder in sorted((GOLDEN / engine).iterdir())
    if folder.is_dir()
)
TOKEN = "86400123456"
"""What llama.cpp says in its header about its start: no time, but the same in all answers of one process."""


@dataclass
class Recorded:
    """One recording, served. ``answers`` and ``snapshots`` may be altered; ``token`` is the process."""

    name: str
    index: int = -1
    token: str = TOKEN
    url: str = ""
    requests: list[str] = field(default_factory=list)
    api_key: str | None = None

    @property
    def engine(self) -> str:
        return self.name.partition("/")[0]

    @cached_property
    def snapshots(self) -> list[tuple[float, bytes]]:
        files = sorted((GOLDEN / self.name).glob("metrics-*.prom.gz"))
        return [(int(re.findall(r"\d+", file.name)[0]) / 1000, gzip.decompress(file.read_bytes())) for file in files]

    @cached_property
    def answers(self) -> dict[str, tuple[int, Any]]:
        return json.loads(gzip.decompress((GOLDEN / self.name / "answers.json.gz").read_bytes()))

    @cached_property
    def truth(self) -> dict[str, Any]:
        return json.loads((GOLDEN / self.name / "truth.json").read_text())

    def last(self, metric: str, **labels: str) -> float:
        """A counter as the engine exposed it at the end, summed over its series."""
        return self.at(-1, metric, **labels)

    def at(self, index: int, metric: str, **labels: str) -> float:
        from collector.metrics.exposition import parse_exposition

        samples = parse_exposition(self.snapshots[index][1], wanted={metric})
        return sum(sample.value for sample in samples if labels.items() <= sample.labels.items())

    def clock(self) -> float:
        return self.snapshots[max(self.index, 0)][0]

    def answer(self, path: str, authorization: str | None) -> tuple[int, str, bytes]:
        if self.api_key and path.startswith("/v1") and authorization != f"Bearer {self.api_key}":
            return 401, "application/json", b'{"error": "Unauthorized"}'
        if path == "/metrics":
            self.index = min(self.index + 1, len(self.snapshots) - 1)
            return 200, "text/plain; version=0.0.4", self.snapshots[self.index][1]
        status, body = self.answers.get(path, (404, {"detail": "Not Found"}))
        return status, "application/json", json.dumps(body).encode()


@contextmanager
def recorded(
    name: str, *, only: slice | None = None, change: Callable[[Recorded], None] | None = None, **options: Any
) -> Iterator[Recorded]:
    """A running server that replays a recording, or a part of its snapshots."""
    served = Recorded(name, **options)
    served.snapshots = served.snapshots[only or slice(None)]
    if change is not None:
        change(served)

    class Handler(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 - the base class calls it so
            served.requests.append(self.path)
            status, kind, body = served.answer(self.path, self.headers.get("Authorization"))
            headers = {"Process-Start-Time-Unix": served.token} if served.engine == "llamacpp" else {}
            self.send(status, kind, body, **headers)

    with serve(Handler) as served.url:
        yield served
