"""Cuts a stream of bytes into blocks of whole lines, with bounded memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import accumulate, count
from typing import Any, Final, NamedTuple

BLOCK_BYTES: Final = 1 << 22
LARGE: Final = 1 << 18
"""From this size on a block is worth being looked at as an array."""
MOST_LINES: Final = 1 << 17
"""A large block of more lines is cut: what is looked at as an array takes memory for each of them."""
BEHIND: Final = bytes(4_096)
"""Put behind a large block, so that its lines can be compared with texts that are longer."""
LINE_CAP: Final = 4 << 20
"""Longer lines are dropped and counted: no engine prints them, and they must not fill the memory."""


def line_ends(text: bytes, size: int) -> Any:
    """The positions of all newlines among the first bytes, as an array."""
    import numpy as np  # slow to load, and of no use to small logs

    return (np.frombuffer(text, np.uint8, size) == ord("\n")).nonzero()[0].astype(np.int64, copy=False)


class Places(NamedTuple):
    """Where lines that do not stand one after the other came from: byte offset and line number of each."""

    offsets: list[int]
    numbers: list[int]


class Block:
    """Whole lines of a source: where they begin, the number of the first, the bytes.

    Lines that were taken out of others have ``places``; their data ends with a newline. ``ends`` are
    the positions of the newlines where these were looked for already. ``text`` may go on behind the
    ``size`` bytes of the block with what is no part of it.
    """

    __slots__ = ("_data", "ends", "first_line", "offset", "places", "size", "text")

    def __init__(
        self,
        offset: int,
        first_line: int,
        text: bytes,
        places: Places | None = None,
        *,
        ends: Any = None,
        behind: int = 0,
    ) -> None:
        self.offset = offset
        self.first_line = first_line
        self.text = text
        self.size = len(text) - behind
        self.places = places
        self.ends = ends
        self._data: bytes | None = None if behind else text

    @property
    def data(self) -> bytes:
        """The block's bytes alone."""
        if self._data is None:
            self._data = self.text[: self.size]
        return self._data

    def holds(self, character: bytes) -> bool:
        """Whether a character is among the bytes."""
        return self.text.find(character, 0, self.size) >= 0

    def parted(self, size: int) -> tuple[Block, Block | None]:
        """The block's lines up to about a size and those behind; of lines that stand apart in the source, all and none."""
        end = self.text.find(b"\n", size, self.size) + 1
        if self.places is not None or not end or end == self.size:
            return self, None
        data = self.data
        first = Block(self.offset, self.first_line, data[:end])
        return first, Block(self.offset + end, self.first_line + first.data.count(b"\n"), data[end:])

    def lines(self) -> Iterator[tuple[int, int, bytes]]:
        """Byte offset, number and bytes of each line, without its newline."""
        lines = self.data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        if self.places is not None:
            return zip(*self.places, lines, strict=True)
        starts = accumulate((len(line) + 1 for line in lines), initial=self.offset)
        return zip(starts, count(self.first_line), lines, strict=False)


class BlockCutter:
    """Takes bytes as they come and gives whole lines; what it gives does not depend on how they came."""

    def __init__(self) -> None:
        self.lines = 0
        self.oversize = 0
        self._offset = 0
        self._carry: list[bytes] = []
        self._carried = 0
        self._dropping = False

    def feed(self, data: bytes) -> list[Block]:
        """Blocks of the lines that are complete now."""
        blocks: list[Block] = []
        for start in range(0, len(data), BLOCK_BYTES):
            self._piece(data[start : start + BLOCK_BYTES], blocks)
        return blocks

    def finish(self) -> list[Block]:
        """The last line, if it has no newline."""
        if self._dropping:
            self.lines += 1
        if not self._carried:
            return []
        data = b"".join(self._carry)
        self._carry, self._carried = [], 0
        block = Block(self._offset, self.lines + 1, data)
        self._offset += len(data)
        self.lines += 1
        return [block]

    def _piece(self, piece: bytes, blocks: list[Block]) -> None:
        if self._dropping:
            end = piece.find(b"\n")
            if end < 0:
                self._offset += len(piece)
                return
            self._dropping = False
            self.lines += 1
            self._offset += end + 1
            piece = piece[end + 1 :]
        last = piece.rfind(b"\n")
        if last < 0:
            self._keep(piece)
            return
        first = piece.find(b"\n")
        parts: list[bytes | memoryview] = [*self._carry]
        size = self._carried + last + 1
        if self._carried + first > LINE_CAP:
            self.oversize += 1
            self.lines += 1
            self._offset += self._carried + first + 1
            parts, size = [], last - first
            parts.append(memoryview(piece)[first + 1 : last + 1])
        else:
            parts.append(memoryview(piece)[: last + 1])
        self._carry, self._carried = [], 0
        if size:
            blocks += self._blocks(parts, size)
        self._keep(piece[last + 1 :])

    def _blocks(self, parts: Sequence[bytes | memoryview], size: int) -> Iterator[Block]:
        """Put parts together, once, with what an array reader needs behind them."""
        if size < LARGE:
            data = b"".join(parts)
            block = Block(self._offset, self.lines + 1, data)
            lines = data.count(b"\n")
        else:
            text = b"".join([*parts, BEHIND])
            ends = line_ends(text, size)
            lines = len(ends)
            if lines > MOST_LINES:
                half = int(ends[lines // 2]) + 1
                yield from self._blocks([memoryview(text)[:half]], half)
                yield from self._blocks([memoryview(text)[half:size]], size - half)
                return
            block = Block(self._offset, self.lines + 1, text, ends=ends, behind=len(BEHIND))
        self.lines += lines
        self._offset += size
        yield block

    def _keep(self, rest: bytes) -> None:
        if rest:
            self._carry.append(rest)
            self._carried += len(rest)
        if self._carried > LINE_CAP:
            self.oversize += 1
            self._offset += self._carried
            self._carry, self._carried = [], 0
            self._dropping = True
