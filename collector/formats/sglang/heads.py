"""Prefixes of many lines at once: instants and ranks as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np

from collector.formats.columns import (
    Figures,
    Lines,
    Mask,
    Positions,
    Words,
    bits_of,
    digits_value,
    find_byte,
    leading_digits,
    masked,
    word,
)
from collector.formats.sglang.lines import ACCESS
from collector.formats.sglang.prefix import Instants, Ranks, read_head

TIME: Final = b"[2026-01-01 00:00:00"
TAG_WORDS: Final = 5
"""Words in which the end of the rank tags is looked for."""
TEXTS_KEPT: Final = 1_024
FEW_TEXTS: Final = 8
"""Up to this many known tags are compared one by one."""
TEXTS_LEARNED: Final = 64
"""New tags that one block may bring; lines with further ones are read one by one."""
_FACTORS: Final = tuple(np.uint64(pow(0x9E3779B97F4A7C15, power, 1 << 64)) for power in range(TAG_WORDS))
_HALF: Final = np.uint64(32)
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
        self._seconds = Instants()
        # Texts of tags: their words, the number of their ranks (-1: no tags), and their order by key.
        self._texts: Words = np.zeros((1, TAG_WORDS), dtype=np.uint64)
        self._numbers: Positions = np.zeros(1, dtype=np.int64)
        self._keys: Words = np.zeros(1, dtype=np.uint64)
        self._by_key: Positions = np.zeros(1, dtype=np.int64)

    def read(self, lines: Lines, left_out: Mask) -> Heads:
        """The prefixes of a block. Lines with one that cannot be told here are left out, as are ``left_out``."""
        leads = lines.leads(TAG_WORDS)
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
        instants = self._seconds.at
        found = [instants(lines.text(start, start + len(TIME))) for start in starts[at].tolist()]
        return np.repeat(np.array(found, dtype=np.float64), np.diff(np.append(at, len(starts))))

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
            ranks[tagged], lengths = self._tagged(lines, tags[tagged], first[tagged])
            messages[tagged] += lengths
        return ranks, messages

    def _tagged(self, lines: Lines, starts: Positions, first: Words) -> tuple[Positions, Positions]:
        """The numbers of the ranks whose tags begin at a position, and the tags' lengths."""
        end = find_byte(first, ord("]"))
        lengths: Positions = end.astype(np.int64)
        parts = [first & masked(bits_of(end))]
        going_on = end == 8
        while going_on.any() and len(parts) < TAG_WORDS:
            words = lines.words(starts + 8 * len(parts))
            end = find_byte(words, ord("]"))
            parts.append(np.where(going_on, words & masked(bits_of(end)), np.uint64(0)))
            lengths += np.where(going_on, end, 0)
            going_on &= end == 8
        complete = ~going_on & ((lines.words(starts + lengths + 1) & np.uint64(0xFF)) == ord(" "))
        texts = self._find(parts)
        for _ in range(TEXTS_LEARNED):
            unknown = np.flatnonzero((texts < 0) & complete)
            if not len(unknown) or len(self._numbers) >= TEXTS_KEPT:
                break
            one = unknown[0]
            start = int(starts[one])
            self._learn([part[one] for part in parts], lines.text(start, start + int(lengths[one])))
            texts = self._find(parts)
        good = complete & (texts >= 0)
        return np.where(good, self._numbers[np.where(good, texts, 0)], -1), lengths

    def _find(self, parts: Sequence[Words]) -> Positions:
        """Which known text the words make, -1 for none."""
        if len(self._numbers) <= FEW_TEXTS:
            found: Positions = np.full(len(parts[0]), -1, dtype=np.int64)
            for text in range(len(self._numbers)):
                found[self._same(parts, text)] = text
            return found
        key = _key(parts)
        place = np.searchsorted(self._keys, key)
        place[place == len(self._keys)] = 0
        texts = self._by_key[place]
        return np.where((self._keys[place] == key) & self._same(parts, texts), texts, -1)

    def _same(self, parts: Sequence[Words], texts: int | Positions) -> Mask:
        """Where the words are those of a known text."""
        same: Mask = parts[0] == self._texts[texts, 0]
        for number in range(1, TAG_WORDS):
            if number < len(parts):
                same &= parts[number] == self._texts[texts, number]
            else:
                same &= self._texts[texts, number] == 0
        return same

    def _learn(self, parts: Sequence[np.uint64], text: bytes) -> None:
        head = read_head(TIME + text + b"]")
        number = -1
        if head is not None:
            if head.ranks not in self.ranks:
                self.ranks.append(head.ranks)
            number = self.ranks.index(head.ranks)
        row = np.zeros((1, TAG_WORDS), dtype=np.uint64)
        row[0, : len(parts)] = parts
        key = _key(list(row.T))
        place = np.searchsorted(self._keys, key)
        self._keys = np.insert(self._keys, place, key)
        self._by_key = np.insert(self._by_key, place, len(self._numbers))
        self._texts = np.concatenate((self._texts, row))
        self._numbers = np.append(self._numbers, number)


def _key(parts: Sequence[Words]) -> Words:
    """One number for the words of a text; missing ones count as empty."""
    key = parts[0] * _FACTORS[0]
    for part, factor in zip(parts[1:], _FACTORS[1:], strict=False):
        key = key + part * factor
    return key
