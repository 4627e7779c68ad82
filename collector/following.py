"""Stores logs while they are written, until somebody says stop."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from collector.bundle import BundleOptions, read_bundle
from collector.domain.errors import InputError
from collector.domain.runs import RunRecord
from collector.formats.base import ReadOptions
from collector.log_writer import LogFile, LogWriter, Owner, StoredRun
from collector.sources.file import blocks
from collector.sources.follow import Follower
from collector.sources.rotation import rotated_sets
from collector.storage.runs import save_run

BATCH_BYTES: Final = 8 << 20
"""Bytes of a log between two commits while it grows faster than it is read."""


@dataclass(slots=True)
class Followed:
    """One log that is followed: its runs so far, and what was added to the database since it is followed."""

    path: Path
    writer: LogWriter
    follower: Follower
    told: set[int] = field(default_factory=set)

    @property
    def runs(self) -> list[StoredRun]:
        """The runs of the log, in the order they began."""
        return [self.writer.runs[number] for number in sorted(self.writer.runs)]

    @property
    def rows(self) -> int:
        """Windows and prefill batches that were added."""
        return self.writer.windows + self.writer.prefills


class LogFollower:
    """Follows logs: call :meth:`poll` from time to time, and :meth:`close` in the end.

    Rotated files that are given with a log are read before it. What is given besides the logs (a
    launch command, configs) is about the latest run of each.
    """

    def __init__(self, owner: Owner, paths: Sequence[Path], options: BundleOptions | None = None) -> None:
        self._owner = owner
        options = options or BundleOptions()
        self._beside = self._read_beside(options)
        launch = self._beside.launch if self._beside is not None else None
        self.logs: list[Followed] = []
        for log in rotated_sets(paths):
            read = ReadOptions(str(log.newest), options.engine_version, launch)
            followed = Followed(log.newest, LogWriter(owner, read, options.engine), Follower(log.newest))
            for older in log.older:
                followed.writer.begin(LogFile(str(older.absolute()), older))
                for block in blocks(older, []):
                    self._feed(followed, block)
            self.logs.append(followed)

    def poll(self) -> int:
        """Store what was appended since the last call; returns how many bytes that were.

        Raises:
            InputError: a file may not be read.
            StorageError: the database refused; what was committed before stays.
        """
        return sum(map(self._poll, self.logs))

    def close(self) -> None:
        """Stop following; logs count as unfinished, and can be followed or read again."""
        for log in self.logs:
            log.follower.close()

    def _poll(self, log: Followed) -> int:
        count = 0
        for growth in log.follower.poll():
            if growth.file is not None:
                log.writer.begin(LogFile(str(growth.file.absolute()), growth.file))
            if growth.data:
                self._feed(log, growth.data)
                count += len(growth.data)
        if count and log.writer.settle():
            log.writer.commit()
            self._save_beside(log)
        return count

    def _feed(self, log: Followed, data: bytes) -> None:
        log.writer.feed(data)
        if log.writer.uncommitted >= BATCH_BYTES and log.writer.settled:
            log.writer.commit()

    @staticmethod
    def _read_beside(options: BundleOptions) -> RunRecord | None:
        """What the other files say about the run."""
        try:
            return read_bundle([], options).subject
        except InputError:
            if any((options.launch, options.draft_config, options.target_config, options.training, options.responses)):
                raise
            return None

    def _save_beside(self, log: Followed) -> None:
        if self._beside is None or not log.runs or log.runs[-1].id in log.told:
            return
        run, owner = log.runs[-1], self._owner
        facts = RunRecord(
            run.facts.engine,
            run.facts.source,
            launch=self._beside.launch,
            arguments=self._beside.arguments,
            draft_config=self._beside.draft_config,
            target_config=self._beside.target_config,
            validation=self._beside.validation,
            temperature=self._beside.temperature,
            requests=self._beside.requests,
            requests_asked=self._beside.requests_asked,
        )
        with owner.database.transaction() as connection:
            save_run(connection, facts, source_id=run.source_id, ordinal=run.ordinal, run_id=run.id, at=owner.now())
        log.told.add(run.id)


def follow(
    owner: Owner,
    paths: Sequence[Path],
    options: BundleOptions | None = None,
    *,
    stop: Callable[[], bool],
    pause: Callable[[], object] = lambda: time.sleep(1.0),
    news: Callable[[Followed], None] = lambda _log: None,
) -> None:
    """Follow logs until ``stop`` says so; ``news`` is called with each log that grew.

    Raises:
        InputError: a file may not be read, or is no log that is read here.
        StorageError: the database refused; what was committed before stays.
    """
    follower = LogFollower(owner, paths, options)
    try:
        while not stop():
            before = [log.rows for log in follower.logs]
            if follower.poll() == 0:
                pause()
            for log, rows in zip(follower.logs, before, strict=True):
                if log.rows != rows:
                    news(log)
    finally:
        follower.close()
