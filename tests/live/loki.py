"""A small server that answers as Loki's documentation says: no Loki can be had from where the tests get their programs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl

from tests.live.replay import QuietHandler, serve

Labels = Mapping[str, str]


@dataclass
class Kept:
    """What the server keeps: entries by stream, and for which tenant. ``requests`` were asked."""

    tenant: str = ""
    key: str = ""
    most: int = 5000
    streams: dict[tuple[tuple[str, str], ...], list[tuple[int, str]]] = field(default_factory=dict)
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    url: str = ""

    def push(self, labels: Labels, entries: list[tuple[int, str]]) -> None:
        self.streams.setdefault(tuple(sorted(labels.items())), []).extend(entries)

    def answer(self, path: str, form: dict[str, str]) -> tuple[int, Any]:
        start, end = int(form["start"]), int(form["end"])
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
