"""Headers of safetensors files: names, types and shapes. Weights themselves are never read.

Source: the safetensors format: eight bytes with the header's length (little endian), then the
header as JSON, then the data.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from collector.domain.drafts import Tensor, Weights
from collector.domain.errors import MalformedInput, UnreadableInput

LARGEST_HEADER: Final = 25 << 20
"""Bytes; a draft's header has some kilobytes."""
LARGEST_INDEX: Final = 16 << 20
INDEX: Final = "model.safetensors.index.json"
SINGLE: Final = "model.safetensors"
_POINTER: Final = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\noid sha256:([0-9a-f]{64})\n")
_BLOB: Final = re.compile(r"[0-9a-f]{64}")
# Experts of a mixture say nothing about how a draft is wired, and there are thousands of them.
_EXPERT: Final = re.compile(r"\.experts\.\d+\.")


def read_header(stream: BinaryIO, source: str) -> dict[str, Tensor]:
    """The tensors that a safetensors file's header lists.

    Raises:
        MalformedInput: it is cut, or holds no such header.
    """
    head = stream.read(8)
    length = int.from_bytes(head, "little")
    if len(head) < 8 or not 2 <= length <= LARGEST_HEADER:
        raise MalformedInput(
            "this is no safetensors file",
            why="it is cut" if len(head) < 8 else f"its header would have {length:,} bytes",
            where=source,
            hint="download it again; a Git LFS pointer has to be fetched first",
        )
    text = stream.read(length)
    if len(text) < length:
        raise MalformedInput("the header of this safetensors file is cut", where=source, hint="download it again")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise MalformedInput("the header of this safetensors file is not JSON", where=source) from error
    if not isinstance(document, dict):
        raise MalformedInput("the header of this safetensors file lists no tensors", where=source)
    return {
        name: _tensor(name, entry, source)
        for name, entry in document.items()
        if name != "__metadata__" and not _EXPERT.search(name)
    }


def _tensor(name: str, entry: Any, source: str) -> Tensor:
    if isinstance(entry, dict):
        dtype, shape = entry.get("dtype"), entry.get("shape")
        if isinstance(dtype, str) and isinstance(shape, list) and all(isinstance(n, int) and n >= 0 for n in shape):
            return Tensor(dtype, tuple(shape))
    raise MalformedInput(f"the header says nothing usable of {name!r}", where=source)


def weights_in(folder: Path) -> Weights | None:
    """The headers of a model folder's safetensors files; ``None`` where it has none.

    Raises:
        MalformedInput: a header or the index is broken.
        UnreadableInput: a file cannot be read.
    """
    index = folder / INDEX
    if index.is_file():
        return _sharded(folder, index)
    single = folder / SINGLE
    if not single.is_file():
        found = sorted(folder.glob("*.safetensors"))
        if len(found) != 1:
            return None
        single = found[0]
    return weights_of(single)


def weights_of(path: Path, source: str | None = None) -> Weights:
    """The header of one safetensors file, or of the Git LFS pointer in its place.

    Raises:
        MalformedInput: it is broken.
        UnreadableInput: it cannot be read.
    """
    name = source or path.name
    try:
        with path.open("rb") as stream:
            pointer = _POINTER.match(stream.read(200))
            if pointer is not None:
                return Weights(name, {}, complete=False, digest=pointer[1].decode())
            stream.seek(0)
            return Weights(name, read_header(stream, name), digest=digest_of_blob(path))
    except OSError as error:
        raise _unreadable(path, error) from error


def digest_of_blob(path: Path) -> str:
    """The hash that a model cache names a file's content by; "" elsewhere."""
    try:
        name = path.resolve(strict=True).name
    except OSError:
        return ""
    return name if _BLOB.fullmatch(name) else ""


def _sharded(folder: Path, index: Path) -> Weights:
    tensors: dict[str, Tensor] = {}
    complete = True
    for name in shards_of(_index(index), INDEX):
        shard = folder / name
        if not shard.is_file():
            complete = False
            continue
        part = weights_of(shard)
        complete &= part.complete
        tensors |= part.tensors
    return Weights(INDEX, tensors, complete)


def _index(path: Path) -> Any:
    try:
        if path.stat().st_size > LARGEST_INDEX:
            raise MalformedInput("this index of shards is larger than any", where=path.name)
        return json.loads(path.read_bytes())
    except OSError as error:
        raise _unreadable(path, error) from error
    except (ValueError, RecursionError) as error:
        raise MalformedInput("this index of shards is not JSON", where=path.name) from error


def shards_of(index: Any, source: str) -> Iterable[str]:
    """The names of the files that an index lists.

    Raises:
        MalformedInput: it lists none, or one outside the model's folder.
    """
    listed = index.get("weight_map") if isinstance(index, Mapping) else None
    if not isinstance(listed, Mapping):
        raise MalformedInput("this index lists no shards", where=source)
    names = sorted({name for name in listed.values() if isinstance(name, str)})
    for name in names:
        if name in ("", ".", "..") or "/" in name or "\\" in name:
            raise MalformedInput(f"this index names a file outside the model's folder: {name!r}", where=source)
    return names


def _unreadable(path: Path, error: OSError) -> UnreadableInput:
    return UnreadableInput("the weights cannot be read", why=error.strerror or str(error), where=str(path))
