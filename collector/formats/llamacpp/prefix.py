"""The parts of llama.cpp's log lines: uptime and level, component or function, slot and task.

Source: llama.cpp, ``common/log.cpp`` and ``tools/server/server-common.h``, builds b5000 to b11549. Up to
b9093 lines bear no time and a message of several lines is marked on its first line only; later ones
begin with minutes, seconds, milliseconds and microseconds since the start. ``--log-jsonl`` wraps each
message into a JSON object.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from collector.formats.base import Place

_UPTIME = re.compile(rb"(\d{1,7})\.(\d\d)\.(\d{3})\.(\d{3}) (?:([IWED]) )?")
_LEVEL = re.compile(rb"[IWED] (?=(?:srv|slot|spec|cmn|que|res) )")
_COMPONENT = re.compile(rb"(srv|slot|spec|cmn|que|res) +([\w:~<>()]+): ?")
_SLOT = re.compile(rb"id +(-?\d+) \| task +(-?\d+) \| ?")
_FUNCTION = re.compile(rb"(~?[A-Za-z_][\w:~]{2,60}(?:\(\))?|system info): ?")
# Functions of the library and of older servers, whose lines are not marked in any other way.
_OURS = re.compile(
    rb"(?:~?llama|common|ggml|gguf|clip|mtmd|server|sched|graph|create|done|set|load|print|log|handle|update|get|init|alloc|resolve)"
    rb"_\w+|load|init|start|main|build|build_info|system_info|system info|operator\(\)|~?llama\w*"
)
_ANSI = re.compile(rb"\x1b\[[0-9;]*[A-Za-z]")


class Parts(NamedTuple):
    """A line taken apart.

    Fields: seconds since the start of the process (``None`` where the line has no time); the level's
    letter; the component (``srv``, ``slot``, ...); the function; the slot and task of a slot's line;
    the message; whether the line bears any mark of the engine.
    """

    at: float | None
    level: bytes
    component: bytes
    function: bytes
    slot: int | None
    task: int | None
    message: bytes
    marked: bool


def read_line(line: bytes) -> Parts:
    """Take apart a line without colours."""
    at: float | None = None
    level = b""
    marked = False
    if line[:1] == b"{" and line.startswith(b'{"type":"log"'):
        record = _json_record(line)
        if record is not None:
            at, level, line = record
            marked = True
    uptime = _UPTIME.match(line)
    if uptime is not None:
        minutes, seconds, milli, micro = (int(uptime[group]) for group in range(1, 5))
        at = minutes * 60 + seconds + milli / 1_000 + micro / 1_000_000
        level = uptime[5] or b""
        line = line[uptime.end() :]
        marked = True
    else:
        letter = _LEVEL.match(line)
        if letter is not None:
            level, line = line[:1], line[2:]
    component = _COMPONENT.match(line)
    if component is not None:
        message = line[component.end() :]
        slot = _SLOT.match(message) if component[1] == b"slot" else None
        if slot is None:
            return Parts(at, level, component[1], component[2], None, None, message.lstrip(b" "), marked=True)
        message = message[slot.end() :].lstrip(b" ")
        return Parts(at, level, component[1], component[2], int(slot[1]), int(slot[2]), message, marked=True)
    function = _FUNCTION.match(line)
    if function is not None and (_OURS.fullmatch(function[1]) or (marked and not line[:1].isupper())):
        return Parts(at, level, b"", function[1], None, None, line[function.end() :].lstrip(b" "), marked=True)
    return Parts(at, level, b"", b"", None, None, line.lstrip(b" "), marked)


def _json_record(line: bytes) -> tuple[float | None, bytes, bytes] | None:
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    message = record.get("msg") if isinstance(record, dict) else None
    if not isinstance(message, str):
        return None
    when = record.get("time")
    known = isinstance(when, (int, float)) and not isinstance(when, bool) and abs(when) < 1e18
    level = str(record.get("level", ""))[:1].upper().encode("ascii", "replace")
    return when / 1_000_000 if known else None, level, message.rstrip("\n").encode("utf-8", "replace")


def without_colour(line: bytes) -> bytes:
    """A line without terminal colour codes."""
    return _ANSI.sub(b"", line) if b"\x1b" in line else line


def split(line: bytes) -> tuple[Place, bytes]:
    """Whether a line bears a mark of the engine, and its message."""
    parts = read_line(without_colour(line))
    return Place.ENGINE if parts.marked else Place.BARE, parts.message
