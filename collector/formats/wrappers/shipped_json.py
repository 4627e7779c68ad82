"""JSON lines of log stores: the text is one field among labels.

Source: Loki (``logcli --output=jsonl``), Google Cloud Logging (``textPayload``), Elastic and Vector
(``message`` beside ``@timestamp`` or ``kubernetes``), Amazon CloudWatch (``message`` beside
``logStreamName`` or ``ingestionTime``).
"""

from __future__ import annotations

from typing import Any, Final

from collector.formats.wrappers.base import Peeled, WrappedSample, Wrapper
from collector.formats.wrappers.container_json import as_bytes, parsed, pod_of

_LABELS: Final = (("pod", "container"), ("pod_name", "container_name"), ("host", "unit"))
_MARKS: Final = {
    "textPayload": ("resource", "timestamp", "insertId"),
    "line": ("labels",),
    "message": ("@timestamp", "kubernetes", "logStreamName", "ingestionTime"),
}
_OWN: Final = "levelname"
"""Marks a record that a program wrote itself, with its time and level beside the message."""


def peel(line: bytes) -> Peeled | None:
    """A record with a text field and the labels of its store."""
    if not line.startswith(b"{"):
        return None
    record = parsed(line)
    if record is None or _OWN in record:
        return None
    for field, marks in _MARKS.items():
        text = record.get(field)
        if isinstance(text, str) and any(mark in record for mark in marks):
            return Peeled(as_bytes(text).removesuffix(b"\n"), _stream(record))
    return None


def _stream(record: dict[str, Any]) -> bytes:
    resource = record.get("resource")
    labels = record.get("labels") or (resource.get("labels") if isinstance(resource, dict) else None)
    if isinstance(labels, dict):
        for names in _LABELS:
            found = [as_bytes(labels.get(name)) for name in names]
            if found[0]:
                return b"/".join(part for part in found if part)
    return pod_of(record) or as_bytes(record.get("logStreamName"))


WRAPPER: Final = Wrapper(
    "shipped-json",
    "JSON lines of a log store",
    peel,
    (
        WrappedSample(
            '{"labels":{"container":"server","pod":"llm-0"},"line":"a","timestamp":"2026-01-01T00:00:01Z"}',
            Peeled(b"a", b"llm-0/server"),
        ),
        WrappedSample(
            r'{"textPayload":"a\n","resource":{"labels":{"pod_name":"llm-0","container_name":"server"}},"insertId":"x"}',
            Peeled(b"a", b"llm-0/server"),
        ),
        WrappedSample(
            '{"@timestamp":"2026-01-01T00:00:01Z","message":"a","kubernetes":{"pod":{"name":"llm-0"}}}',
            Peeled(b"a", b"llm-0"),
        ),
        WrappedSample(
            '{"timestamp":1767225601000,"ingestionTime":1767225602000,"message":"a","logStreamName":"llm/0"}',
            Peeled(b"a", b"llm/0"),
        ),
    ),
)
