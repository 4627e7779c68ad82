"""What came of a log from elsewhere, kept in files of this machine, with the point up to which it came.

Reading a log takes all of it from the beginning of a run, and most places it comes from can neither
be read twice nor promise to have it tomorrow. Bytes and point are kept together: after an
interruption the files hold exactly what came up to the point, and reading goes on there.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from collector.domain.errors import StorageError

PART_BYTES: Final = 256 << 20
"""Bytes of one file; then the next one is begun."""
MOST_PARTS: Final = 4
"""Files that are kept of one log."""
KEPT_SECONDS: Final = 7 * 86_400.0
"""How long they are kept after the last of it came."""


class Spool:
    """The files of one log. Close it when done; while it is open, no other program can open it.

    Raises:
        StorageError: the folder cannot be written to, or another program has it open.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self._base = folder / hashlib.sha256(name.encode()).hexdigest()[:24]
        self._stream: BinaryIO | None = None
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._lock = (folder / f"{self._base.name}.lock").open("wb")
            self._hold()
            self._state = self._stored_state()
            self._open()
        except OSError as error:
            raise self._cannot(error) from error

    @property
    def position(self) -> Mapping[str, Any]:
        """The point that was given with what came last; empty at the beginning."""
        position: Mapping[str, Any] = self._state["position"]
        return position

    @property
    def parts(self) -> list[Path]:
        """The files that hold what came, oldest first."""
        last = self._state["part"]
        return [path for number in range(last + 1 - MOST_PARTS, last + 1) if (path := self._part(number)).exists()]

    def add(self, data: bytes, position: Mapping[str, Any]) -> Path | None:
        """Keep further bytes and the point they reach to; gives the file they begin, if they begin one.

        Raises:
            StorageError: they cannot be written; nothing was kept.
        """
        begun: Path | None = None
        try:
            if self._state["size"] >= PART_BYTES:
                self._state = {**self._state, "part": self._state["part"] + 1, "size": 0}
                self._open()
                begun = self._part(self._state["part"])
                self._part(self._state["part"] - MOST_PARTS).unlink(missing_ok=True)
            if data:
                assert self._stream is not None
                self._stream.write(data)
                self._stream.flush()
                os.fsync(self._stream.fileno())
            self._save({**self._state, "size": self._state["size"] + len(data), "position": dict(position)})
        except OSError as error:
            raise self._cannot(error) from error
        return begun

    def forget(self) -> None:
        """Let go of what came, but not of the point.

        Raises:
            StorageError: the files cannot be written to.
        """
        try:
            for path in self.parts:
                path.unlink()
            self._save({**self._state, "size": 0})
            self._open()
        except OSError as error:
            raise self._cannot(error) from error

    def close(self) -> None:
        """Let other programs have it."""
        if self._stream is not None:
            self._stream.close()
        self._lock.close()

    def _hold(self) -> None:
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._lock.close()
            raise StorageError(
                "another program reads this log", where=self.name,
                hint="let one program read it: a running draftscope serve, or the command",
            ) from None  # fmt: skip

    def _part(self, number: int) -> Path:
        return self._base.with_name(f"{self._base.name}.{number}.log")

    def _open(self) -> None:
        """Open the last file, without what was written and never accounted for."""
        if self._stream is not None:
            self._stream.close()
        path = self._part(self._state["part"])
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        self._stream = os.fdopen(descriptor, "r+b", buffering=0)
        self._stream.truncate(self._state["size"])
        self._stream.seek(self._state["size"])

    def _stored_state(self) -> dict[str, Any]:
        try:
            stored: dict[str, Any] = json.loads(self._base.with_suffix(".json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return {"name": self.name, "part": 0, "size": 0, "position": {}}
        except ValueError:
            raise OSError("the point up to which it was read is damaged") from None
        return stored

    def _save(self, state: dict[str, Any]) -> None:
        path = self._base.with_suffix(".json")
        fresh = path.with_suffix(".new")
        with fresh.open("w", encoding="utf-8") as stream:
            json.dump(state, stream)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(path)
        self._state = state

    def _cannot(self, error: OSError) -> StorageError:
        return StorageError(
            "a log that is read from elsewhere cannot be kept", why=error.strerror or str(error),
            where=str(self._base.parent), hint="check the space and the permissions of the data folder",
        )  # fmt: skip


def positions(folder: Path) -> dict[str, Mapping[str, Any]]:
    """The logs of a folder by their names, each with the point up to which it came."""
    states = [json.loads(path.read_text(encoding="utf-8")) for path in folder.glob("*.json")]
    return {state["name"]: state["position"] for state in states}


def forget_old(folder: Path, now: float) -> None:
    """Delete what came of logs of which nothing came for long; their runs stay in the database.

    Raises:
        StorageError: the folder may not be written to.
    """
    try:
        for state in folder.glob("*.json"):
            with state.with_suffix(".lock").open("wb") as lock:
                if state.stat().st_mtime >= now - KEPT_SECONDS:
                    continue
                try:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                for path in folder.glob(f"{state.stem}.*"):
                    path.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            "logs that were read from elsewhere cannot be deleted", why=error.strerror or str(error), where=str(folder),
            hint="check the permissions of the data folder",
        ) from error  # fmt: skip
