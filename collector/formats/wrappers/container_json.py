"""JSON lines of container runtimes and of the collectors that read them.

Source: Docker's ``json-file`` driver (``log``, ``stream``, ``time``; a line of more than 16 KiB is cut
into records of which only the last ends in a newline); Docker's ``fluentd`` driver; Fluent Bit's
``kubernetes`` filter.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from collector.formats.wrappers.base import Peeled, WrappedSample, Wrapper

_BEGIN: Final = b'{"log":"'
_STREAM: Final = b'","stream":"'
_REST: Final = re.compile(rb'(stdout|stderr)","time":"[^"]*"\}\s*')
_MARKS: Final = ("stream", "time", "kubernetes", "container_name")


def peel(line: bytes) -> Peeled | None:
    """A record with a ``log``."""
    if not line.startswith(b'{"') or b'"log":' not in line:
        return None
    if line.startswith(_BEGIN):  # as Docker writes it: the text can be cut out
        end = line.find(_STREAM, len(_BEGIN))
        rest = _REST.fullmatch(line, end + len(_STREAM)) if end > 0 else None
        if rest is not None:
            text = line[len(_BEGIN) : end]
            if b"\\" not in text:
                return Peeled(text, b"", rest[1], whole=False)
            if text.endswith(b"\\n") and b"\\" not in text[:-2]:
                return Peeled(text[:-2], b"", rest[1])
    return _record(line)


def _record(line: bytes) -> Peeled | None:
    record = parsed(line)
    text = record.get("log") if record is not None else None
    if record is None or not isinstance(text, str) or not any(mark in record for mark in _MARKS):
        return None
    channel = as_bytes(record.get("stream") or record.get("source"))
    stream = pod_of(record) or as_bytes(record.get("container_name"))
    whole = str(record.get("partial_message")) != "true" if stream else text.endswith("\n")
    return Peeled(as_bytes(text.removesuffix("\n")), stream, channel, whole)


def parsed(line: bytes) -> dict[str, Any] | None:
    """A JSON object; bytes that are no UTF-8 and control characters come through unchanged."""
    try:
        record = json.loads(line.decode("utf-8", "surrogateescape"), strict=False)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


def as_bytes(text: Any) -> bytes:
    """The bytes of a text out of a JSON object."""
    if not isinstance(text, str):
        return b""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "replace")


def pod_of(record: dict[str, Any]) -> bytes:
    """Pod and container from the labels that collectors add."""
    kubernetes = record.get("kubernetes")
    if not isinstance(kubernetes, dict):
        return b""
    pod, container = kubernetes.get("pod_name"), kubernetes.get("container_name")
    if pod is None and isinstance(kubernetes.get("pod"), dict):
        pod = kubernetes["pod"].get("name")
    if container is None and isinstance(kubernetes.get("container"), dict):
        container = kubernetes["container"].get("name")
    return b"/".join(part for part in (as_bytes(pod), as_bytes(container)) if part)


WRAPPER: Final = Wrapper(
    "container-json",
    "container JSON lines",
    peel,
    (
        WrappedSample(
            r'{"log":"[2026-01-01 00:00:01] Load weight begin.\n","stream":"stderr","time":"2026-01-01T00:00:01.5Z"}',
            Peeled(b"[2026-01-01 00:00:01] Load weight begin.", b"", b"stderr"),
        ),
        WrappedSample(
            r'{"log":"a \u003cb\u003e \"c\"\n","stream":"stdout","time":"2026-01-01T00:00:01.5Z"}',
            Peeled(b'a <b> "c"', b"", b"stdout"),
        ),
        WrappedSample(
            '{"log":"the first 16 KiB","stream":"stdout","time":"2026-01-01T00:00:01.5Z"}',
            Peeled(b"the first 16 KiB", b"", b"stdout", whole=False),
        ),
        WrappedSample(
            r'{"log":"a\n","stream":"stdout","attrs":{"tag":"x"},"time":"2026-01-01T00:00:01.5Z"}',
            Peeled(b"a", b"", b"stdout"),
        ),
        WrappedSample(
            '{"stream":"stderr","log":"a","kubernetes":{"pod_name":"llm-0","container_name":"server"}}',
            Peeled(b"a", b"llm-0/server", b"stderr"),
        ),
        WrappedSample(
            '{"container_name":"/llm","source":"stdout","log":"a","partial_message":"true"}',
            Peeled(b"a", b"/llm", b"stdout", whole=False),
        ),
    ),
)
