"""Addresses of engines: from files in the form of Prometheus, and from host names that stand for several machines."""

from __future__ import annotations

import ipaddress
import json
import socket
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

from collector.domain.errors import InputError, MalformedInput, SourceError
from collector.sources.file import text_of

_SCHEME: Final = "__scheme__"
_PATH: Final = "__metrics_path__"
_RESERVED: Final = "__"
"""How labels begin that speak to Prometheus alone."""


@dataclass(frozen=True, slots=True)
class Group:
    """Addresses that share their labels."""

    addresses: tuple[str, ...]
    labels: Mapping[str, str] = field(default_factory=dict)


def groups_of_file(path: Path) -> list[Group]:
    """The groups of a file: a list of ``{"targets": ["host:port"], "labels": {…}}``, as JSON or YAML.

    Raises:
        UnreadableInput: it cannot be opened.
        MalformedInput: it has another form.

    Source: prometheus.io/docs, ``file_sd_config``.
    """
    text = text_of(path)
    document = _document(text, path)
    if not isinstance(document, list):
        raise _malformed(path, "it is no list of groups")
    return [_group(entry, path) for entry in document]


def addresses_of_name(address: str) -> list[str]:
    """The same address once for each machine that its host name stands for, in the order of their numbers.

    Raises:
        InputError: it is no address.
        SourceError: the name is not known.
    """
    parts = urlsplit(address if "://" in address else f"http://{address}")
    try:
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host:
        raise InputError(f"{address!r} is not an address", hint="for instance http://engines.internal:30000")
    try:
        answers = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        raise SourceError(
            f"the name {host} stands for no machine", why=getattr(error, "strerror", None) or str(error), where=address,
            hint="check the name, and that this machine's resolver knows it",
        ) from error  # fmt: skip
    numbers = sorted({ipaddress.ip_address(answer[4][0]) for answer in answers}, key=lambda ip: (ip.version, int(ip)))
    tail = f":{port}" if port is not None else ""
    return [
        f"{parts.scheme}://{f'[{number}]' if number.version == 6 else number}{tail}{parts.path}" for number in numbers
    ]


def _document(text: str, path: Path) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    import yaml

    try:
        return yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise _malformed(path, " ".join(str(error).split())) from None


def _group(entry: Any, path: Path) -> Group:
    if not isinstance(entry, dict) or not isinstance(entry.get("targets"), list):
        raise _malformed(path, "a group has no list of targets")
    labels = entry.get("labels") or {}
    if not isinstance(labels, dict):
        raise _malformed(path, "labels of a group are no table")
    texts = {str(name): str(value) for name, value in labels.items()}
    scheme = texts.get(_SCHEME, "http")
    base = texts.get(_PATH, "").removesuffix("/metrics")
    addresses = tuple(
        target if "://" in target else f"{scheme}://{target}{base}" for target in map(str, entry["targets"])
    )
    return Group(addresses, {name: value for name, value in texts.items() if not name.startswith(_RESERVED)})


def _malformed(path: Path, why: str) -> MalformedInput:
    return MalformedInput(
        "the file of targets cannot be read", why=why, where=str(path),
        hint='[{"targets": ["gpu7:30000"], "labels": {"team": "search"}}]',
    )  # fmt: skip
