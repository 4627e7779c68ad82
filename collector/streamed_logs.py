"""Logs that come line by line from elsewhere, stored as they come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from collector.domain.errors import UnreadableInput
from collector.formats.base import ReadOptions
from collector.log_writer import LogFile, LogWriter, Owner
from collector.sources.entries import Entry, Log, LogSource, Page
from collector.sources.file import blocks
from collector.sources.spool import Spool

COMMIT_BYTES: Final = 8 << 20
"""Bytes of a log between two commits."""
_SECOND: Final = 1_000_000_000
LATEST: Final = 600 * _SECOND
"""How long after the last look lines of a log that was not known yet may have been written, in nanoseconds."""
_AT: Final = "at"
_COUNT: Final = "count"
_STRANGE: Final = "strange"


class StreamedLog:
    """One log: bytes go into its spool and, read, into the database.

    Raises:
        StorageError: its files cannot be written to, or another program has them open.
    """

    def __init__(self, owner: Owner, folder: Path, name: str) -> None:
        self.spool = Spool(folder, name)
        self._writer = LogWriter(owner, ReadOptions(name), None)
        self.strange: str = self.spool.position.get(_STRANGE, "")
        """Why it is no log that is read here; "" for one that is."""
        try:
            for part in self.spool.parts:
                self._begin(part)
                for block in blocks(part):
                    self._feed(block)
            self.commit()
        except BaseException:
            self.spool.close()
            raise

    @property
    def run_ids(self) -> list[int]:
        """Its runs, in the order they began."""
        return [self._writer.runs[number].id for number in sorted(self._writer.runs)]

    @property
    def position(self) -> Mapping[str, Any]:
        """The point that was given with what came last; empty at the beginning."""
        return self.spool.position

    def add(self, data: bytes, position: Mapping[str, Any]) -> None:
        """Take further bytes, and the point they reach to.

        Raises:
            StorageError: they cannot be kept, or the database refused.
        """
        told = {_STRANGE: self.strange} if self.strange else {}
        begun = self.spool.add(b"" if self.strange else data, {**position, **told})
        if self.strange:
            return
        if begun is not None:
            self._begin(begun)
        self._feed(data)

    def commit(self) -> None:
        """Store what was read, if it is clear by now whose log it is.

        Raises:
            StorageError: the database refused.
        """
        if not self.strange and self._writer.uncommitted and self._writer.settle():
            self._writer.commit()

    def close(self) -> None:
        """Let other programs go on with it."""
        self.spool.close()

    def _begin(self, part: Path) -> None:
        number = part.suffixes[-2].lstrip(".")
        name = self.spool.name if number == "0" else f"{self.spool.name} (part {number})"
        self._writer.begin(LogFile(name, part, only=True))

    def _feed(self, data: bytes) -> None:
        try:
            self._writer.feed(data)
        except UnreadableInput as error:
            self.strange = error.what
            position = dict(self.spool.position)
            self.spool.forget()
            self.spool.add(b"", {**position, _STRANGE: self.strange})
            return
        if self._writer.uncommitted >= COMMIT_BYTES and self._writer.settled:
            self._writer.commit()


class StreamedLogs:
    """Every log of a place, read on where it was left. Call :meth:`step` from time to time."""

    def __init__(self, owner: Owner, folder: Path, source: LogSource, *, since: int = 0) -> None:
        """Nothing is asked yet.

        ``since`` is from where on logs are read if the place was not read before, in nanoseconds since 1970.

        Raises:
            StorageError: the folder cannot be written to, or another program reads the place.
        """
        self._owner = owner
        self._folder = folder
        self._source = source
        self._place = Spool(folder, f"all logs of {source.name}")
        self._since = self._place.position.get(_AT, since)
        self._logs: dict[str, StreamedLog] = {}
        self.problems: dict[str, str] = {}
        """Logs that cannot be read, and why, by name."""

    @property
    def run_ids(self) -> list[int]:
        """The runs of all logs."""
        return [run_id for log in self._logs.values() for run_id in log.run_ids]

    def step(self) -> bool:
        """Store what came since the last call, a page of each log; whether there is more already.

        Raises:
            SourceError: the place does not answer as it should; what was stored before stays.
            StorageError: the database refused, or the data folder.
        """
        looked_at = round(self._owner.now() * 1e9)
        more = [self._take(log) for log in self._source.logs(self._since)]
        if any(more):
            return True
        self._since = max(self._since, looked_at - LATEST)
        self._place.add(b"", {_AT: self._since})
        return False

    def close(self) -> None:
        """Close the connections and the files."""
        self._source.close()
        self._place.close()
        for log in self._logs.values():
            log.close()

    def _take(self, log: Log) -> bool:
        stream = self._logs.get(log.name)
        if stream is None:
            owner = replace(self._owner, labels={**log.labels, **self._owner.labels})
            stream = self._logs[log.name] = StreamedLog(owner, self._folder, log.name)
        position = stream.position
        at, count = position.get(_AT, self._since), position.get(_COUNT, 0)
        page = self._source.page(log, at)
        torn = _torn_instant(page)
        fresh = _behind([entry for entry in page.entries if entry.at != torn], at, count)
        if torn is not None:
            stream.add(_text(fresh), {_AT: torn, _COUNT: 0})
            stream.commit()
        elif fresh:
            last = fresh[-1].at
            taken = sum(entry.at == last for entry in fresh) + (count if last == at else 0)
            stream.add(_text(fresh), {_AT: last, _COUNT: taken})
            stream.commit()
        elif page.more:  # more lines of one instant, or of one second, than a page holds
            reached = page.entries[-1].at if page.entries else at
            stream.add(b"", {_AT: at + (1 if reached == at else _SECOND), _COUNT: 0})
            self.problems[log.name] = f"{log.name}: more lines came at one instant than can be read; some are left out"
        if page.doubt:
            self.problems.setdefault(log.name, f"{log.name}: {page.doubt}")
        if stream.strange:
            self.problems[log.name] = f"{log.name}: {stream.strange}"
        return page.more


def _text(entries: Sequence[Entry]) -> bytes:
    return b"".join(entry.line + b"\n" for entry in entries)


def _torn_instant(page: Page) -> int | None:
    """The last instant of a full page, of which there may be further lines in any order: all of them come with the next page.

    ``None`` where the page has all, and where all of it is one instant.
    """
    entries = page.entries
    return entries[-1].at if page.more and entries and entries[0].at != entries[-1].at else None


def _behind(entries: Sequence[Entry], at: int, count: int) -> list[Entry]:
    """The lines that were not taken yet: ``count`` of the instant ``at`` were, and all before."""
    fresh: list[Entry] = []
    same = 0
    for entry in entries:
        if entry.at == at:
            same += 1
        if entry.at > at or (entry.at == at and same > count):
            fresh.append(entry)
    return fresh
