"""A model inside a ``.zip`` or ``.tar`` archive. Nothing is unpacked: members are read where they are."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import IO, BinaryIO, Final, cast

from collector.domain.drafts import ModelConfig, Tensor, Weights
from collector.domain.errors import MalformedInput, UnreadableInput
from collector.models.configs import parse_model_config
from collector.models.weights import read_header

LARGEST_CONFIG: Final = 16 << 20
MOST_MEMBERS: Final = 10_000
FREE_BYTES: Final = 64 << 20
"""Up to here an archive may expand by any factor."""
LARGEST_FACTOR: Final = 100
"""Weights hardly shrink; an archive that expands further was made to harm."""
_COMPRESSIONS: Final = ((b"\x1f\x8b", gzip.open), (b"BZh", bz2.open), (b"\xfd7zXZ", lzma.open))
BROKEN: Final = (
    zipfile.BadZipFile, tarfile.TarError, lzma.LZMAError, zlib.error, EOFError, OSError, RuntimeError, NotImplementedError,
    UnicodeError,
)  # fmt: skip
"""What the readers raise on archives that are cut, encrypted or not of a known compression."""


@dataclass(frozen=True, slots=True)
class Member:
    """A regular file of an archive; ``stream`` is good until the next member is asked for."""

    name: PurePosixPath
    stream: BinaryIO


def is_archive(head: bytes, name: str) -> bool:
    """Whether a file is an archive by its first bytes and its name."""
    if head.startswith(b"PK\x03\x04"):
        return True
    lower = name.lower()
    packed = lower.endswith((".tgz", ".tbz2", ".txz")) or ".tar." in lower
    return head[257:262] == b"ustar" or (packed and head.startswith(tuple(magic for magic, _ in _COMPRESSIONS)))


def read_archive(path: Path, source: str | None = None) -> ModelConfig:
    """The model of an archive: its uppermost ``config.json``, and the headers of the weights beside it.

    Raises:
        MalformedInput: the archive is broken, expands without end, or holds a path that leads out of it.
        UnreadableInput: it cannot be opened, or holds no ``config.json``.
    """
    name = source or str(path)
    config: tuple[PurePosixPath, str] | None = None
    weights: dict[PurePosixPath, dict[str, Tensor]] = {}
    gguf = False
    try:
        with opened(path, name) as members:
            for number, member in enumerate(members, 1):
                check_member(member.name, number, name)
                here = member.name.parent
                if member.name.name == "config.json" and (config is None or len(here.parts) < len(config[0].parts)):
                    config = here, _text(member.stream, f"{name}:{member.name}")
                elif member.name.suffix == ".safetensors":
                    tensors = read_header(member.stream, f"{name}:{member.name}")
                    weights[here] = {**weights.get(here, {}), **tensors}
                gguf |= member.name.suffix == ".gguf"
    except BROKEN as error:
        if isinstance(error, FileNotFoundError):
            raise UnreadableInput("there is no such file", where=name, hint="check the path") from error
        raise MalformedInput(
            "this archive cannot be read",
            why=str(error)[:200],
            where=name,
            hint="unpack it yourself and give the folder",
        ) from error
    if config is None:
        raise UnreadableInput(
            "this archive holds no config.json",
            why="a GGUF file in it would have to be unpacked" if gguf else "",
            where=name,
            hint="give the GGUF file itself" if gguf else "give the model's folder or its config.json",
        )
    folder, text = config
    parsed = parse_model_config(text, f"{name}:{folder / 'config.json'}")
    if folder not in weights:
        return parsed
    return replace(parsed, weights=Weights(f"{name}:{folder}", weights[folder]))


def check_member(member: PurePosixPath, number: int, source: str) -> None:
    """Refuse a member that nobody honest packs.

    Raises:
        MalformedInput: its path leads out of the archive, or it is one too many.
    """
    if member.is_absolute() or ".." in member.parts or "\\" in str(member) or ":" in member.parts[0]:
        raise MalformedInput(
            "this archive holds a path that leads out of it",
            why=f"{str(member)!r}; nothing was written",
            where=source,
            hint="do not unpack it; get the model from where it was published",
        )
    if number > MOST_MEMBERS:
        raise MalformedInput(f"this archive holds more than {MOST_MEMBERS:,} files", why="no model does", where=source)


def _text(stream: BinaryIO, source: str) -> str:
    data = stream.read(LARGEST_CONFIG + 1)
    if len(data) > LARGEST_CONFIG:
        raise MalformedInput("this config.json is larger than any", where=source)
    return data.decode("utf-8-sig", "replace")


@contextmanager
def opened(path: Path, source: str) -> Iterator[Iterator[Member]]:
    """The members of an archive one after the other, unpacked as they are read and within bounds.

    Raises:
        MalformedInput: it expands beyond reason.
        (those of :data:`BROKEN`): it is broken.
    """
    with path.open("rb") as file:
        head = file.read(8)
        file.seek(0)
        if head.startswith(b"PK\x03\x04"):
            with zipfile.ZipFile(file) as archive:
                yield _zipped(archive)
            return
        unpacked: IO[bytes] = file
        for magic, opener in _COMPRESSIONS:
            if head.startswith(magic):
                unpacked = cast("IO[bytes]", opener(file))
        guarded = _Guarded(unpacked, path.stat().st_size, source)
        with tarfile.open(fileobj=guarded, mode="r|") as tape:
            yield _taped(tape)


def _zipped(archive: zipfile.ZipFile) -> Iterator[Member]:
    for entry in archive.infolist():
        if not entry.is_dir():
            with archive.open(entry) as stream:
                yield Member(PurePosixPath(entry.filename), cast("BinaryIO", stream))


def _taped(tape: tarfile.TarFile) -> Iterator[Member]:
    for entry in tape:
        stream = tape.extractfile(entry) if entry.isreg() else None
        # Links and devices are looked at too: their names must not lead out either.
        yield Member(PurePosixPath(entry.name), cast("BinaryIO", stream or io.BytesIO()))


class _Guarded(io.RawIOBase):
    """Decompressed bytes, up to a bound that the archive's own size sets."""

    def __init__(self, stream: IO[bytes], packed: int, source: str) -> None:
        self._stream = stream
        self._left = max(FREE_BYTES, packed * LARGEST_FACTOR)
        self._source = source

    def readable(self) -> bool:
        """It is."""
        return True

    def read(self, size: int = -1) -> bytes:
        """The next bytes.

        Raises:
            MalformedInput: there are more than an honest archive of its size has.
        """
        data = self._stream.read(size if size >= 0 else self._left + 1)
        self._left -= len(data)
        if self._left < 0:
            raise MalformedInput(
                "this archive expands beyond reason",
                why=f"more than {LARGEST_FACTOR} times its own size",
                where=self._source,
                hint="give the model's folder or its config.json",
            )
        return data
