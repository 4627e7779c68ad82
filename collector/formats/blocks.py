"""Cuts a stream of bytes into blocks of whole lines, with bounded memory."""

from __future__ import annotations

from typing import Final

from collector.formats.base import Block

BLOCK_BYTES: Final = 1 << 20
LINE_CAP: Final = 4 << 20
"""Longer lines are dropped and counted: no engine prints them, and they must not fill the memory."""


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
            self._carry.append(piece[: last + 1])
            data = b"".join(self._carry)
            self._carry, self._carried = [], 0
        if data:
            blocks.append(Block(self._offset, self.lines + 1, data))
            self._offset += len(data)
            self.lines += data.count(b"\n")
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
