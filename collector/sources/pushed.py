"""Bodies of log senders: lines of text, or JSON documents with a line each, and which log each line is of.

Source: vector.dev/docs, ``http`` sink (JSON arrays, newline-delimited JSON, text);
docs.fluentbit.io, ``http`` output (``json``, ``json_lines``, ``json_stream``).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from collector.domain.errors import MalformedInput

_TEXT_KEYS: Final = ("message", "log", "msg", "MESSAGE", "body")
_FIELDS: Final[Mapping[str, tuple[str, ...]]] = {
    "namespace": ("kubernetes.namespace_name", "kubernetes.pod_namespace", "kubernetes.namespace"),
    "pod": ("kubernetes.pod_name", "kubernetes.pod"),
    "container": ("kubernetes.container_name", "container_name", "container.name", "container_id"),
    "host": ("host", "hostname", "kubernetes.host", "_HOSTNAME"),
    "file": ("file", "filename", "file_path", "path"),
}
"""Labels, and the fields in which senders put them, the best first."""
_IN_CONTAINER: Final = ("pod", "container")
SHOWN: Final = 120

Labels = tuple[tuple[str, str], ...]


def lines_of(body: bytes, labels: Mapping[str, str]) -> dict[Labels, list[bytes]]:
    """The lines of a body by the log they are of: ``labels``, and what the documents say beside them.

    Raises:
        MalformedInput: it begins as JSON and is none, or a document has no line.
    """
    if not _is_json(body):
        lines = body.split(b"\n")
        if not lines[-1]:
            lines.pop()
        return {_key(labels): [line.removesuffix(b"\r") for line in lines]} if lines else {}
    found: dict[Labels, list[bytes]] = {}
    for number, document in enumerate(_documents(body), 1):
        text, own = _line(document, number)
        found.setdefault(_key({**own, **labels}), []).append(text.rstrip("\r\n").encode("utf-8", "surrogatepass"))
    return found


def _is_json(body: bytes) -> bool:
    """Whether a body is of JSON documents: engines' lines begin with a bracket too, but not as documents do."""
    head = body[:4096].lstrip()
    if head[:1] == b"{":
        return True
    return head[:1] == b"[" and head[1:].lstrip()[:1] in (b"{", b'"', b"]")


def _documents(body: bytes) -> Iterator[Any]:
    """The documents of an array, or those that follow one another."""
    text = body.decode("utf-8", "replace")
    decoder = json.JSONDecoder()
    position = 0
    while (position := _behind_space(text, position)) < len(text):
        try:
            document, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            raise MalformedInput(
                "the body is no JSON", why=str(error), where=repr(text[position : position + SHOWN]),
                hint="send JSON documents, an array of them, or plain lines",
            ) from None  # fmt: skip
        yield from document if isinstance(document, list) else (document,)


def _behind_space(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n,":
        position += 1
    return position


def _line(document: Any, number: int) -> tuple[str, dict[str, str]]:
    """The line of a document, and the labels its fields give."""
    if isinstance(document, str):
        return document, {}
    text = next((document[key] for key in _TEXT_KEYS if key in document), None) if isinstance(document, dict) else None
    if not isinstance(text, str):
        known = ", ".join(document) if isinstance(document, dict) else type(document).__name__
        raise MalformedInput(
            f"document {number} holds no line", why=f"it has {known[:SHOWN]}",
            hint=f"the line is expected under {' or '.join(_TEXT_KEYS[:2])}",
        )  # fmt: skip
    own = {label: value for label, paths in _FIELDS.items() if (value := _first(document, paths))}
    if any(label in own for label in _IN_CONTAINER):
        own.pop("file", None)  # the files of one container are one log
    return text, own


def _first(document: Mapping[str, Any], paths: tuple[str, ...]) -> str:
    for path in paths:
        value: Any = document.get(path)
        outer, _, inner = path.partition(".")
        if value is None and inner and isinstance(document.get(outer), dict):
            value = document[outer].get(inner)
        if isinstance(value, str) and value:
            return value.lstrip("/") if "container" in path else value
    return ""


def _key(labels: Mapping[str, str]) -> Labels:
    return tuple(sorted(labels.items()))
