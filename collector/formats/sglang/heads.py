"""Prefixes of many lines at once: instants and ranks as arrays."""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from collector.formats.columns import (
    Figures,
    Lines,
    Mask,
    Positions,
    Words,
    digits_value,
    leading_digits,
    minutes_and_seconds,
    word,
)
from collector.formats.sglang.lines import ACCESS
from collector.formats.sglang.prefix import MINUTE_LENGTH, Instants, Ranks, read_head
from collector.formats.texts import Texts

TIME: Final = b"[2026-01-01 00:00:00"
LEAD_WORDS: Final = 4
"""Words at the beginning of a line that hold its time and tell an access line."""
_HALF: Final = np.uint64(32)
_BEHIND_MINUTE: Final = np.uint64(48)
"""How far the third word is moved so that only what belongs to the time, or to its minute, is left."""
_NO_TAGS: Final = word(b"] ")
_ACCESS: Final = b"] " + ACCESS
"""What an access line goes on with behind its time."""


class Heads(NamedTuple):
    """Lines that bear a prefix, of which ``access`` says that they are access lines and not looked at further.

    Shapes (n,): ``lines`` their numbers in the block, ``at`` seconds since 1970, ``milliseconds``
    whether the time has them. Of the others only, shape (m,): ``rows`` which of the n they are,
    ``ranks`` numbers of :attr:`HeadColumns.ranks`, ``messages`` where the message begins.
    """

    lines: Positions
    at: Figures
    milliseconds: Mask
    access: Mask
    rows: Positions
    ranks: Positions
    messages: Positions


class HeadColumns:
    """Reads the prefixes of blocks; instants and ranks already seen are remembered.

    ``ranks`` holds the rank tags by number; number 0 is a line without any.
    """

    def __init__(self) -> None:
        self.ranks: list[Ranks] = [Ranks("", "", None)]
        self._minutes = Instants()
        self._texts = Texts(b"]", self._number)

    def read(self, lines: Lines, left_out: Mask) -> Heads:
        """The prefixes of a block. Lines with one that cannot be told here are left out, as are ``left_out``."""
        leads = lines.leads(LEAD_WORDS)
        numbers = (((leads[:, 0] & np.uint64(0xFF)) == ord("[")) & ~left_out).nonzero()[0]
        starts = lines.starts
        if len(numbers) < len(starts):
            leads, starts = leads[numbers], starts[numbers]
        at = self._instants(lines, starts, leads)
        behind_time = leads[:, 2] >> _HALF
        access = (behind_time == word(_ACCESS[:4])) & (leads[:, 3] == word(_ACCESS[4:]))
        rows = (~access).nonzero()[0]
        milliseconds: Mask = (behind_time & np.uint64(0xFF)) == ord(".")
        if milliseconds.any():
            at = self._with_milliseconds(lines, at, starts, milliseconds)
        tags = starts[rows] + (len(TIME) + 4 * milliseconds[rows])
        ranks, messages = self._tags(lines, tags)
        good = ~np.isnan(at)
        good[rows] &= ranks >= 0
        if good.all():
            return Heads(numbers, at, milliseconds, access, rows, ranks, messages)
        chosen = good[rows]
        rows = (np.cumsum(good) - 1)[rows[chosen]]
        return Heads(numbers[good], at[good], milliseconds[good], access[good], rows, ranks[chosen], messages[chosen])

    def _instants(self, lines: Lines, starts: Positions, leads: Words) -> Figures:
        """The second of each line; NaN where the text is no time. Neighbours often share it."""
        if not len(starts):
            return np.empty(0)
        first, second, third = leads[:, 0], leads[:, 1], leads[:, 2]
        changed = (first[1:] ^ first[:-1]) | (second[1:] ^ second[:-1]) | ((third[1:] ^ third[:-1]) << _HALF)
        at = np.append(0, changed.nonzero()[0] + 1)
        first, second, third = first[at], second[at], third[at]
        apart = (first[1:] ^ first[:-1]) | (second[1:] ^ second[:-1]) | ((third[1:] ^ third[:-1]) << _BEHIND_MINUTE)

        def minute(start: int) -> float | None:
            return self._minutes.begin(lines.text(start, start + MINUTE_LENGTH))

        found = minutes_and_seconds(starts[at], apart == 0, third >> np.uint64(16), minute)
        return np.repeat(found, np.diff(np.append(at, len(starts))))

    @staticmethod
    def _with_milliseconds(lines: Lines, at: Figures, starts: Positions, milliseconds: Mask) -> Figures:
        count, digits = leading_digits(lines.words(starts + len(TIME) + 1))
        three = digits_value(digits & np.uint64(0xFFFFFF), np.uint64(24))
        at = at + np.where(milliseconds, three / 1000, 0.0)
        at[milliseconds & (count != 3)] = np.nan
        return at

    def _tags(self, lines: Lines, tags: Positions) -> tuple[Positions, Positions]:
        """The number of each line's ranks (-1 where they cannot be told) and where its message begins."""
        first = lines.words(tags)
        ranks: Positions = np.zeros(len(tags), dtype=np.int64)
        messages = tags + 2
        tagged = np.flatnonzero((first & np.uint64(0xFFFF)) != _NO_TAGS)
        if len(tagged):
            ranks[tagged], lengths = self._texts.read(lines, tags[tagged], first[tagged])
            messages[tagged] += lengths
        return ranks, messages

    def _number(self, text: bytes) -> int:
        head = read_head(TIME + text + b"]")
        if head is None:
            return -1
        if head.ranks not in self.ranks:
            self.ranks.append(head.ranks)
        return self.ranks.index(head.ranks)
