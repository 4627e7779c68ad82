"""``journalctl --output=json``: the text is ``MESSAGE``, as a list of bytes where it is no plain text."""

from __future__ import annotations

from typing import Any, Final

from collector.formats.wrappers.base import Peeled, WrappedSample, Wrapper
from collector.formats.wrappers.container_json import as_bytes, parsed

_UNIT: Final = ("CONTAINER_NAME", "_SYSTEMD_USER_UNIT", "_SYSTEMD_UNIT", "SYSLOG_IDENTIFIER")


def peel(line: bytes) -> Peeled | None:
    """A record with a ``MESSAGE``."""
    if not line.startswith(b"{") or b'"MESSAGE"' not in line:
        return None
    record = parsed(line)
    message = _text(record.get("MESSAGE")) if record is not None else None
    if record is None or message is None:
        return None
    unit = next((as_bytes(record[name]) for name in _UNIT if isinstance(record.get(name), str)), b"")
    stream = b" ".join(part for part in (as_bytes(record.get("_HOSTNAME")), unit) if part)
    # Docker's journald driver cuts long lines as its other drivers do.
    return Peeled(message, stream, b"", record.get("CONTAINER_PARTIAL_MESSAGE") != "true")


def _text(message: Any) -> bytes | None:
    if isinstance(message, str):
        return as_bytes(message)
    if isinstance(message, list):
        try:
            return bytes(message)
        except (TypeError, ValueError):
            return None
    return None


WRAPPER: Final = Wrapper(
    "journal",
    "journald JSON lines",
    peel,
    (
        WrappedSample(
            '{"_HOSTNAME":"gpu-7","_SYSTEMD_UNIT":"llm.service","MESSAGE":"[2026-11-29 18:20:00] a","_PID":"8"}',
            Peeled(b"[2026-11-29 18:20:00] a", b"gpu-7 llm.service"),
        ),
        WrappedSample(
            '{"MESSAGE":[27,91,51,50,109,97],"SYSLOG_IDENTIFIER":"llm"}',
            Peeled(b"\x1b[32ma", b"llm"),
        ),
        WrappedSample(
            '{"MESSAGE":"a","CONTAINER_NAME":"llm","_SYSTEMD_UNIT":"docker.service","CONTAINER_PARTIAL_MESSAGE":"true"}',
            Peeled(b"a", b"llm", whole=False),
        ),
    ),
)
