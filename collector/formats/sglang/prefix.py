"""The ``[time ranks]`` prefix of SGLang's log lines.

Source: SGLang, ``srt/utils/common.py: configure_logger`` and ``managers/scheduler.py:
run_scheduler_process``, releases 0.4.1 to 0.5.23. Rank tags are printed in two orders and only
where their size is above one; 0.5.6 and later can print milliseconds.
"""

from __future__ import annotations

import re
from calendar import timegm
from typing import Final, NamedTuple

from collector.formats.base import Place

HEADS_KEPT: Final = 1_024
TIME_LENGTH: Final = len("[2026-01-01 00:00:00")
MINUTE_LENGTH: Final = len("[2026-01-01 00:00:")

_HEAD = re.compile(
    rb"(?:\([\w.:-]+ pid=\d+(?:, ip=[\d.]+)?\) )?"  # Ray
    rb"\[(\d{4})-(\d\d)-(\d\d) (\d\d):(\d\d):(\d\d)(?:\.(\d{3}))?((?: [A-Za-z][\w.-]*)*)\]"
)
_TAG = re.compile(rb"(DP|PP|ATTN_CP|MOE_DP|TP|EP)(\d+)")
_ANSI = re.compile(rb"\x1b\[[0-9;]*[A-Za-z]")


class Ranks(NamedTuple):
    """The rank tags of a line: as printed, without the tensor rank, and the tensor rank."""

    unit: str
    group: str
    tensor: int | None


class Head(NamedTuple):
    """A line's prefix: its length, instant (seconds since 1970, UTC), ranks, and whether it has milliseconds."""

    length: int
    at: float
    ranks: Ranks
    milliseconds: bool


class _Unread:
    """Marks what was not looked at yet; ``None`` marks text that is no prefix or time."""


_UNREAD: Final = _Unread()


class Instants:
    """Turns the time of a prefix into seconds since 1970; the lines of a minute share the work."""

    def __init__(self) -> None:
        self._minutes: dict[bytes, float | None] = {}

    def at(self, time: bytes) -> float | None:
        """The instant of ``[2026-01-01 00:00:00``, ``None`` for other text and for instants that do not exist."""
        begin, second = self.begin(time[:MINUTE_LENGTH]), time[MINUTE_LENGTH:]
        if begin is None or len(second) != 2 or not second.isdigit() or second >= b"62":
            return None
        return begin + int(second)

    def begin(self, minute: bytes) -> float | None:
        """The begin of the minute ``[2026-01-01 00:00:``, ``None`` as in :meth:`at`."""
        begin = self._minutes.get(minute, _UNREAD)
        if isinstance(begin, _Unread):
            head = read_head(minute + b"00]")
            begin = None if head is None else head.at
            if len(self._minutes) >= HEADS_KEPT:
                self._minutes.clear()
            self._minutes[minute] = begin
        return begin


class HeadReader:
    """Reads prefixes; many lines share one, or the time or the tags of one, so what was read is remembered."""

    def __init__(self) -> None:
        self._heads: dict[bytes, Head | None] = {}
        self._instants = Instants()
        self._tags: dict[bytes, Ranks] = {}

    def read(self, line: bytes) -> Head | None:
        """The prefix of a line, ``None`` if it has none."""
        if line[:1] not in (b"[", b"("):
            return None
        end = line.find(b"] ")
        if not 0 < end < 200:
            return None
        text = line[: end + 1]
        head = self._heads.get(text, _UNREAD)
        if isinstance(head, _Unread):
            head = self._head(text)
            if len(self._heads) >= HEADS_KEPT:
                self._heads.clear()
            self._heads[text] = head
        return head

    def _head(self, text: bytes) -> Head | None:
        ranks = self._tags.get(text[TIME_LENGTH:])
        if ranks is not None:
            at = self._instants.at(text[:TIME_LENGTH])
            return None if at is None else Head(len(text) + 1, at, ranks, milliseconds=False)
        head = read_head(text)
        if head is not None and not head.milliseconds and text[:1] == b"[" and len(self._tags) < HEADS_KEPT:
            self._tags[text[TIME_LENGTH:]] = head.ranks
        return head


def read_head(text: bytes) -> Head | None:
    """A prefix without the blank after it; ``None`` for other text and for instants that do not exist."""
    match = _HEAD.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(match[group]) for group in range(1, 7))
    if not (1 <= month <= 12 and 1 <= day <= 31 and hour < 24 and minute < 60 and second < 62 and year >= 1970):
        return None
    at = float(timegm((year, month, day, hour, minute, second)))
    if match[7] is not None:
        at += int(match[7]) / 1000
    return Head(len(text) + 1, at, _ranks(match[8]), match[7] is not None)


def _ranks(text: bytes) -> Ranks:
    tags = [(kind.decode(), int(number)) for kind, number in _TAG.findall(text)]
    tensor = next((number for kind, number in tags if kind == "TP"), None)
    unit = " ".join(f"{kind}{number}" for kind, number in tags)
    group = " ".join(f"{kind}{number}" for kind, number in tags if kind not in ("TP", "EP"))
    return Ranks(unit, group, tensor)


def without_colour(line: bytes) -> bytes:
    """A line without terminal colour codes."""
    return _ANSI.sub(b"", line) if b"\x1b" in line else line


_LOGGER = re.compile(rb"(?:WARNING|INFO|ERROR):sglang\.[\w.]+:")


def without_logger(line: bytes) -> bytes:
    """A bare line without the logger's name that up to 0.5.10 could stand before an argument-stage message."""
    match = _LOGGER.match(line)
    return line if match is None else line[match.end() :]


def split(line: bytes) -> tuple[Place, bytes]:
    """Whether a line bears the prefix, and what follows it."""
    line = without_colour(line)
    head = HeadReader().read(line)
    return (Place.BARE, without_logger(line)) if head is None else (Place.ENGINE, line[head.length :])
