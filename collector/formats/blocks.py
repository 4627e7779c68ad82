"""Cuts a stream of bytes into blocks of whole lines, with bounded memory."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import accumulate, count
from typing import Any, Final, NamedTuple

BLOCK_BYTES: Final = 1 << 21
LARGE: Final = 1 << 18
"""From this size on a block is worth being looked at as an array."""
LINE_CAP: Final = 4 << 20
"""Longer lines are dropped and counted: no engine prints them, and they must not fill the memory."""


def line_ends(data: bytes) -> Any:
    """The positions of all newlines, as an array."""
    import numpy as np  # slow to load, and of no use to small logs

    return (np.frombuffer(data, np.uint8) == ord("\n")).nonzero()[0].astype(np.int64, copy=False)


class Places(NamedTuple):
    """Where lines that do not stand one after the other came from: byte offset and line number of each."""

    offsets: list[int]
    numbers: list[int]


class Block(NamedTuple):
    """Whole lines of a source: where they begin, the number of the first, the bytes.

    Lines that were taken out of others have ``places``; their data ends with a newline. ``ends`` are
    the positions of the newlines where these were looked for already.
    """

    offset: int
    first_line: int
    data: bytes
    places: Places | None = None
    ends: Any = None

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
        if self._carried + first > LINE_CAP:
            self.oversize += 1
            self.lines += 1
            self._offset += self._carried + first + 1
            self._carry, self._carried = [], 0
            data = piece[first + 1 : last + 1]
        else:
            data = b"".join([*self._carry, memoryview(piece)[: last + 1]])
            self._carry, self._carried = [], 0
        if data:
            ends = line_ends(data) if len(data) >= LARGE else None
            blocks.append(Block(self._offset, self.lines + 1, data, ends=ends))
            self._offset += len(data)
            self.lines += data.count(b"\n") if ends is None else len(ends)
        self._keep(piece[last + 1 :])

    def _keep(self, rest: bytes) -> None:
        if rest:
            self._carry.append(rest)
            self._carried += len(rest)
        if self._carried > LINE_CAP:
            self.oversize += 1
            self._offset += self._carried
            self._carry, self._carried = [], 0
            self._dropping = True
