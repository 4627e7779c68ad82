"""Short texts that come again and again in the lines of a log, such as the names of processes, as numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np

from collector.formats.columns import Lines, Mask, Positions, Words, bits_of, find_byte, masked

TEXT_WORDS: Final = 5
"""Words in which the end of a text is looked for."""
TEXTS_KEPT: Final = 1_024
FEW_TEXTS: Final = 8
"""Up to this many known texts are compared one by one."""
TEXTS_LEARNED: Final = 64
"""New texts that one block may bring; further ones are left out."""
_FACTORS: Final = tuple(np.uint64(pow(0x9E3779B97F4A7C15, power, 1 << 64)) for power in range(TEXT_WORDS))
_BYTE: Final = np.uint64(0xFF)


class Texts:
    """Tells texts that end in one character and a blank behind it; each is looked at once.

    ``learn`` gives the number of a text that was not seen before, -1 for one that is not wanted.
    """

    def __init__(self, end: bytes, learn: Callable[[bytes], int]) -> None:
        self._end = end[0]
        self._learn = learn
        # Known texts: their words, their numbers, and their order by key. The first one is none.
        self._texts: Words = np.zeros((1, TEXT_WORDS), dtype=np.uint64)
        self._numbers: Positions = np.full(1, -1, dtype=np.int64)
        self._keys: Words = np.zeros(1, dtype=np.uint64)
        self._by_key: Positions = np.zeros(1, dtype=np.int64)

    def read(self, lines: Lines, starts: Positions, first: Words | None = None) -> tuple[Positions, Positions]:
        """The numbers of the texts that begin at some positions, -1 where they cannot be told, and their lengths.

        ``first`` are the words at these positions, where they are known.
        """
        words = lines.words(starts) if first is None else first
        end = find_byte(words, self._end)
        lengths: Positions = end.astype(np.int64)
        parts = [words & masked(bits_of(end))]
        going_on = end == 8
        while going_on.any() and len(parts) < TEXT_WORDS:
            words = lines.words(starts + 8 * len(parts))
            end = find_byte(words, self._end)
            parts.append(np.where(going_on, words & masked(bits_of(end)), np.uint64(0)))
            lengths += np.where(going_on, end, 0)
            going_on &= end == 8
        complete = ~going_on & ((lines.words(starts + lengths + 1) & _BYTE) == ord(" "))
        texts = self._find(parts)
        for _ in range(TEXTS_LEARNED):
            unknown = np.flatnonzero((texts < 0) & complete)
            if not len(unknown) or len(self._numbers) >= TEXTS_KEPT:
                break
            one = unknown[0]
            start = int(starts[one])
            self._add([part[one] for part in parts], self._learn(lines.text(start, start + int(lengths[one]))))
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
        for number in range(1, TEXT_WORDS):
            if number < len(parts):
                same &= parts[number] == self._texts[texts, number]
            else:
                same &= self._texts[texts, number] == 0
        return same

    def _add(self, parts: Sequence[np.uint64], number: int) -> None:
        row = np.zeros((1, TEXT_WORDS), dtype=np.uint64)
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
