"""A packed bundle as files of a folder."""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import BinaryIO, Final

from collector.domain.errors import MalformedInput
from collector.models.archive import BROKEN, check_member, is_archive, opened

LARGEST_UNPACKED: Final = 1 << 30
"""Bytes that one archive may hold."""
LONGEST_NAME: Final = 120
NOT_WANTED: Final = (".safetensors", ".gguf", ".bin", ".pt", ".pth", ".onnx")
"""Weights: nothing is learnt from them here, and they are large."""
_BLOCK: Final = 1 << 20
_ODD: Final = re.compile(r"[^\w.-]+", re.ASCII)


def unpack(path: Path, folder: Path) -> list[Path]:
    """Put the files of an archive side by side into a folder; one that is no archive is moved there.

    A model's ``draft/config.json`` becomes ``draft_config.json``, as bundles call it.

    Raises:
        MalformedInput: the archive is broken, holds more than any bundle, or a path that leads out of it.
    """
    with path.open("rb") as file:
        head = file.read(512)
    if not is_archive(head, path.name):
        return [path.rename(free_path(folder, path.name))]
    written: list[Path] = []
    left = LARGEST_UNPACKED
    try:
        with opened(path, path.name) as members:
            for number, member in enumerate(members, 1):
                check_member(member.name, number, path.name)
                if member.name.suffix.lower() in NOT_WANTED or member.name.name.startswith("."):
                    continue
                place = free_path(folder, _name(member.name))
                left = _write(member.stream, place, left, path.name)
                written.append(place)
    except BROKEN as error:
        raise MalformedInput(
            "this archive cannot be read", why=str(error)[:200], where=path.name, hint="give the files themselves"
        ) from error
    return written


def free_path(folder: Path, name: str) -> Path:
    """A path of this name in the folder that no file has; what is odd in the name is left out."""
    plain = _ODD.sub("_", name.replace("\\", "/").rsplit("/", 1)[-1]).lstrip(".")[-LONGEST_NAME:] or "file"
    place = folder / plain
    number = 2
    while place.exists():
        place = folder / f"{number}-{plain}"
        number += 1
    return place


def _name(member: PurePosixPath) -> str:
    return f"{member.parent.name}_config.json" if member.name == "config.json" and member.parent.name else member.name


def _write(stream: BinaryIO, place: Path, left: int, source: str) -> int:
    with place.open("wb") as out:
        while block := stream.read(_BLOCK):
            left -= len(block)
            if left < 0:
                raise MalformedInput(
                    f"this archive holds more than {LARGEST_UNPACKED >> 30} GiB",
                    where=source,
                    hint="draftscope ingest reads files of any size",
                )
            out.write(block)
    return left
