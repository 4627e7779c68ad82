"""Bytes of a file as a program appends them; that the file was rotated or truncated is noticed.

A rotated file is read to its end before the next one is begun, and so is every file that was
rotated in between. What is known of the file: device, inode, offset, and its first bytes, which
tell a file that was truncated and has grown past the offset again.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from collector.sources import file as plain
from collector.sources.identity import IDENTIFYING_BYTES
from collector.sources.rotation import rotated_of

PIECES_AT_ONCE: Final = 64
"""Pieces of one file that are given before the others have their turn."""


class Growth(NamedTuple):
    """What was appended; ``file`` is given where it is the beginning of another file."""

    data: bytes
    file: Path | None = None


class Follower:
    """Follows one file by its name, from now on whatever becomes of the name. Close it when done.

    Raises:
        UnreadableInput: the file may not be read.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._stream: BinaryIO | None = None
        self._head = b""
        self._offset = 0
        self._begun: Path | None = None
        """A file that was opened and not told of yet."""
        self._open(path)

    def poll(self) -> Iterator[Growth]:
        """What was appended since the last call; nothing where the file is not there (yet).

        Raises:
            UnreadableInput: the file may not be read.
        """
        if self._stream is None:
            if not self._open(self.path):
                return
        elif self._begun_anew(self._stream):
            self._stream.seek(0)
            self._head, self._offset, self._begun = b"", 0, self.path
        for _ in range(PIECES_AT_ONCE):
            if self._begun is not None:
                begun, self._begun = self._now_at() or self._begun, None
                yield Growth(b"", begun)
            data = self._read()
            if data:
                yield Growth(data)
                continue
            following = self._following()
            if following is None or not self._open(following):
                return

    def close(self) -> None:
        """Let the file go."""
        if self._stream is not None:
            self._stream.close()
            self._stream = None

    def _read(self) -> bytes:
        assert self._stream is not None
        data = self._stream.read(plain.BLOCK_BYTES)
        self._offset += len(data)
        if len(self._head) < IDENTIFYING_BYTES:
            self._head += data[: IDENTIFYING_BYTES - len(self._head)]
        return data

    def _open(self, path: Path) -> bool:
        try:
            stream = path.open("rb", buffering=0)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise plain.cannot_open(path, error) from error
        self.close()
        self._stream, self._head, self._offset, self._begun = stream, b"", 0, path
        return True

    def _following(self) -> Path | None:
        """The file that comes after this one, if this one is over."""
        assert self._stream is not None
        own = _identity(os.fstat(self._stream.fileno()))
        try:
            now = self.path.stat()
        except FileNotFoundError:
            return self._rotated_after(own)
        except OSError as error:
            raise plain.cannot_open(self.path, error) from error
        if _identity(now) == own or not now.st_size:
            return None
        return self._rotated_after(own) or self.path

    def _begun_anew(self, stream: BinaryIO) -> bool:
        """Whether the file was truncated: it is shorter than what was read, or begins otherwise."""
        if os.fstat(stream.fileno()).st_size < self._offset:
            return True
        return os.pread(stream.fileno(), len(self._head), 0) != self._head

    def _rotated_after(self, own: tuple[int, int]) -> Path | None:
        """The first of the files that were begun and rotated away after this one."""
        files = self._files()
        places = [place for _, place in files]
        return files[places.index(own) + 1][0] if own in places[:-1] else None

    def _now_at(self) -> Path | None:
        """Where the open file is by now."""
        assert self._stream is not None
        own = _identity(os.fstat(self._stream.fileno()))
        return next((path for path, place in self._files() if place == own), None)

    def _files(self) -> list[tuple[Path, tuple[int, int]]]:
        """The files that the log was rotated into and the current one, oldest first, and which they are."""
        try:
            return [(path, _identity(path.stat())) for path in rotated_of(self.path)]
        except OSError:
            return []


def _identity(stat: os.stat_result) -> tuple[int, int]:
    return stat.st_dev, stat.st_ino
