"""Bytes of files and of the standard input, in blocks of bounded size."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from collector.domain.errors import UnreadableInput
from collector.domain.redaction import redact_text

BLOCK_BYTES: Final = 1 << 20
STDIN: Final = Path("-")
LONGEST_LINE: Final = 4_096
LARGEST_TEXT: Final = 16 << 20
"""Small files (commands, configs, training output) are read whole up to this size."""


def blocks(path: Path) -> Iterator[bytes]:
    """The bytes of a file, or of the standard input for ``-``, in blocks.

    Raises:
        UnreadableInput: it cannot be opened or read.
    """
    if path == STDIN:
        yield from _blocks(sys.stdin.buffer)
        return
    if path.is_dir():
        raise UnreadableInput("this is a folder, not a file", where=str(path))
    try:
        with path.open("rb", buffering=0) as stream:
            yield from _blocks(stream)
    except OSError as error:
        raise cannot_open(path, error) from error


def text_of(path: Path) -> str:
    """The text of a small file; bytes that are no UTF-8 show as the replacement character.

    Raises:
        UnreadableInput: it cannot be opened, or is larger than any such file.
    """
    parts: list[bytes] = []
    size = 0
    for block in blocks(path):
        parts.append(block)
        size += len(block)
        if size > LARGEST_TEXT:
            raise UnreadableInput(
                f"the file is larger than {LARGEST_TEXT >> 20} MiB", why="no command or config is", where=str(path)
            )
    return b"".join(parts).decode("utf-8-sig", "replace")


def head_of(path: Path, size: int = 65_536) -> bytes:
    """The first bytes of a file.

    Raises:
        UnreadableInput: it cannot be opened or read.
    """
    try:
        with path.open("rb") as stream:
            return stream.read(size)
    except OSError as error:
        raise cannot_open(path, error) from error


def line_at(path: Path, offset: int) -> str | None:
    """The line that begins at a byte offset, redacted; ``None`` where the file is no longer what it was."""
    try:
        with path.open("rb") as stream:
            stream.seek(offset)
            line = stream.readline(LONGEST_LINE)
    except OSError:
        return None
    return redact_text(line.rstrip(b"\r\n").decode("utf-8", "replace")) or None


def cannot_open(path: Path, error: OSError) -> UnreadableInput:
    """The error for a file that the system refuses to open."""
    if isinstance(error, FileNotFoundError):
        return UnreadableInput("there is no such file", where=str(path), hint="check the path")
    if isinstance(error, PermissionError):
        return UnreadableInput(
            "the file may not be read",
            why="permission denied",
            where=str(path),
            hint=f"give read permission, for instance: chmod u+r {path}",
        )
    return UnreadableInput("the file cannot be read", why=error.strerror or str(error), where=str(path))


def _blocks(stream: BinaryIO) -> Iterator[bytes]:
    while block := stream.read(BLOCK_BYTES):
        yield block
