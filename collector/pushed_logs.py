"""Logs that senders bring, stored as they come."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Final

from collector.domain.errors import InputError, StorageError
from collector.log_writer import Owner
from collector.sources.pushed import lines_of
from collector.sources.spool import forget_old, positions
from collector.streamed_logs import StreamedLog

MOST_LOGS: Final = 1000
"""Logs that are taken; senders whose labels differ from line to line would make ever more."""
REMEMBERED: Final = 256
"""Bodies of each log that are known again when a sender repeats them."""
_LABELS: Final = "labels"
_DEPLOYMENT: Final = "deployment"
_SEEN: Final = "seen"


@dataclass(frozen=True, slots=True)
class Taken:
    """What became of a body: lines that were new, lines that had come before, and the names of their logs."""

    lines: int
    repeated: int
    logs: tuple[str, ...]


class PushedLogs:
    """Takes bodies from any thread; :meth:`store` puts what they say into the database."""

    def __init__(self, owner: Owner, folder: Path) -> None:
        """The logs that the folder holds are gone on with by and by.

        Raises:
            StorageError: the folder cannot be used.
        """
        forget_old(folder, owner.now())
        self._owner = owner
        self._folder = folder
        self._lock = threading.Lock()
        self._logs: dict[str, StreamedLog] = {}
        self._waiting = dict(positions(folder))

    def add(self, body: bytes, labels: Mapping[str, str], *, deployment: str | None = None, key: str = "") -> Taken:
        """Take the lines of a body; on return they are kept and outlast an interruption.

        A body that came before adds nothing: one with the same ``key``, or the same bytes where it has none.

        Raises:
            MalformedInput: it is no text and no JSON documents with a line each.
            InputError: there would be too many logs.
            StorageError: it cannot be kept; repeated, it adds only what was not.
        """
        found = lines_of(body, labels)
        digest = hashlib.sha256(key.encode() or body).hexdigest()[:24]
        count = repeated = 0
        names = []
        with self._lock:
            for told, lines in found.items():
                name = f"pushed {{{','.join(f'{label}={json.dumps(text)}' for label, text in told)}}}"
                names.append(name)
                log = self._logs.get(name) or self._open(name, dict(told), deployment)
                seen = log.position.get(_SEEN, [])
                if digest in seen:
                    repeated += len(lines)
                    continue
                position = {_LABELS: dict(told), _DEPLOYMENT: deployment, _SEEN: [*seen, digest][-REMEMBERED:]}
                data = b"".join(line + b"\n" for line in lines)
                self._guarded(name, partial(log.add, data, position))
                count += len(lines)
        return Taken(count, repeated, tuple(names))

    def store(self) -> bool:
        """Put into the database what came since the last call; whether more waits to be.

        Raises:
            StorageError: the database refused, or another program has a log open; the next call goes on there.
        """
        with self._lock:
            for name, log in list(self._logs.items()):
                self._guarded(name, log.commit)
            if self._waiting:
                name, position = next(iter(self._waiting.items()))
                self._open(name, position.get(_LABELS, {}), position.get(_DEPLOYMENT))
            return bool(self._waiting)

    def close(self) -> None:
        """Let other programs go on."""
        for log in self._logs.values():
            log.close()

    def _open(self, name: str, labels: Mapping[str, str], deployment: str | None) -> StreamedLog:
        if len(self._logs) >= MOST_LOGS:
            raise InputError(
                f"there are {MOST_LOGS} logs already", why=f"this would be another one: {name}",
                hint="send labels that are the same for all lines of an engine's log",
            )  # fmt: skip
        owner = replace(self._owner, labels={**labels, **self._owner.labels}, deployment=deployment)
        log = self._logs[name] = StreamedLog(owner, self._folder, name)
        self._waiting.pop(name, None)
        return log

    def _guarded(self, name: str, work: Callable[[], None]) -> None:
        """What went wrong in the middle is begun anew from what is kept."""
        try:
            work()
        except StorageError:
            log = self._logs.pop(name)
            self._waiting[name] = log.position
            log.close()
            raise
