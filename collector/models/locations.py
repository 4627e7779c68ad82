"""A model where people have it: a folder, a file, an archive, a folder of the download cache."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Final

from collector.domain.drafts import ModelConfig
from collector.domain.errors import InputError, MalformedInput, UnreadableInput
from collector.models.archive import LARGEST_CONFIG, is_archive, read_archive
from collector.models.configs import parse_model_config
from collector.models.gguf_header import MAGIC, read_gguf
from collector.models.weights import weights_in, weights_of

_REVISION: Final = re.compile(r"[\w.-]+")
_SHARD: Final = re.compile(r"-(\d{5})-of-\d{5}\.gguf$")


def open_model(path: Path, source: str | None = None) -> ModelConfig:
    """A model's config, with the headers of its weights where they lie beside it.

    ``path`` is a ``config.json``, a GGUF or safetensors file, an archive (``.zip``, ``.tar.*``), a
    model's folder, or its folder in the download cache (``models--org--name``).

    Raises:
        UnreadableInput: it cannot be opened, or holds no model.
        MalformedInput: what it holds is broken.
    """
    name = source or str(path)
    try:
        if path.is_dir():
            return _of_folder(path, name)
        with path.open("rb") as stream:
            head = stream.read(512)
    except OSError as error:
        raise _cannot_open(name, error) from error
    if head.startswith(MAGIC):
        return read_gguf(path, name)
    if is_archive(head, path.name):
        return read_archive(path, name)
    if path.suffix == ".safetensors":
        return _of_weights(path, name)
    config = parse_model_config(_text(path, name), name)
    return _with_weights(config, path.parent) if path.name == "config.json" else config


def is_model_folder(path: Path) -> bool:
    """Whether a folder holds one model: a ``config.json``, GGUF files, or revisions of a download cache."""
    return (path / "config.json").is_file() or (path / "snapshots").is_dir() or any(path.glob("*.gguf"))


def _of_folder(path: Path, name: str) -> ModelConfig:
    if (path / "snapshots").is_dir():
        return _of_folder(_snapshot(path, name), name)
    config = path / "config.json"
    if config.is_file():
        shown = f"{name.rstrip('/')}/config.json"
        return _with_weights(parse_model_config(_text(config, shown), shown), path)
    parts = sorted(path.glob("*.gguf"))
    firsts = [part for part in parts if (shard := _SHARD.search(part.name)) is None or int(shard[1]) == 1]
    if len(firsts) == 1:
        return read_gguf(firsts[0], f"{name.rstrip('/')}/{firsts[0].name}")
    raise UnreadableInput(
        "this folder holds no model" if not firsts else "this folder holds several GGUF files",
        why="it has no config.json and no GGUF file" if not firsts else ", ".join(part.name for part in firsts[:4]),
        where=name,
        hint="give the folder with the config.json" if not firsts else "give one of them",
    )


def _snapshot(path: Path, name: str) -> Path:
    """The revision that a cache folder's ``main`` names, else the newest."""
    folder = path / "snapshots"
    main = path / "refs" / "main"
    if main.is_file():
        revision = main.read_text("utf-8", "replace")[:200].strip()
        if _REVISION.fullmatch(revision) and revision not in (".", "..") and (folder / revision).is_dir():
            return folder / revision
    revisions = sorted((part for part in folder.iterdir() if part.is_dir()), key=lambda part: part.stat().st_mtime)
    if not revisions:
        raise UnreadableInput("this cache folder holds no revision", where=name, hint="download the model again")
    return revisions[-1]


def _of_weights(path: Path, name: str) -> ModelConfig:
    beside = path.with_name("config.json")
    if not beside.is_file():
        raise UnreadableInput(
            "weights alone do not say how the model is built", where=name, hint="put its config.json beside it"
        )
    shown = str(Path(name).with_name("config.json"))
    return replace(parse_model_config(_text(beside, shown), shown), weights=weights_of(path, path.name))


def _with_weights(config: ModelConfig, folder: Path) -> ModelConfig:
    return replace(config, weights=weights_in(folder))


def _text(path: Path, name: str) -> str:
    try:
        with path.open("rb") as stream:
            data = stream.read(LARGEST_CONFIG + 1)
    except OSError as error:
        raise _cannot_open(name, error) from error
    if len(data) > LARGEST_CONFIG:
        raise MalformedInput("this config.json is larger than any", where=name)
    return data.decode("utf-8-sig", "replace")


def _cannot_open(name: str, error: OSError) -> InputError:
    if isinstance(error, FileNotFoundError):
        return UnreadableInput("there is no such file", where=name, hint="check the path")
    return UnreadableInput("the model cannot be read", why=error.strerror or str(error), where=name)
