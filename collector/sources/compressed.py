"""Bytes out of compressed files, told by their content and not by their name."""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, Final, Protocol

INPUT_BYTES: Final = 1 << 19
OUTPUT_BYTES: Final = 1 << 22
"""A small file can hold very much, so what is unpacked comes in pieces; a reader takes large ones for less work."""

_GZIP: Final = b"\x1f\x8b"
_BZIP2: Final = b"BZh"
_XZ: Final = b"\xfd7zXZ\x00"
_ZSTANDARD: Final = b"\x28\xb5\x2f\xfd"
_ZSTANDARD_SKIPPABLE: Final = b"\x2a\x4d\x18"
"""Frames of 0x184D2A50 to 0x184D2A5F, behind their first byte: what pzstd begins a file with."""
LONGEST_MAGIC: Final = len(_XZ)


class Damaged(Exception):  # noqa: N818 - named for what is wrong
    """A compressed file ends early or is broken; what came before is good."""


class _Decompressor(Protocol):
    """What :mod:`bz2` and :mod:`lzma` have in common."""

    eof: bool
    needs_input: bool
    unused_data: bytes

    def decompress(self, data: bytes, max_length: int = ...) -> bytes: ...


def is_compressed(head: bytes) -> bool:
    """Whether a file that begins like this is compressed in a way that is read here."""
    return _kind(head) is not None or _is_zstandard(head)


def decompressed(head: bytes, stream: BinaryIO) -> Iterator[bytes]:
    """The bytes of a compressed stream of which ``head`` was read already; several in a row are read as one.

    Raises:
        Damaged: the stream ends early or is broken.
    """
    if _is_zstandard(head):
        yield from _zstandard(head, stream)
        return
    new = _kind(head)
    assert new is not None
    try:
        yield from _members(new, head, stream)
    except (OSError, EOFError, lzma.LZMAError) as error:
        raise Damaged(str(error)) from error


def _members(new: Callable[[], _Decompressor], head: bytes, stream: BinaryIO) -> Iterator[bytes]:
    """All members of a file, one after the other; zero bytes may follow one."""
    decompressor = new()
    begun = False
    data = head
    while data:
        while data or not decompressor.needs_input:
            begun = True
            unpacked = decompressor.decompress(data, OUTPUT_BYTES)
            data = b""
            if unpacked:
                yield unpacked
            if decompressor.eof:
                data = decompressor.unused_data.lstrip(b"\x00")
                decompressor, begun = new(), False
            elif not unpacked and not decompressor.needs_input:
                raise EOFError("it goes on, and nothing comes of it")
        data = stream.read(INPUT_BYTES)
        if not begun:
            data = data.lstrip(b"\x00")
    if begun:
        raise EOFError("it ends early")


class _Gzip:
    """Gzip with the manners of the other decompressors."""

    def __init__(self, module: Any) -> None:
        self._zlib = module.decompressobj(wbits=31)
        self._error: type[Exception] = module.error
        self._tail = b""

    @property
    def eof(self) -> bool:
        return bool(self._zlib.eof)

    @property
    def needs_input(self) -> bool:
        return not self._tail

    @property
    def unused_data(self) -> bytes:
        return bytes(self._zlib.unused_data)

    def decompress(self, data: bytes, max_length: int) -> bytes:
        try:
            unpacked: bytes = self._zlib.decompress(self._tail + data, max_length)
        except self._error as error:
            raise OSError(str(error)) from error
        self._tail = self._zlib.unconsumed_tail
        return unpacked


def _kind(head: bytes) -> Callable[[], Any] | None:
    if head.startswith(_GZIP):
        return _gzip
    if head.startswith(_BZIP2) and head[3:4].isdigit():
        return bz2.BZ2Decompressor
    if head.startswith(_XZ):
        return lzma.LZMADecompressor
    return None


def _gzip() -> _Gzip:
    try:
        from isal import isal_zlib as module  # a third of the work
    except ImportError:  # no such processor
        return _Gzip(zlib)
    return _Gzip(module)


def _is_zstandard(head: bytes) -> bool:
    return head.startswith(_ZSTANDARD) or (head[1:4] == _ZSTANDARD_SKIPPABLE and head[0] >> 4 == 5)


def _zstandard(head: bytes, stream: BinaryIO) -> Iterator[bytes]:
    import zstandard

    source = _Watched(head, stream)
    opened: Any = source  # needs no more of a stream than to be read
    reader = zstandard.ZstdDecompressor().stream_reader(opened, read_across_frames=True)
    try:
        while data := reader.read(OUTPUT_BYTES):
            yield data
    except zstandard.ZstdError as error:
        raise Damaged(str(error)) from error
    if not source.complete:
        raise Damaged("it ends early")


class _Watched:
    """A Zstandard stream with its beginning put back; knows whether it ended where a frame does.

    The library takes a stream that ends early for one that ends. Source: RFC 8878, section 3.1.
    """

    def __init__(self, head: bytes, stream: BinaryIO) -> None:
        self._head = head
        self._stream = stream
        self._pending = b""
        self._skip = 0
        self._in_frame = False
        self._checksum = False

    @property
    def complete(self) -> bool:
        """Whether nothing of a frame is missing."""
        return not (self._in_frame or self._skip or self._pending)

    def read(self, size: int) -> bytes:
        """Further bytes of the stream."""
        head, self._head = self._head, b""
        data = head or self._stream.read(size)
        self._watch(data)
        return data

    def _watch(self, data: bytes) -> None:
        position = 0
        data = self._pending + data
        self._pending = b""
        while position < len(data):
            step = min(self._skip, len(data) - position)
            self._skip -= step
            position += step
            rest = len(data) - position
            if self._skip or not rest:
                return
            length = self._block(data, position) if self._in_frame else self._frame(data, position)
            if length == 0:
                self._pending = data[position:]
                return
            position += length

    def _block(self, data: bytes, position: int) -> int:
        """Take a block's header; its length, 0 if it is not all there."""
        if len(data) - position < 3:
            return 0
        header = int.from_bytes(data[position : position + 3], "little")
        self._skip = 1 if header >> 1 & 3 == 1 else header >> 3
        if header & 1:
            self._in_frame = False
            self._skip += 4 if self._checksum else 0
        return 3

    def _frame(self, data: bytes, position: int) -> int:
        """Take a frame's header; its length, 0 if it is not all there."""
        if len(data) - position < 8:
            return 0
        if data[position + 1 : position + 4] == _ZSTANDARD_SKIPPABLE:
            self._skip = int.from_bytes(data[position + 4 : position + 8], "little")
            return 8
        descriptor = data[position + 4]
        single = descriptor >> 5 & 1
        content = (single, 2, 4, 8)[descriptor >> 6]
        length = 5 + (1 - single) + (0, 1, 2, 4)[descriptor & 3] + content
        if len(data) - position < length:
            return 0
        self._checksum = bool(descriptor >> 2 & 1)
        self._in_frame = True
        return length
