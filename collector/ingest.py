"""From files and scrapes to the database: batch by batch, once, whatever interrupts.

A source is known by its bytes, not by its name: the digest of its beginning and of the bytes before
the point up to which it is stored. Rows and that point are committed together, so that after an
interruption the same call goes on, and a repeated one adds nothing. A log that was interrupted or
has grown is parsed from its beginning, because what a line means can depend on all before it; rows
that are there stay, and what only the log's end had decided is decided anew.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from collector.bundle import BundleOptions, read_bundle
from collector.domain.arguments import Arguments, LaunchCommand
from collector.domain.errors import InputError
from collector.domain.redaction import redact_text
from collector.domain.runs import Bundle, Reading, Role, RunRecord
from collector.domain.series import SeriesSample
from collector.domain.versions import Release
from collector.domain.windows import Window
from collector.formats.base import ReadOptions, RunPart, decode
from collector.formats.reader import LogReader
from collector.sources.file import STDIN, blocks, cannot_open
from collector.storage.bulk import digest_of
from collector.storage.engine import Database
from collector.storage.relations import load_bundle
from collector.storage.runs import link_runs, load_facts, run_of_source, save_run
from collector.storage.sources import (
    Checkpoint,
    StoredSource,
    add_source,
    find_sources,
    forget_from,
    ordinal_in_source,
    runs_of_source,
    save_progress,
    source_at,
    sources_of_run,
    sources_with_head,
)
from collector.storage.windows import append_prefills, append_series, append_windows, has_windows

BATCH_BYTES: Final = 4 << 20
"""Bytes of a log between two commits: few enough to hold their rows, many enough for quick writes."""
IDENTIFYING_BYTES: Final = 4096
LONGEST_LINE: Final = 8192
"""Bytes of a line that are shown as evidence."""

Progress = Callable[[str, int, int | None], None]
"""Called with a source's name, the bytes read of it and its size (``None`` where it is not known)."""


@dataclass(frozen=True, slots=True)
class IngestedFile:
    """What became of one log: its runs by id, the rows that were new, and whether it was known to its end."""

    path: str
    reading: Reading
    run_ids: tuple[int, ...]
    windows: int
    prefills: int
    unchanged: bool


@dataclass(slots=True)
class IngestReport:
    """What became of everything that was given.

    ``run_ids`` are all runs that were told of, ``subjects`` the one of each bundle that a diagnosis of
    it would judge; ``problems`` say what could not be used.
    """

    files: list[IngestedFile] = field(default_factory=list)
    run_ids: list[int] = field(default_factory=list)
    subjects: list[int] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def rows(self) -> int:
        """Windows and prefill batches that were added."""
        return sum(file.windows + file.prefills for file in self.files)


def ingest(
    database: Database,
    paths: Sequence[Path],
    options: BundleOptions | None = None,
    *,
    deployment: str | None = None,
    labels: Mapping[str, str] | None = None,
    sample: bool = False,
    progress: Progress | None = None,
    now: Callable[[], float] = time.time,
) -> IngestReport:
    """Store every run of files and folders. A folder is a bundle of its own; loose files are one together.

    Launch commands, configs and validation figures go to the run they are about, and a bundle's
    previous and baseline runs are stored as runs and linked. ``labels`` are put on every run.

    Raises:
        InputError: nothing that was given could be used.
        StorageError: the database refused; what was committed before stays, and the same call goes on.
    """
    report = IngestReport()
    errors: list[InputError] = []
    for group in _bundles(paths, options):
        work = _Ingest(database, report, deployment, dict(labels or {}), sample, progress or _silent, now)
        try:
            work.bundle(group, options or BundleOptions())
        except InputError as error:
            errors.append(error)
    if errors and not report.run_ids:
        raise errors[0]
    report.problems += [str(error) for error in errors]
    return report


def save_scrape(
    database: Database,
    record: RunRecord,
    series: Iterable[SeriesSample] = (),
    *,
    address: str,
    run_id: int | None = None,
    deployment: str | None = None,
    at: float,
) -> int:
    """Store what one scrape of an engine gave; returns the run's id.

    ``record`` says which run it is (engine, host, port, start) and holds the windows and arguments
    that were read, ``address`` names the endpoint. Where the host names no machine, a run is the
    same as long as its start is. ``run_id`` is the run where the caller knows it.
    """
    with database.transaction() as connection:
        source_id = source_at(connection, address, at=at)
        ordinal = (
            run_of_source(connection, source_id, record.started_at)
            if run_id is None
            else ordinal_in_source(connection, source_id, run_id)
        )
        run_id = save_run(
            connection, record, source_id=source_id, ordinal=ordinal, run_id=run_id, deployment=deployment, at=at
        )
        append_series(connection, run_id, series)
    return run_id


def load_for_judgement(connection: Connection, run_id: int) -> Bundle:
    """A stored run with those it is compared with; lines of logs that are still there can be quoted.

    Raises:
        UnknownName: no run has this id.
    """
    bundle = load_bundle(connection, run_id)
    files = [source for source in sources_of_run(connection, run_id) if Path(source.path).is_file()]
    if len(files) == 1 and _begins_like(Path(files[0].path), files[0].checkpoint):
        stored = bundle.subject.line_text
        path = Path(files[0].path)
        bundle.subject.line_text = lambda position: _line_at(path, position) or (stored(position) if stored else None)
    return bundle


# ---- one bundle


@dataclass(slots=True)
class _Ingest:
    database: Database
    report: IngestReport
    deployment: str | None
    labels: dict[str, str]
    sample: bool
    progress: Progress
    now: Callable[[], float]
    places: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Run, source and ordinal of each record that was handed out, by the record's ``id()``."""
    records: list[RunRecord] = field(default_factory=list)

    def bundle(self, paths: Sequence[Path], options: BundleOptions) -> None:
        """Store the logs while they are read, then what the other files say about their runs."""
        bundle = read_bundle(paths, options, read=self.log)
        self.report.problems += bundle.problems
        with self.database.transaction() as connection:
            subject = self._save_facts(connection, bundle.subject)
            previous, baseline = (
                None if record is None else self._save_facts(connection, record)
                for record in (bundle.previous, bundle.baseline)
            )
            self.report.subjects.append(subject)
            told = {(reading.source, reading.role) for reading in bundle.readings}
            link_runs(
                connection,
                subject,
                previous=previous if bundle.previous and (bundle.previous.source, Role.PREVIOUS) in told else None,
                baseline=baseline if bundle.baseline and (bundle.baseline.source, Role.BASELINE) in told else None,
            )

    def log(
        self,
        path: Path,
        *,
        engine: str | None = None,
        engine_version: Release | None = None,
        launch: LaunchCommand | None = None,
        source: str | None = None,
    ) -> tuple[list[RunRecord], Reading]:
        """Store one log; gives its runs without their windows but for one, which says that they have some."""
        with _readable(path) as file:
            options = ReadOptions(source or str(path), engine_version, launch)
            writer = _LogWriter(self, file, "-" if path == STDIN else str(path.absolute()), options, engine)
            return writer.write()

    def _save_facts(self, connection: Connection, record: RunRecord) -> int:
        facts = replace(record, windows=[], prefills=[], events=[], labels=self.labels)
        place = self.places.get(id(record))
        if place is None:  # no log tells of this run: only a command or a config does
            run_id, source_id, ordinal = 0, source_at(connection, record.source, at=self.now()), 0
        else:
            run_id, source_id, ordinal = place
        run_id = save_run(
            connection, facts, source_id=source_id, ordinal=ordinal, deployment=self.deployment, sample=self.sample,
            at=self.now(),
        )  # fmt: skip
        if run_id not in self.report.run_ids:
            self.report.run_ids.append(run_id)
        return run_id


# ---- one log


@dataclass(slots=True)
class _LogWriter:
    """Reads one log and stores what comes out of it."""

    work: _Ingest
    file: Path
    path: str
    options: ReadOptions
    engine: str | None
    source_id: int | None = None
    windows: int = 0
    prefills: int = 0
    uncertain_from: int | None = None
    """Where to forget what an earlier reading stored; done with the first commit."""
    firm: int = 0
    """Up to here, what is stored holds whatever follows."""
    run_ids: dict[int, int] = field(default_factory=dict)
    facts: dict[int, RunRecord] = field(default_factory=dict)

    def write(self) -> tuple[list[RunRecord], Reading]:
        """Store what is new, or nothing where the log is known to its end."""
        launch = self.options.launch
        asked = None if launch is None else (launch.text, sorted(launch.requested.items()))
        stated = digest_of(self.engine, str(self.options.engine_version), asked)
        with self.work.database.reading() as connection:
            known = _find(connection, self.file, self.path)
            if known is not None and known.checkpoint.options == stated and _is_complete(self.file, known.checkpoint):
                return self._known(connection, known)
        if known is not None:
            self._go_on(known, stated)
        reading = self._read(stated)
        self._report(reading, unchanged=False)
        return self._light_records(), reading

    def _go_on(self, known: StoredSource, stated: str) -> None:
        """Add to a source that is there; if something else was stated about it, all of it is read anew."""
        self.source_id = known.id
        self.uncertain_from = known.checkpoint.firm_offset if known.checkpoint.options == stated else 0

    def _read(self, stated: str) -> Reading:
        reader = LogReader(self.options, self.engine)
        ends = _Ends()
        size = self.file.stat().st_size
        committed = 0
        for block in blocks(self.file):
            reader.feed(block)
            ends.add(block)
            self.work.progress(self.options.source, ends.length, size)
            if ends.length - committed >= BATCH_BYTES and reader.format is not None:
                with self.work.database.transaction() as connection:
                    self._commit(connection, reader, [(reader.take(), False)], ends, stated)
                committed = ends.length
        certain = reader.take()
        reader.finish()
        decided_by_end = reader.take()
        with self.work.database.transaction() as connection:
            self._commit(connection, reader, [(certain, False), (decided_by_end, True)], ends, stated, complete=True)
        return reader.summary()

    def _commit(
        self, connection: Connection, reader: LogReader, batches: list[tuple[list[RunPart], bool]], ends: _Ends,
        stated: str, *, complete: bool = False,
    ) -> None:  # fmt: skip
        at = self.work.now()
        reading = reader.summary()
        if self.source_id is None:
            known = _find(connection, self.file, self.path)  # another process may have begun with it by now
            if known is not None:
                self._go_on(known, stated)
        if self.source_id is None:
            self.source_id = add_source(connection, self.path, reading, at=at)
        if self.uncertain_from is not None:
            forget_from(connection, self.source_id, self.uncertain_from, all_events=self.uncertain_from == 0)
            self.firm, self.uncertain_from = self.uncertain_from, None
        firm = max(ends.length, self.firm)
        for parts, provisional in batches:
            for part in parts:
                self._store(connection, part, provisional=provisional, at=at)
                if provisional:
                    firm = min(
                        [firm, *(w.position for w in part.run.windows), *(p.position for p in part.run.prefills)]
                    )
        checkpoint = Checkpoint(ends.length, firm, complete, *ends.digests(), stated)
        save_progress(connection, self.source_id, checkpoint, reading, path=self.path, at=at)

    def _store(self, connection: Connection, part: RunPart, *, provisional: bool, at: float) -> None:
        assert self.source_id is not None
        number, run = part.number, part.run
        before = self.facts.get(number)
        same_arguments = before is not None and before.arguments is run.arguments
        facts = replace(
            run, windows=[], prefills=[], labels=self.work.labels,
            arguments=Arguments() if same_arguments else run.arguments,
        )  # fmt: skip
        run_id = save_run(
            connection, facts, source_id=self.source_id, ordinal=number, deployment=self.work.deployment,
            sample=self.work.sample, provisional=provisional, at=at,
        )  # fmt: skip
        if number > 0 and number - 1 in self.run_ids and number not in self.run_ids:
            self._link(connection, number, run_id)
        self.run_ids[number] = run_id
        self.windows += append_windows(connection, run_id, self.source_id, run.windows)
        self.prefills += append_prefills(connection, run_id, self.source_id, run.prefills)
        windows = before.windows if before is not None and before.windows else run.windows[:1]
        self.facts[number] = replace(run, windows=windows, prefills=[], events=[])

    def _link(self, connection: Connection, number: int, run_id: int) -> None:
        """The run before it in the log that decoded is what a run is compared with."""
        decoding = [earlier for earlier, facts in self.facts.items() if facts.windows and earlier < number]
        if decoding:
            link_runs(connection, run_id, previous=self.run_ids[max(decoding)])

    def _known(self, connection: Connection, known: StoredSource) -> tuple[list[RunRecord], Reading]:
        self.source_id = known.id
        for number, run_id in runs_of_source(connection, known.id):
            facts = load_facts(connection, run_id)
            first = [Window(0, 0, facts.started_at or 0.0)] if has_windows(connection, run_id) else []
            self.run_ids[number] = run_id
            self.facts[number] = replace(facts, windows=first)
        reading = replace(known.reading, source=self.options.source)
        self.work.progress(self.options.source, known.checkpoint.byte_offset, known.checkpoint.byte_offset)
        self._report(reading, unchanged=True)
        return self._light_records(), reading

    def _light_records(self) -> list[RunRecord]:
        assert self.source_id is not None
        records = [self.facts[number] for number in sorted(self.facts)]
        for number, record in zip(sorted(self.facts), records, strict=True):
            self.work.places[id(record)] = (self.run_ids[number], self.source_id, number)
        self.work.records += records  # kept alive, so that their identities stay theirs
        return records

    def _report(self, reading: Reading, *, unchanged: bool) -> None:
        run_ids = tuple(self.run_ids[number] for number in sorted(self.run_ids))
        self.work.report.files.append(IngestedFile(self.path, reading, run_ids, self.windows, self.prefills, unchanged))
        self.work.report.run_ids += [run_id for run_id in run_ids if run_id not in self.work.report.run_ids]


# ---- which source it is


class _Ends:
    """Length, beginning and end of a stream of bytes."""

    def __init__(self) -> None:
        self.length = 0
        self._head = b""
        self._tail = b""

    def add(self, data: bytes) -> None:
        """Take further bytes."""
        self.length += len(data)
        if len(self._head) < IDENTIFYING_BYTES:
            self._head += data[: IDENTIFYING_BYTES - len(self._head)]
        self._tail = (self._tail + data[-IDENTIFYING_BYTES:])[-IDENTIFYING_BYTES:]

    def digests(self) -> tuple[str, int, str]:
        """As :class:`Checkpoint` has them: digest and length of the head, digest of the tail."""
        return _digest(self._head), len(self._head), _digest(self._tail)


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:32]


def _find(connection: Connection, file: Path, path: str) -> StoredSource | None:
    """The stored source whose bytes this file begins with: under this path, or a copy or renamed file."""
    head = _bytes_at(file, 0, IDENTIFYING_BYTES)
    candidates = [*find_sources(connection, path), *sources_with_head(connection, _digest(head))]
    return next((source for source in candidates if _begins_like(file, source.checkpoint)), None)


def _begins_like(file: Path, checkpoint: Checkpoint) -> bool:
    if checkpoint.byte_offset == 0:
        return False
    tail = min(IDENTIFYING_BYTES, checkpoint.byte_offset)
    return (
        _digest(_bytes_at(file, 0, checkpoint.head_length)) == checkpoint.head_digest
        and _digest(_bytes_at(file, checkpoint.byte_offset - tail, tail)) == checkpoint.tail_digest
    )


def _is_complete(file: Path, checkpoint: Checkpoint) -> bool:
    return checkpoint.complete and checkpoint.byte_offset == file.stat().st_size


def _bytes_at(file: Path, offset: int, length: int) -> bytes:
    try:
        with file.open("rb") as stream:
            stream.seek(offset)
            return stream.read(length)
    except OSError as error:
        raise cannot_open(file, error) from error


def _line_at(file: Path, position: int) -> str | None:
    """The redacted line that begins at a byte, ``None`` where it cannot be had."""
    try:
        line = _bytes_at(file, position, LONGEST_LINE).split(b"\n", 1)[0]
    except InputError:
        return None
    return redact_text(decode(line)) or None


@contextmanager
def _readable(path: Path) -> Iterator[Path]:
    """A file that can be looked at more than once; the standard input and pipes are written to a temporary one."""
    if path != STDIN and (path.is_file() or not path.exists()):
        yield path
        return
    with tempfile.NamedTemporaryFile(prefix="draftscope-") as copy:
        for block in blocks(path):
            copy.write(block)
        copy.flush()
        yield Path(copy.name)


def _bundles(paths: Sequence[Path], options: BundleOptions | None) -> list[list[Path]]:
    """Each folder by itself, all other paths together; options alone are one bundle without paths."""
    folders = [path for path in paths if path != STDIN and path.is_dir()]
    loose = [path for path in paths if path not in folders]
    groups = [[folder] for folder in folders]
    if loose or (options is not None and not folders):
        groups.insert(0, loose)
    return groups


def _silent(_source: str, _done: int, _size: int | None) -> None:
    """Report no progress."""
