"""A small server that answers as Loki's documentation says, and Loki itself where its program is at hand.

Debian has no package of Grafana Loki (its ``loki`` is another program): ``DRAFTSCOPE_TEST_LOKI`` names the program.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import httpx

from tests.live.replay import QuietHandler, serve
from tests.live.stores import free_port, program

Labels = Mapping[str, str]
PROGRAM = os.environ.get("DRAFTSCOPE_TEST_LOKI", "")
LONGEST = (30 * 24 + 1) * 3600 * 10**9
CONFIG = """
auth_enabled: {several}
analytics: {{reporting_enabled: false}}
server: {{http_listen_address: 127.0.0.1, http_listen_port: {port}, grpc_listen_address: 127.0.0.1, grpc_listen_port: {inner}}}
common:
  path_prefix: {folder}
  replication_factor: 1
  ring: {{instance_addr: 127.0.0.1, kvstore: {{store: inmemory}}}}
  storage: {{filesystem: {{chunks_directory: {folder}/chunks, rules_directory: {folder}/rules}}}}
frontend: {{address: 127.0.0.1}}
ingester: {{lifecycler: {{min_ready_duration: 0s}}}}
schema_config:
  configs:
    - {{from: 2020-01-01, store: tsdb, object_store: filesystem, schema: v13, index: {{prefix: index_, period: 24h}}}}
limits_config: {{ingestion_rate_mb: 100, per_stream_rate_limit: 100MB, increment_duplicate_timestamp: {increment}}}
"""


@dataclass
class Kept:
    """What the server keeps: entries by stream, and for which tenant. ``requests`` were asked.

    ``increment`` says whether Loki gives lines of one instant instants of their own; the small server never does.
    """

    tenant: str = ""
    key: str = ""
    most: int = 5000
    increment: bool = True
    streams: dict[tuple[tuple[str, str], ...], list[tuple[int, str]]] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    url: str = ""

    def push(self, labels: Labels, entries: list[tuple[int, str]]) -> None:
        self.streams.setdefault(tuple(sorted(labels.items())), []).extend(entries)

    def answer(self, path: str, form: dict[str, str]) -> tuple[int, Any]:
        start, end = int(form["start"]), int(form["end"])
        if end - start > LONGEST:
            return 400, "the query time range exceeds the limit"
        if path == "/loki/api/v1/series":
            found = [
                dict(labels)
                for labels, entries in self.streams.items()
                if fits(form["match[]"], dict(labels)) and any(start <= at < end for at, _ in entries)
            ]
            return 200, found
        if path != "/loki/api/v1/query_range":
            return 404, None
        limit = int(form["limit"])
        if limit > self.most:
            return 400, f"max entries limit per query exceeded, limit > max_entries_limit ({limit} > {self.most})"
        entries = sorted(
            (at, number, labels, line)
            for labels, stream in self.streams.items()
            if fits(form["query"], dict(labels))
            for number, (at, line) in enumerate(stream)
            if start <= at < end
        )[:limit]
        result: dict[Any, list[list[str]]] = {}
        for at, _, labels, line in entries:
            result.setdefault(labels, []).append([str(at), line])
        return 200, {
            "resultType": "streams",
            "result": [
                {"stream": {**dict(labels), "detected_level": "info"}, "values": v} for labels, v in result.items()
            ],
            "stats": {},
        }


class Running(Kept):
    """Loki itself; it is sent what the small server keeps."""

    def push(self, labels: Labels, entries: list[tuple[int, str]]) -> None:
        super().push(labels, entries)
        values = [[str(at), line] for at, line in entries]
        headers = {"X-Scope-OrgID": self.tenant} if self.tenant else {}
        body = {"streams": [{"stream": dict(labels), "values": values}]}
        answer = httpx.post(f"{self.url}/loki/api/v1/push", json=body, headers=headers, timeout=60)
        assert answer.status_code == 204, answer.text


@contextmanager
def real_loki(folder: Path, **options: Any) -> Iterator[Running]:
    """Loki with a storage of its own."""
    running = Running(**options)
    port, inner = free_port(), free_port()
    facts = {
        "several": bool(running.tenant),
        "port": port,
        "inner": inner,
        "folder": folder / "data",
        "increment": running.increment,
    }
    (folder / "loki.yaml").write_text(CONFIG.format(**facts))
    running.url = f"http://127.0.0.1:{port}"
    with program([PROGRAM, "-config.file=loki.yaml"], folder, f"{running.url}/ready"):
        yield running


def fits(selector: str, labels: Labels) -> bool:
    matchers = re.findall(r'(\w+)(=~|!=|!~|=)"((?:[^"\\]|\\.)*)"', selector)
    assert matchers
    assert any(value for _, operator, value in matchers if operator in ("=", "=~")), "queries need a non-empty matcher"
    for name, operator, value in matchers:
        plain = json.loads(f'"{value}"')
        same = re.fullmatch(plain, labels.get(name, "")) if "~" in operator else labels.get(name, "") == plain
        if bool(same) == operator.startswith("!"):
            return False
    return True


@contextmanager
def loki(**options: Any) -> Iterator[Kept]:
    kept = Kept(**options)

    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 - the base class calls it so
            form = dict(parse_qsl(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            kept.requests.append((self.path, form))
            if kept.tenant and self.headers.get("X-Scope-OrgID") != kept.tenant:
                self.send(401, "text/plain", b"no org id\n")
                return
            if kept.key and self.headers.get("Authorization") != f"Bearer {kept.key}":
                self.send(403, "text/plain", b"")
                return
            status, data = kept.answer(self.path, form)
            if status == 200:
                self.send(200, "application/json", json.dumps({"status": "success", "data": data}).encode())
            else:
                self.send(status, "text/plain", str(data or "404 page not found").encode())

    with serve(Handler) as kept.url:
        yield kept
