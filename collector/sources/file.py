"""Bytes of files and of the standard input, unpacked where they are compressed, in blocks of bounded size."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, Final

from collector.domain.errors import InputError, MalformedInput, UnreadableInput
from collector.domain.redaction import redact_text
from collector.sources.compressed import LONGEST_MAGIC, Damaged, decompressed, is_compressed

BLOCK_BYTES: Final = 1 << 22
STDIN: Final = Path("-")
LONGEST_LINE: Final = 4_096
PACKED_SUFFIXES: Final = (".gz", ".zst", ".zstd", ".bz2", ".xz")
LARGEST_TEXT: Final = 16 << 20
"""Small files (commands, configs, training output) are read whole up to this size."""


def blocks(path: Path, problems: list[str] | None = None) -> Iterator[bytes]:
    """The bytes of a file, or of the standard input for ``-``, in blocks.

    A compressed file that is damaged gives what can be had of it; why that is not all is added to
    ``problems``, or raised where these are not asked for.

    Raises:
        UnreadableInput: it cannot be opened or read.
        MalformedInput: it is compressed and damaged.
    """
    try:
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
    except Damaged as error:
        what = "the compressed file is damaged"
        if problems is None:
            hint = "what comes before can be read by unpacking it by hand"
            raise MalformedInput(what, why=str(error), where=str(path), hint=hint) from error
        problems.append(f"{what} ({error}); what comes before was read")


def without_packing(name: str) -> str:
    """A file's name without the suffix that says how it is compressed."""
    return next((name.removesuffix(suffix) for suffix in PACKED_SUFFIXES if name.endswith(suffix)), name)


def is_packed(path: Path) -> bool:
    """Whether a file is compressed.

    Raises:
        UnreadableInput: it cannot be opened or read.
    """
    try:
        with path.open("rb", buffering=0) as stream:
            return is_compressed(_beginning(stream))
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
    return bytes_at(path, 0, size)


def bytes_at(path: Path, offset: int, length: int) -> bytes:
    """Bytes out of the middle of a file; offsets are those of its unpacked content.

    Raises:
        UnreadableInput: it cannot be opened or read.
    """
    if not is_packed(path):
        try:
            with path.open("rb") as stream:
                stream.seek(offset)
                return stream.read(length)
        except OSError as error:
            raise cannot_open(path, error) from error
    found: list[bytes] = []
    position = 0
    for block in blocks(path, []):
        start = max(offset - position, 0)
        position += len(block)
        if position > offset:
            found.append(block[start : start + length])
            length -= len(found[-1])
        if not length:
            break
    return b"".join(found)


def line_at(path: Path, offset: int) -> str | None:
    """The line that begins at a byte offset, redacted; ``None`` where the file is no longer what it was."""
    try:
        line = bytes_at(path, offset, LONGEST_LINE).split(b"\n", 1)[0]
    except InputError:
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
    head = _beginning(stream)
    if is_compressed(head):
        yield from decompressed(head, stream)
        return
    if head:
        yield head + stream.read(BLOCK_BYTES - len(head))
    while block := stream.read(BLOCK_BYTES):
        yield block


def _beginning(stream: BinaryIO) -> bytes:
    """The bytes that tell a compressed file; a pipe may give them piece by piece."""
    head = b""
    while len(head) < LONGEST_MAGIC and (more := stream.read(LONGEST_MAGIC - len(head))):
        head += more
    return head
