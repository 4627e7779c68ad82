"""A source is known by its bytes, not by its name: its beginning, and what stands before a point in it."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Final, NamedTuple

from collector.sources.file import blocks, bytes_at, is_packed

IDENTIFYING_BYTES: Final = 4096


class Mark(NamedTuple):
    """A point in a stream of bytes, told by what stands at the beginning and before it.

    Fields: the offset; digest and length of the beginning; digest of the bytes before the offset.
    """

    offset: int
    head_digest: str
    head_length: int
    tail_digest: str


class Ends:
    """Length, beginning and end of a stream of bytes."""

    def __init__(self) -> None:
        self.length = 0
        self._head = b""
        self._tail = b""

    def add(self, data: bytes) -> None:
        """Take further bytes."""
        self.length += len(data)
        if len(self._head) < IDENTIFYING_BYTES:
            self._head += data[: IDENTIFYING_BYTES - len(self._head)]
        self._tail = (self._tail + data[-IDENTIFYING_BYTES:])[-IDENTIFYING_BYTES:]

    def may_begin_like(self, mark: Mark) -> bool:
        """Whether what was taken so far is no other stream than the one a point is marked in."""
        return len(self._head) < mark.head_length or digest(self._head[: mark.head_length]) == mark.head_digest

    def mark(self) -> Mark:
        """The point that was reached."""
        return Mark(self.length, digest(self._head), len(self._head), digest(self._tail))


def digest(data: bytes) -> str:
    """128 bits of SHA-256."""
    return hashlib.sha256(data).hexdigest()[:32]


def head_digest(path: Path) -> str:
    """The digest of a file's beginning.

    Raises:
        UnreadableInput: it cannot be read.
    """
    return digest(bytes_at(path, 0, IDENTIFYING_BYTES))


def begins_like(path: Path, mark: Mark) -> bool:
    """Whether a file's content is that of a source up to a point in it.

    Raises:
        UnreadableInput: it cannot be read.
    """
    if mark.offset == 0 or digest(bytes_at(path, 0, mark.head_length)) != mark.head_digest:
        return False
    tail = min(IDENTIFYING_BYTES, mark.offset)
    return digest(bytes_at(path, mark.offset - tail, tail)) == mark.tail_digest


def length_of(path: Path) -> int:
    """How many bytes a file holds, unpacked.

    Raises:
        UnreadableInput: it cannot be read.
    """
    if not is_packed(path):
        return path.stat().st_size
    return sum(len(block) for block in blocks(path, []))
