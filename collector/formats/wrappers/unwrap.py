"""Takes blocks of wrapped lines apart: by stream, partial lines joined."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from collector.formats.blocks import LINE_CAP, Block, Places
from collector.formats.tidy import seen_parts
from collector.formats.wrappers.base import Wrapper

CHANNELS_JOINED: Final = 1_000
"""Channels with a partial line at a time; partial lines of further ones stand by themselves."""

PARTS_TRIED: Final = 64
"""Parts of a line in front of which its wrapping is looked for."""


@dataclass(slots=True)
class _Pending:
    """Partial lines of one channel that wait for their end: where the first stands, and their texts."""

    offset: int
    number: int
    texts: list[bytes] = field(default_factory=list)
    length: int = 0
    dropped: bool = False


@dataclass(slots=True)
class _Collected:
    """Lines of one stream out of one block."""

    texts: list[bytes] = field(default_factory=list)
    offsets: list[int] = field(default_factory=list)
    numbers: list[int] = field(default_factory=list)

    def add(self, offset: int, number: int, text: bytes) -> None:
        for part in text.split(b"\n") if b"\n" in text else (text,):
            self.texts.append(part)
            self.offsets.append(offset)
            self.numbers.append(number)
            offset += len(part) + 1

    def block(self) -> Block:
        data = b"\n".join(self.texts) + b"\n"
        return Block(self.offsets[0], self.numbers[0], data, Places(self.offsets, self.numbers))


class Unwrapper:
    """Peels one kind of wrapping off a source.

    A line that is not wrapped belongs to the stream of the line before. ``oversize`` counts joined
    lines that were longer than the cap and dropped.
    """

    def __init__(self, wrapper: Wrapper) -> None:
        self.oversize = 0
        self._peel = wrapper.peel
        self._stream = b""
        self._all_return = True
        self._pending: dict[tuple[bytes, bytes], _Pending] = {}
        self._held = 0

    def block(self, block: Block) -> Iterator[tuple[bytes, Block]]:
        """The lines of a block without wrapping, a block for each stream in the order they appear."""
        found: dict[bytes, _Collected] = {}
        peel, pending = self._peel, self._pending
        for offset, number, line, behind in self._lines(block):
            peeled = peel(line)
            if peeled is None:
                self._collect(found, self._stream).add(offset, number, line)
                continue
            text, stream, channel, whole = peeled
            self._stream = stream
            lines = found.get(stream)
            if lines is None:
                lines = self._collect(found, stream)
            if behind and line.endswith(text):
                text += behind
            if whole and not pending:
                lines.add(offset, number, text)
            else:
                self._join(lines, (stream, channel), offset, number, text, whole=whole)
        for stream, lines in found.items():
            if lines.texts:
                yield stream, lines.block()

    def finish(self) -> Iterator[tuple[bytes, Block]]:
        """Partial lines whose end never came."""
        for (stream, _), waiting in self._pending.items():
            if not waiting.dropped:
                lines = _Collected()
                lines.add(waiting.offset, waiting.number, b"".join(waiting.texts))
                yield stream, lines.block()
        self._pending.clear()

    def _lines(self, block: Block) -> Iterator[tuple[int, int, bytes, bytes]]:
        """The lines of a block; wrapped ones that stand behind a progress bar by themselves.

        Carriage returns at the end of a line come apart. But for one, where all lines so far have it, they belong to the text, which may
        have been cut there.
        """
        if not block.holds(b"\r"):
            self._all_return = False
            yield from ((*line, b"") for line in block.lines())
            return
        lines = list(block.lines())
        self._all_return = self._all_return and all(line.endswith(b"\r") for _, _, line in lines)
        for offset, number, line in lines:
            bare = line.rstrip(b"\r")
            behind = line[len(bare) + self._all_return :]
            begin = self._wrapped_from(bare) if b"\r" in bare else 0
            if begin is None:
                *before, last = seen_parts(bare)
            else:
                before, last = [one for one in seen_parts(bare[:begin]) if one[1]], (begin, bare[begin:])
            yield from ((offset + start, number, part, b"") for start, part in before)
            yield offset + last[0], number, last[1], behind

    def _wrapped_from(self, line: bytes) -> int | None:
        """Where the wrapped part of a line begins: with it or behind one of its first carriage returns."""
        begin = 0
        for _ in range(PARTS_TRIED):
            if self._peel(line[begin:]) is not None:
                return begin
            begin = line.find(b"\r", begin) + 1
            if not begin:
                break
        return None

    @staticmethod
    def _collect(found: dict[bytes, _Collected], stream: bytes) -> _Collected:
        return found.setdefault(stream, _Collected())

    def _join(
        self, lines: _Collected, key: tuple[bytes, bytes], offset: int, number: int, text: bytes, *, whole: bool
    ) -> None:
        waiting = self._pending.get(key)
        if waiting is None:
            if whole or len(self._pending) >= CHANNELS_JOINED:
                lines.add(offset, number, text)
                return
            waiting = self._pending[key] = _Pending(offset, number)
        if not waiting.dropped:
            waiting.texts.append(text)
            waiting.length += len(text)
            self._held += len(text)
        if waiting.length > LINE_CAP or self._held > 2 * LINE_CAP:
            self._held -= waiting.length
            waiting.texts, waiting.length, waiting.dropped = [], 0, True
        if not whole:
            return
        del self._pending[key]
        self._held -= waiting.length
        if waiting.dropped:
            self.oversize += 1
        else:
            lines.add(waiting.offset, waiting.number, b"".join(waiting.texts))
