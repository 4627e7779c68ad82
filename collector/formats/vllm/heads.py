"""Prefixes of many lines at once: processes, instants, and where messages begin."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from collector.formats.columns import Figures, Lines, Mask, Positions, Words, find_byte, minutes_and_seconds, word
from collector.formats.texts import Texts
from collector.formats.vllm.prefix import Calendar, HeadReader, read_head

ACCESS: Final = b"INFO:     "
QUOTED: Final = b' - "'
_LEVEL: Final = b"INFO "
_TIME: Final = b"01-01 00:00:00"
_BEHIND_TIME: Final = len(_LEVEL) + len(_TIME) + 1
_CODE: Final = b"[x.py:1]"
_CLIENT_WORDS: Final = 6
"""Words in which the end of a client's address is looked for."""
_HALF_BYTES: Final = np.uint64((1 << 32) - 1)
_FIVE_BYTES: Final = np.uint64((1 << 40) - 1)
_BYTE: Final = np.uint64(0xFF)
_CHANGED_BYTES: Final = 7
_SECOND_BYTES: Final = np.uint64(0xFFFF << 40)
"""The words of a time overlap in its hour, so that both together are its 14 characters and the blank behind them."""


class Heads(NamedTuple):
    """Lines of a block that are told by their prefix.

    ``access`` are the numbers of access lines in the block. Of the engine's own lines, shape (n,): ``lines`` their
    numbers, ``at`` seconds since 1970, ``processes`` and ``codes`` numbers in :class:`HeadColumns`, ``messages`` where the
    message begins.
    """

    access: Positions
    lines: Positions
    at: Figures
    processes: Positions
    codes: Positions
    messages: Positions


class HeadColumns:
    """Reads the prefixes of blocks; texts already seen are remembered.

    ``processes`` holds the processes as printed, by number; number 0 is a line that names none. ``codes`` holds the
    places in the code.
    """

    def __init__(self, calendar: Calendar) -> None:
        self.processes: list[bytes] = [b""]
        self.codes: list[bytes] = []
        self._calendar = calendar
        self._texts = Texts(b")", self._process)
        self._places = Texts(b"]", self._code)

    def read(self, lines: Lines, left_out: Mask) -> Heads:
        """The prefixes of a block; lines with one that cannot be told here are left out, as are ``left_out``."""
        numbers = (~left_out).nonzero()[0]
        starts = lines.starts[numbers]
        first = lines.words(starts)
        processes: Positions = np.zeros(len(numbers), dtype=np.int64)
        named = ((first & _BYTE) == ord("(")).nonzero()[0]
        if len(named):
            processes[named], lengths = self._texts.read(lines, starts[named], first[named])
            starts[named] += lengths + 2
            known = processes >= 0
            numbers, starts, processes = numbers[known], starts[known], processes[known]
            first = lines.words(starts)
        ends = lines.ends[numbers]
        access = self._access(lines, starts, ends, first)
        own = ((first & _FIVE_BYTES) == word(_LEVEL)) & (ends - starts > _BEHIND_TIME)
        rows = own.nonzero()[0]
        messages, codes, at = self._messages(lines, starts[rows])
        good = (messages <= ends[rows]) & ~np.isnan(at)
        rows = rows[good]
        return Heads(numbers[access], numbers[rows], at[good], processes[rows], codes[good], messages[good])

    @staticmethod
    def _access(lines: Lines, starts: Positions, ends: Positions, first: Words) -> Positions:
        """Which lines are uvicorn's: the level, an address without blanks, and what was asked for in quotes."""
        found = ((first == word(ACCESS[:8])) & (ends - starts > len(ACCESS))).nonzero()[0]
        found = found[lines.begins(starts[found], ACCESS)]
        at = starts[found] + len(ACCESS)
        going_on: Mask = np.ones(len(found), dtype=bool)
        for _ in range(_CLIENT_WORDS):
            blank = find_byte(lines.words(at), ord(" "))
            at += np.where(going_on, blank, 0)
            going_on &= blank == 8
            if not going_on.any():
                break
        quoted = (lines.words(at) & _HALF_BYTES) == word(QUOTED)
        told: Positions = found[quoted & (at + len(QUOTED) <= ends[found])]
        return told

    def _messages(self, lines: Lines, starts: Positions) -> tuple[Positions, Positions, Figures]:
        """Where the message of each line begins, the place in the code, and the instant, NaN where the prefix is another."""
        codes, lengths = self._places.read(lines, starts + _BEHIND_TIME)
        at = self._instants(lines, starts + len(_LEVEL))
        at[codes < 0] = np.nan
        return starts + (_BEHIND_TIME + 2) + lengths, codes, at

    def _instants(self, lines: Lines, starts: Positions) -> Figures:
        """The second of each time; NaN where the text is none, or one of another month. Neighbours often share it."""
        if not len(starts):
            return np.empty(0)
        words, rest = lines.words(starts), lines.words(starts + _CHANGED_BYTES)
        changed = (words[1:] ^ words[:-1]) | (rest[1:] ^ rest[:-1])
        firsts = np.append(0, changed.nonzero()[0] + 1)
        words, rest = words[firsts], rest[firsts]
        apart = (words[1:] ^ words[:-1]) | ((rest[1:] ^ rest[:-1]) & ~_SECOND_BYTES)

        def minute(start: int) -> float | None:
            text = lines.text(start, start + len(_TIME) + 1)
            head = read_head(_LEVEL + text[: len(_TIME) - 2] + b"00" + text[len(_TIME) :] + _CODE)
            return None if head is None else self._calendar.within_month(head)

        found = minutes_and_seconds(starts[firsts], apart == 0, rest >> np.uint64(40), minute)
        return np.repeat(found, np.diff(np.append(firsts, len(starts))))

    def _process(self, text: bytes) -> int:
        process = HeadReader().read(text + b") ").process
        if not process:
            return -1
        if process not in self.processes:
            self.processes.append(process)
        return self.processes.index(process)

    def _code(self, text: bytes) -> int:
        head = read_head(_LEVEL + _TIME + b" " + text + b"]")
        if head is None:
            return -1
        self.codes.append(head.code)
        return len(self.codes) - 1
