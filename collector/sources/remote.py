"""Files of other machines and of object stores, brought here to be read.

Each is named as people write it: ``ssh://user@host/var/log/sglang.log``, ``s3://bucket/logs/``,
``gs://bucket/a.log``, ``https://host/a.log.gz``; a folder brings its files, ``*`` those that fit.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from collector.domain.errors import InputError, SourceError, UnreadableInput
from collector.domain.redaction import redact_text

CONNECT_SECONDS: Final = 15.0
MOST_FILES: Final = 1000
"""Files of one folder or pattern."""
_ADDRESS: Final = re.compile(r"(ssh|sftp|s3|gs|https?):/{1,2}([^/].*)", re.DOTALL)
_SSH: Final = ("ssh", "sftp")
_HTTP: Final = ("http", "https")
_EXTRAS: Final = {"ssh": "ssh", "sftp": "ssh", "s3": "s3", "gs": "gcs"}
_BLOCK: Final = 1 << 20
_OK: Final = 200


def address_of(path: Path) -> str | None:
    """The address that a path stands for; ``None`` for a path of this machine. A path has lost one of two slashes."""
    found = _ADDRESS.fullmatch(str(path))
    return None if found is None or path.exists() else f"{found[1]}://{found[2]}"


def bring(address: str, folder: Path) -> dict[Path, str]:
    """Copy a file, or the files of a folder or pattern, into an empty folder; gives what each copy is a copy of.

    Raises:
        InputError: what reads such an address is not installed.
        UnreadableInput: there is nothing, or it may not be read.
        SourceError: the other machine does not answer as it should.
    """
    scheme = address.partition(":")[0]
    shown = _without_password(address) if scheme in _SSH else redact_text(address)
    with _told(shown, scheme):
        if scheme in _HTTP:
            copy = folder / (Path(unquote(urlsplit(address).path)).name or "page")
            _download(address, copy)
            return {copy: shown}
        files, place = _opened(address, scheme)
        found = _files(files, place)
        if not found:
            raise UnreadableInput("there is no such file", where=shown, hint="check the address")
        if len(found) > MOST_FILES:
            raise UnreadableInput(
                f"these are {len(found)} files", why=f"{MOST_FILES} at most are read at once", where=shown,
                hint="name fewer, for instance with a pattern",
            )  # fmt: skip
        copies = {}
        for path in found:
            copy = folder / path.rstrip("/").rpartition("/")[2]
            with files.open(path, "rb") as stream, copy.open("wb") as target:
                shutil.copyfileobj(stream, target, _BLOCK)
            copies[copy] = shown if path == place else _beside(shown, scheme, path)
        return copies


def _without_password(address: str) -> str:
    """An address with the user, who is no secret of a machine's files."""
    parts = urlsplit(address)
    user, _, place = parts.netloc.rpartition("@")
    name = user.partition(":")[0]
    return parts._replace(netloc=f"{name}@{place}" if name else place).geturl()


def _opened(address: str, scheme: str) -> tuple[Any, str]:
    """The file system of an address, and the path there."""
    if scheme not in _SSH:
        from fsspec.core import url_to_fs

        opened: tuple[Any, str] = url_to_fs(address)
        return opened
    from sshfs import SSHFileSystem

    parts = urlsplit(address)
    given = {"username": parts.username, "password": parts.password, "port": parts.port}
    known = {name: unquote(text) if isinstance(text, str) else text for name, text in given.items() if text}
    # asyncssh asks agent, keys and configuration of the user, as ssh does. An empty choice of known hosts means those of
    # the user; without it sshfs takes whatever machine answers.
    files = SSHFileSystem(
        parts.hostname, known_hosts=(), connect_timeout=CONNECT_SECONDS, skip_instance_cache=True, **known
    )
    return files, unquote(parts.path)


def _files(files: Any, place: str) -> list[str]:
    if any(sign in place for sign in "*?["):
        return sorted(path for path in files.glob(place) if not files.isdir(path))
    if not files.isdir(place):
        return [place] if files.exists(place) else []
    return sorted(entry["name"] for entry in files.ls(place, detail=True) if entry["type"] == "file")


def _beside(shown: str, scheme: str, path: str) -> str:
    """The address of one of several files."""
    if scheme in _SSH:
        return shown.removesuffix(urlsplit(shown).path) + path
    return f"{scheme}://{path}"


def _download(address: str, copy: Path) -> None:
    import httpx

    with (
        httpx.Client(timeout=CONNECT_SECONDS, follow_redirects=True, trust_env=False) as client,
        client.stream("GET", address) as answer,
        copy.open("wb") as target,
    ):
        if answer.status_code != _OK:
            raise UnreadableInput(
                "the file cannot be had", why=f"the server answered {answer.status_code}", where=redact_text(address),
                hint="check the address",
            )  # fmt: skip
        for part in answer.iter_raw(_BLOCK):
            target.write(part)


@contextmanager
def _told(shown: str, scheme: str) -> Iterator[None]:
    """What libraries raise, in words."""
    try:
        yield
    except (InputError, SourceError):
        raise
    except ImportError as error:
        extra = _EXTRAS[scheme]
        raise InputError(
            f"{scheme}:// cannot be read here", why=f"{error.name or error} is not installed", where=shown,
            hint=f'pip install "draftscope[{extra}]"',
        ) from None  # fmt: skip
    except FileNotFoundError:
        raise UnreadableInput("there is no such file", where=shown, hint="check the address") from None
    except Exception as error:  # each library has errors of its own
        name, why = type(error).__name__, " ".join(str(error).split())
        if name == "HostKeyNotVerifiable":
            raise SourceError(
                "the key of this machine is not known", why=why, where=shown,
                hint="look at it and take it into known_hosts: connect once with ssh",
            ) from None  # fmt: skip
        if isinstance(error, PermissionError) or name in ("PermissionDenied", "SFTPPermissionDenied"):
            raise UnreadableInput(
                "the file may not be read", why=why or "permission denied", where=shown,
                hint="check user and key" if scheme in _SSH else "check the credentials in the environment",
            ) from None  # fmt: skip
        raise SourceError("the file cannot be had", why=why or name, where=shown) from error
