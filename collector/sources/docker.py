"""Containers of a Docker host that carry a label: where their engines answer, and what they write.

Source: docs.docker.com/reference/api/engine, version 1.41 and later.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import httpx

from collector.domain.errors import InputError, SourceError
from collector.sources.discovery import Group
from collector.sources.entries import Log, Page
from collector.sources.stamped import entries_of

DEFAULT_HOST: Final = "unix:///var/run/docker.sock"
PORT_LABEL: Final = "draftscope.port"
LARGEST_ANSWER: Final = 64 << 20
"""Bytes of a container's log that are read at once."""
_TIMEOUT: Final = 10.0
_OK: Final = 200
_FRAME: Final = 8
_ANYWHERE: Final = ("", "0.0.0.0", "::")  # noqa: S104 - names, not a bind
_COMPOSE: Final = {"com.docker.compose.project": "project", "com.docker.compose.service": "service"}


class Docker:
    """The containers that carry a label (``engine`` or ``engine=vllm``), on a host (``unix://`` or ``tcp://``)."""

    def __init__(self, select: str, host: str = "") -> None:
        """Nothing is asked yet; without ``host`` it is that of ``DOCKER_HOST``, else this machine.

        Raises:
            InputError: the host is none.
        """
        self._select = select
        self._host = host or os.environ.get("DOCKER_HOST") or DEFAULT_HOST
        scheme, _, place = self._host.partition("://")
        if scheme not in ("unix", "tcp", "http", "https") or not place:
            raise InputError(f"{self._host!r} is no Docker host", hint=f"for instance {DEFAULT_HOST}")
        self._socket = Path(place) if scheme == "unix" else None
        transport = httpx.HTTPTransport(uds=place) if scheme == "unix" else None
        base = "http://docker" if scheme == "unix" else f"{'https' if scheme == 'https' else 'http'}://{place}"
        self._client = httpx.Client(transport=transport, base_url=base, timeout=_TIMEOUT, trust_env=False)

    @property
    def name(self) -> str:
        """Host and label."""
        return f"{self._host} {self._select}"

    def groups(self, port: int = 0) -> list[Group]:
        """Where the engines of running containers answer.

        The port is the given one, else that of the label ``draftscope.port``, else the lowest one. It is asked for
        on the host where it is published there, else in the container's network.

        Raises:
            SourceError: Docker does not answer as it should.
        """
        found = [_group(container, port) for container in self._containers()]
        return [group for group in found if group is not None]

    def logs(self, since: int) -> Sequence[Log]:
        """The logs of the containers, also of those that have stopped."""
        del since
        return [
            Log(f"{self._host} {_name(container)} {container['Id'][:12]}", _labels(container), (container["Id"],))
            for container in self._containers(stopped=True)
        ]

    def page(self, log: Log, since: int) -> Page:
        """The next lines of a container, standard output and error in the order of time."""
        asked = {"stdout": "1", "stderr": "1", "timestamps": "1", "since": f"{since // 10**9}.{since % 10**9:09d}"}
        body, more = self._get(f"/containers/{log.key[0]}/logs", asked)
        streams = _streams(body)
        entries = sorted((entry for text in streams for entry in entries_of(text)), key=lambda entry: entry.at)
        return Page(entries, more)

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def _containers(self, *, stopped: bool = False) -> list[Any]:
        asked = {"filters": json.dumps({"label": [self._select]}), "all": "1" if stopped else "0"}
        body, _ = self._get("/containers/json", asked)
        try:
            listed = json.loads(body)
        except ValueError:
            listed = None
        if not isinstance(listed, list):
            raise SourceError("this is not Docker's answer", where=self._host, hint="check the host")
        return listed

    def _get(self, path: str, asked: Mapping[str, str]) -> tuple[bytes, bool]:
        """An answer, as far as it is not too large; whether it is."""
        if self._socket is not None and not self._socket.exists():
            raise self._silent("there is no such socket")
        try:
            with self._client.stream("GET", path, params=asked) as answer:
                if answer.status_code != _OK:
                    why = answer.read()[:200].decode("utf-8", "replace")
                    raise SourceError(f"Docker answered {answer.status_code}", why=why, where=self._host)
                parts: list[bytes] = []
                size = 0
                for part in answer.iter_bytes():
                    parts.append(part)
                    size += len(part)
                    if size >= LARGEST_ANSWER:
                        return b"".join(parts), True
                return b"".join(parts), False
        except httpx.HTTPError as error:
            raise self._silent(str(error)) from error

    def _silent(self, why: str) -> SourceError:
        return SourceError(
            "Docker does not answer", why=why, where=self._host,
            hint="is it running, and may this user use its socket (group docker)?",
        )  # fmt: skip


def _group(container: Any, port: int) -> Group | None:
    """Where one container's engine answers; ``None`` where nothing says."""
    labels = container.get("Labels") or {}
    stated = labels.get(PORT_LABEL, "")
    wanted = port or (int(stated) if stated.isdecimal() else 0)
    ports = sorted((item for item in container.get("Ports") or [] if item.get("Type") == "tcp"), key=_private)
    fitting = [item for item in ports if not wanted or wanted in (item.get("PrivatePort"), item.get("PublicPort"))]
    published = next((item for item in fitting if item.get("PublicPort")), None)
    if published is not None:
        own = published.get("IP", "")
        place = "127.0.0.1" if own in _ANYWHERE else own
        return Group(
            (f"http://{f'[{place}]' if ':' in place else place}:{published['PublicPort']}",), _labels(container)
        )
    networks = (container.get("NetworkSettings") or {}).get("Networks") or {}
    inner = wanted or next((item["PrivatePort"] for item in fitting), 0)
    address = next((item["IPAddress"] for item in networks.values() if item.get("IPAddress")), "")
    if not address and "host" in networks:
        address = "127.0.0.1"
    return Group((f"http://{address}:{inner}",), _labels(container)) if address and inner else None


def _private(item: Mapping[str, Any]) -> int:
    return int(item.get("PrivatePort") or 0)


def _name(container: Any) -> str:
    names = container.get("Names") or [container["Id"][:12]]
    return str(names[0]).lstrip("/")


def _labels(container: Any) -> dict[str, str]:
    own = container.get("Labels") or {}
    return {"container": _name(container)} | {name: own[label] for label, name in _COMPOSE.items() if label in own}


def _streams(body: bytes) -> list[bytes]:
    """Standard output and error of an answer; a terminal's has no frames."""
    if body[:1] not in (b"\0", b"\1", b"\2") or body[1:4] != b"\0\0\0":
        return [body]
    found: dict[int, list[bytes]] = {}
    position = 0
    while position + _FRAME <= len(body):
        size = int.from_bytes(body[position + 4 : position + _FRAME], "big")
        found.setdefault(body[position], []).append(body[position + _FRAME : position + _FRAME + size])
        position += _FRAME + size
    return [b"".join(parts) for parts in found.values()]
