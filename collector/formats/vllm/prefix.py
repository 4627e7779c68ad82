"""The prefix of vLLM's log lines: process, level, time, file.

Source: vLLM, ``vllm/logger.py`` and ``vllm/utils/system_utils.py: decorate_logs``, releases 0.5 to
0.32. Up to 0.10.0 no process is named. From 0.10.1 to 0.30 it stands before everything a process
prints, later before its own log lines only. The date has no year and no zone.
"""

from __future__ import annotations

import json
import re
from calendar import timegm
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from collector.formats.base import Place

HEADS_KEPT: Final = 4_096
LEAP_YEAR: Final = 1972
"""Stands for the year that the log does not print, so that every date exists in it."""

_PROCESS = re.compile(rb"\(([\w.-]+(?: [\w.-]+)*) pid=(\d+)\) ")
_HEAD = re.compile(rb"(DEBUG|INFO|WARNING|ERROR|CRITICAL) (\d\d)-(\d\d) (\d\d):(\d\d):(\d\d) \[?([\w./<>-]+):(\d+)\]")
_DATED = re.compile(rb"[\[(]?(20\d\d)-(\d\d)-(\d\d)[ T]\d\d:\d\d:\d\d")
_JSON_TIME = re.compile(r"(?:([12]\d{3})-)?(\d\d)-(\d\d)[ T](\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?")
_ANSI = re.compile(rb"\x1b\[[0-9;]*[A-Za-z]")
_LEVELS: Final = frozenset(b"DIWEC")


Stamp = tuple[int, int, int, int, int]


class Head(NamedTuple):
    """A line's prefix after the process.

    Fields: its length; the level; month, day, hour, minute and second as printed; the place in the
    code; the year, which only JSON lines can have.
    """

    length: int
    level: bytes
    stamp: Stamp
    code: bytes
    year: int | None = None


class Parts(NamedTuple):
    """A line taken apart: the process as printed (``b""`` if none), its head, and what follows."""

    process: bytes
    head: Head | None
    message: bytes


class Calendar:
    """Turns month, day and time into seconds since 1970.

    Unless the log shows its year, dates are put into :data:`LEAP_YEAR`, those before a new year into
    the year before it. Order and distances within the log are right either way.
    """

    def __init__(self) -> None:
        self.year: int | None = None
        self._first_year = LEAP_YEAR
        self._shift = 0
        self._month: int | None = None
        self._known: dict[Stamp, float] = {}

    def learn(self, line: bytes) -> None:
        """Take the year from a line of another writer that prints one, unless it is known."""
        match = _DATED.match(line) if self.year is None and self._month is None else None
        if match is not None:
            self.year = int(match[1])

    @property
    def month(self) -> int | None:
        """The month of the line before, ``None`` before the first."""
        return self._month

    def within_month(self, head: Head) -> float | None:
        """As :meth:`at` for a line of the same month as the line before, ``None`` for others."""
        if head.year is not None or head.stamp[0] != self._month:
            return None
        known = self._known.get(head.stamp)
        return known if known is not None else float(timegm((self._first_year + self._shift, *head.stamp)))

    def at(self, head: Head) -> float:
        """Seconds since 1970 of a line."""
        stamp = head.stamp
        if head.year is not None:
            return float(timegm((head.year, *stamp)))
        known = self._known.get(stamp)
        if known is not None:
            return known
        month = stamp[0]
        if self._month is None:
            self._first_year = self.year or (LEAP_YEAR if month <= 2 else LEAP_YEAR - 1)
        shift = self._shift
        if self._month is not None and month != self._month:
            if self._month == 12 and month == 1:
                shift = self._shift = self._shift + 1
                self._known.clear()
            elif self._month == 1 and month == 12:
                shift -= 1  # another process's line of the last second of the year
        if shift == self._shift:
            self._month = month
        at = float(timegm((self._first_year + shift, *stamp)))
        if len(self._known) >= HEADS_KEPT:
            self._known.clear()
        self._known[stamp] = at
        return at


class HeadReader:
    """Takes lines apart; many share a prefix, so those already read are remembered."""

    def __init__(self) -> None:
        self._heads: dict[bytes, Head | None] = {}

    def read(self, line: bytes) -> Parts:
        """The process, head and message of a line without colours."""
        process = b""
        if line[:1] == b"(":
            match = _PROCESS.match(line)
            if match is not None:
                process = line[1 : match.end() - 2]
                line = line[match.end() :]
        if line[:1] == b"{":
            return Parts(process, *(_json_head(line) or (None, line)))
        if not line or line[0] not in _LEVELS:
            return Parts(process, None, line)
        end = line.find(b"]", 0, 200)
        if end < 0:
            return Parts(process, None, line)
        text = line[: end + 1]
        head = self._heads.get(text, _UNREAD)
        if isinstance(head, _Unread):
            head = read_head(text)
            if len(self._heads) >= HEADS_KEPT:
                self._heads.clear()
            self._heads[text] = head
        if head is None:
            return Parts(process, None, line)
        return Parts(process, head, line[head.length :])


class _Unread:
    """Marks a prefix that was not looked at yet; ``None`` marks text that is no prefix."""


_UNREAD: Final = _Unread()


def read_head(text: bytes) -> Head | None:
    """A head without the blank after it; ``None`` for other text and for instants that do not exist."""
    match = _HEAD.fullmatch(text)
    if match is None:
        return None
    stamp = _stamp(match.groups()[1:6])
    return None if stamp is None else Head(len(text) + 1, match[1], stamp, match[7] + b":" + match[8])


def _stamp(parts: Sequence[bytes | str]) -> Stamp | None:
    month, day, hour, minute, second = map(int, parts)
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 62):
        return None
    return month, day, hour, minute, second


def _json_head(line: bytes) -> tuple[Head, bytes] | None:
    """A line of ``--logging-config.formatter json``."""
    if b'"levelname"' not in line or b'"message"' not in line:
        return None
    try:
        record: Any = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(record, dict):
        return None
    level, message, when = record.get("levelname"), record.get("message"), record.get("asctime")
    if not isinstance(level, str) or not isinstance(message, str) or not isinstance(when, str):
        return None
    match = _JSON_TIME.match(when)
    stamp = _stamp(match.groups()[1:6]) if match is not None else None
    if match is None or stamp is None:
        return None
    year = int(match[1]) if match[1] is not None else None
    code = str(record.get("name", "")).encode("utf-8", "replace")
    return Head(0, level.encode("utf-8", "replace"), stamp, code, year), message.encode("utf-8", "replace")


def without_colour(line: bytes) -> bytes:
    """A line without terminal colour codes."""
    return _ANSI.sub(b"", line) if b"\x1b" in line else line


def split(line: bytes) -> tuple[Place, bytes]:
    """Whether a line bears the prefix, and what follows it."""
    parts = HeadReader().read(without_colour(line))
    return Place.BARE if parts.head is None else Place.ENGINE, parts.message
