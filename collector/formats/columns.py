"""Lines of a block as arrays: located, compared and taken apart many at a time.

A *word* is the eight bytes from a position on, read as one little-endian number, so that one
operation looks at eight characters of every line at once. Everything here is exact: what does not
have the expected form is told so and left to the reader that goes line by line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from collector.formats.blocks import BEHIND, Block, line_ends
from collector.formats.pairs import Span

Positions: TypeAlias = npt.NDArray[np.int64]
Words: TypeAlias = npt.NDArray[np.uint64]
Figures: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Counts: TypeAlias = npt.NDArray[np.uint8]

LONGEST_EXAMPLE: Final = 1_000
MOST_DECIMALS: Final = 7
SECONDS: Final = 62
"""More than a minute has seconds, with two that leap."""
FEW: Final = 64

_ZEROS: Final = np.uint64(0x3030303030303030)
_ONES: Final = np.uint64(0x0101010101010101)
_HIGH: Final = np.uint64(0x8080808080808080)
_ABOVE_NINE: Final = np.uint64(0x7676767676767676)
"""Added to bytes, sets the high bit of those above 9."""
_ONE: Final = np.uint64(1)
_EIGHT: Final = np.uint64(8)
WORD: Final = 8
_BYTE: Final = np.uint64(0xFF)
_TWO_BYTES: Final = np.uint64(0xFFFF)
_POINT: Final = np.uint64(ord(".") ^ 0x30)
_NOTHING: Final[Figures] = np.empty(0)
_STEPS: Final = tuple(
    (np.uint64(factor), np.uint64(shift), np.uint64(mask))
    for factor, shift, mask in (
        (10, 8, 0x00FF00FF00FF00FF),
        (100, 16, 0x0000FFFF0000FFFF),
        (10_000, 32, 0x00000000FFFFFFFF),
    )
)
"""Neighbouring digits, then pairs, then fours are put together."""


def word(text: bytes) -> np.uint64:
    """Up to eight characters as the number that a word with them is."""
    return np.uint64(int.from_bytes(text, "little"))


class Lines:
    """The lines of a block.

    Shapes: ``starts`` and ``ends`` (n,), positions of the first byte and of the newline (or the end).
    """

    def __init__(self, block: Block) -> None:
        size = block.size
        ends: Positions = block.ends if block.ends is not None else line_ends(block.text, size)
        if size and (not len(ends) or ends[-1] != size - 1):
            ends = np.append(ends, size)
        starts = np.empty_like(ends)
        starts[:1] = 0
        starts[1:] = ends[:-1] + 1
        self.starts: Positions = starts
        self.ends: Positions = ends
        self._size = size
        self._text = block.text if len(block.text) - size >= len(BEHIND) else block.data + BEHIND
        self._words: Words = self._every("<u8", 8)

    def words(self, at: Positions) -> Words:
        """The words at some positions."""
        return self._words[at]

    def leads(self, count: int) -> Words:
        """The first words of every line. Shape (n, count)."""
        found: Words = self._every(f"V{8 * count}", 8 * count)[self.starts].view("<u8").reshape(-1, count)
        return found

    def begins(self, at: Positions, literal: bytes) -> Mask:
        """Where the text from a position on begins with a literal that holds neither newline nor NUL."""
        found: Mask = self._every(f"S{len(literal)}", len(literal))[at] == literal
        return found

    def with_any(self, characters: Iterable[bytes]) -> Mask:
        """Which lines hold one of some characters that are rare as a rule. Shape (n,)."""
        found: Mask = np.zeros(len(self.starts), dtype=bool)
        for character in characters:
            places = self._few(character)
            if len(places) == FEW:
                places = (np.frombuffer(self._text, np.uint8, self._size) == character[0]).nonzero()[0]
            if len(places):
                found[np.searchsorted(self.ends, places)] = True
        return found

    def text(self, start: int, end: int) -> bytes:
        """The bytes between two positions."""
        return self._text[start:end]

    def _few(self, character: bytes) -> Sequence[int] | Positions:
        """The first places of a character, :data:`FEW` at most."""
        places: list[int] = []
        at = self._text.find(character, 0, self._size)
        while at >= 0 and len(places) < FEW:
            places.append(at)
            at = self._text.find(character, at + 1, self._size)
        return places

    def _every(self, kind: str, length: int) -> Any:
        """A view of what stands at every position."""
        return np.ndarray(len(self._text) - length + 1, kind, self._text, 0, (1,))


def leading_digits(words: Words) -> tuple[Counts, Words]:
    """How many digits a word begins with, and the word with its digits as values 0 to 9."""
    values = words ^ _ZEROS
    return first_byte(((values + _ABOVE_NINE) | values) & _HIGH), values


def first_byte(marks: Words) -> Counts:
    """The number of the first byte whose high bit is set, 8 if there is none."""
    found: Counts = np.bitwise_count((marks & -marks) - _ONE) >> 3
    return found


def find_byte(words: Words, character: int) -> Counts:
    """The number of the first byte that is this character, 8 if there is none."""
    differences = words ^ (_ONES * np.uint64(character))
    return first_byte((differences - _ONES) & ~differences & _HIGH)


def bits_of(count: Counts) -> Words:
    """The width of a number of bytes in bits."""
    return count.astype(np.uint64) << np.uint64(3)


def digits_value(values: Words, bits: Words | np.uint64, most: int = WORD) -> Words:
    """The number that the first bytes of a word make, as digits with values 0 to 9.

    ``bits`` is the width of the digits, ``most`` at least the largest number of them.
    """
    steps = 1 if most <= 2 else 2 if most <= 4 else 3
    values = values << (np.uint64(8 << steps) - bits)
    for factor, shift, mask in _STEPS[: steps - 1]:
        values = (values * factor + (values >> shift)) & mask
    factor, shift, _ = _STEPS[steps - 1]
    return (values * factor + (values >> shift)) & np.uint64((1 << (4 << steps)) - 1)


def masked(bits: Words | np.uint64) -> Words:
    """Words of which so many bits are set, from the first byte on."""
    found: Words = (_ONE << np.asarray(bits)) - _ONE
    return found


@dataclass(frozen=True, slots=True)
class _Number:
    """A number of a template: its decimals, our name if its value is wanted, its digits before the point if they are fixed."""

    decimals: int
    name: str | None
    whole: int = 0


@dataclass(frozen=True, slots=True)
class _Truth:
    """A truth value of a template, ``True`` or ``False``."""

    name: str


_TOKEN: Final = re.compile(rb"\d+(?:\.\d+)?|(?<![A-Za-z])(?:True|False)(?![A-Za-z])")
_TRUE: Final = word(b"True")
_FALSE: Final = word(b"False")
_FOUR_BYTES: Final = np.uint64((1 << 32) - 1)
_FIVE_BYTES: Final = np.uint64((1 << 40) - 1)


class Template:
    """One form of text: literals, and between them numbers and truth values that vary."""

    def __init__(self, pieces: Sequence[bytes | _Number | _Truth]) -> None:
        self._pieces = pieces

    @classmethod
    def of(cls, example: bytes, spans: Sequence[Span]) -> Template | None:
        """The template of an example; ``None`` if a wanted value is neither a plain number nor a truth value."""
        if len(example) > LONGEST_EXAMPLE or b"\x00" in example:
            return None
        wanted = {(span.start, span.end): span for span in spans}
        pieces: list[bytes | _Number | _Truth] = []
        position = 0
        for token in _TOKEN.finditer(example):
            span = wanted.pop(token.span(), None)
            name = None if span is None else span.name
            decimals = len(token[0].partition(b".")[2])
            if decimals > MOST_DECIMALS:
                return None
            if not token[0][:1].isdigit() and name is None:
                continue
            if token.start() > position:
                pieces.append(example[position : token.start()])
            whole = 0 if span is None else span.whole
            pieces.append(_Number(decimals, name, whole) if token[0][:1].isdigit() else _Truth(name or ""))
            position = token.end()
        if position < len(example):
            pieces.append(example[position:])
        return None if wanted else cls(pieces)

    def match(self, lines: Lines, starts: Positions, ends: Positions) -> tuple[Mask, dict[str, Figures]]:
        """Which texts have this form, and the values of all (of the others meaningless) by name.

        Truth values are 1 and 0. Shapes: (n,) each.
        """
        fits: Mask = np.ones(len(starts), dtype=bool)
        values: dict[str, Figures] = {}
        at = starts
        for piece in self._pieces:
            if isinstance(piece, bytes):
                fits &= lines.begins(at, piece)
                at = at + len(piece)
            elif isinstance(piece, _Truth):
                words = lines.words(at)
                true = (words & _FOUR_BYTES) == _TRUE
                fits &= true | ((words & _FIVE_BYTES) == _FALSE)
                at = at + (5 - true)
                values[piece.name] = true.astype(np.float64)
            else:
                at, figures = _number(lines, at, piece, fits)
                if piece.name is not None:
                    values[piece.name] = figures
        fits &= at == ends
        return fits, values


def minutes_and_seconds(
    starts: Positions, same_minute: Mask, seconds: Words, minute: Callable[[int], float | None]
) -> Figures:
    """Instants whose last two digits are the seconds; NaN where they are none. Shapes: (n,), ``same_minute`` (n - 1,).

    ``same_minute`` says which lines have the minute of the one before, ``minute`` gives the instant of the minute that
    begins at a position, and the low two bytes of ``seconds`` are the digits.
    """
    digits, values = leading_digits(seconds & _TWO_BYTES)
    found = digits_value(values & _TWO_BYTES, np.uint64(16), 2).astype(np.float64)
    found[(digits != 2) | (found >= SECONDS)] = np.nan
    firsts = np.append(0, (~same_minute).nonzero()[0] + 1)
    minutes = np.array([minute(start) for start in starts[firsts].tolist()], dtype=np.float64)
    return found + np.repeat(minutes, np.diff(np.append(firsts, len(starts))))


def _number(lines: Lines, at: Positions, number: _Number, fits: Mask) -> tuple[Positions, Figures]:
    """Take a number off each text: where it ends, and its value where it is wanted."""
    words = lines.words(at)
    count, values = leading_digits(words)
    fits &= count == number.whole if number.whole else count > 0
    if number.name is None and not number.decimals:
        return at + count, _NOTHING
    bits = bits_of(count)
    most = int(count.max(initial=0))
    if not number.decimals:
        return at + count, digits_value(values, bits, most).astype(np.float64)
    few = np.uint64(8 * number.decimals)
    digits: Words
    if most + number.decimals < WORD:
        # All of it is in one word: the point is taken out, and both parts are one number.
        point = (values >> bits) & _BYTE == _POINT
        together = bits + few
        whole = masked(bits)
        decimals = (values >> _EIGHT) & (masked(together) ^ whole)
        digits = digits_value((values & whole) | decimals, together, most + number.decimals)
    else:
        rest = lines.words(at + count) ^ _ZEROS
        point = rest & _BYTE == _POINT
        decimals = (rest >> _EIGHT) & masked(few)
        digits = digits_value(values, bits) * np.uint64(10**number.decimals) + digits_value(decimals, few)
    fits &= point
    fits &= ((decimals + _ABOVE_NINE) | decimals) & _HIGH == 0
    # The digits make a whole number below 2**53, so that one division rounds as the text would.
    return at + (count + np.uint8(1 + number.decimals)), digits.astype(np.float64) / 10.0**number.decimals
