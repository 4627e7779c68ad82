"""From files and scrapes to the database: batch by batch, once, whatever interrupts.

A source is known by its bytes, not by its name: the digest of its beginning and of the bytes before
the point up to which it is stored. Rows and that point are committed together, so that after an
interruption the same call goes on, and a repeated one adds nothing. A log that was interrupted or
has grown is parsed from its beginning, because what a line means can depend on all before it; rows
that are there stay, and what only the log's end had decided is decided anew.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from sqlalchemy import Connection

from collector.bundle import BundleOptions, bundles_of, of_responses, read_bundle
from collector.domain.arguments import LaunchCommand
from collector.domain.errors import InputError
from collector.domain.runs import Beside, Bundle, Reading, Role, RunRecord
from collector.domain.versions import Release
from collector.formats.base import ReadOptions
from collector.log_writer import LogFile, LogWriter, Owner, StoredRun, mark_of, stored_log
from collector.sources.file import STDIN, blocks, is_packed, line_at
from collector.sources.identity import begins_like
from collector.storage.engine import Database
from collector.storage.relations import load_bundle
from collector.storage.requests import forget_requests
from collector.storage.runs import link_runs, save_run
from collector.storage.sources import forget_from, source_at, sources_of_run
from collector.storage.windows import append_series

BATCH_BYTES: Final = 16 << 20
"""Bytes of a log between two commits: few enough to hold their rows, many enough for quick writes."""

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
    it would judge; ``responses`` what was made of files of responses; ``problems`` say what could not be used.
    """

    files: list[IngestedFile] = field(default_factory=list)
    run_ids: list[int] = field(default_factory=list)
    subjects: list[int] = field(default_factory=list)
    responses: list[Reading] = field(default_factory=list)
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
    for group in bundles_of(paths, options):
        owner = Owner(database, now, deployment, dict(labels or {}), sample)
        work = _Ingest(owner, report, progress or _silent, options.copies if options else {})
        try:
            work.bundle(group, options or BundleOptions())
        except InputError as error:
            errors.append(error)
    if errors and not report.run_ids:
        raise errors[0]
    report.problems += [str(error) for error in errors]
    return report


def load_for_judgement(connection: Connection, run_id: int) -> Bundle:
    """A stored run with those it is compared with; lines of logs that are still there can be quoted.

    Raises:
        UnknownName: no run has this id.
    """
    bundle = load_bundle(connection, run_id)
    sources = [source for source in sources_of_run(connection, run_id) if source.checkpoint.byte_offset]
    files = [source for source in sources if Path(source.path).is_file()]
    if len(files) == 1 and begins_like(Path(files[0].path), mark_of(files[0].checkpoint)):
        stored = bundle.subject.line_text
        path = Path(files[0].path)
        bundle.subject.line_text = lambda position: line_at(path, position) or (stored(position) if stored else None)
    return bundle


# ---- one bundle


@dataclass(slots=True)
class _Ingest:
    owner: Owner
    report: IngestReport
    progress: Progress
    copies: Mapping[Path, str]
    places: dict[int, tuple[int, int, int]] = field(default_factory=dict)
    """Run, source and ordinal of each record that was handed out, by the record's ``id()``."""
    records: list[RunRecord] = field(default_factory=list)

    def bundle(self, paths: Sequence[Path], options: BundleOptions) -> None:
        """Store the logs while they are read, then what the other files say about their runs."""
        bundle = read_bundle(paths, options, read=self.log)
        self.report.problems += bundle.problems
        self.report.responses += of_responses(bundle.readings)
        with self.owner.database.transaction() as connection:
            subject = self._save_facts(connection, bundle.subject, bundle.beside.get(Role.SUBJECT, ()))
            previous, baseline = (
                None if record is None else self._save_facts(connection, record, bundle.beside.get(role, ()))
                for role, record in ((Role.PREVIOUS, bundle.previous), (Role.BASELINE, bundle.baseline))
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
        older: Sequence[Path] = (),
        engine: str | None = None,
        engine_version: Release | None = None,
        launch: LaunchCommand | None = None,
        source: str | None = None,
    ) -> tuple[list[RunRecord], Reading]:
        """Store one log; gives its runs without their windows but for one, which says that they have some."""
        options = ReadOptions(source or str(path), engine_version, launch)
        with ExitStack() as stack:
            files = [stack.enter_context(_log_file(member, self.copies)) for member in (*older, path)]
            known = stored_log(self.owner.database, files, options, engine)
            if known is not None:
                runs, reading = known
                self.progress(options.source, reading.lines, reading.lines)
                windows = prefills = 0
            else:
                runs, reading, windows, prefills = self._write(files, options, engine)
        return self._told(files[-1].path, runs, reading, (windows, prefills), unchanged=known is not None)

    def _write(
        self, files: Sequence[LogFile], options: ReadOptions, engine: str | None
    ) -> tuple[list[StoredRun], Reading, int, int]:
        writer = LogWriter(self.owner, options, engine)
        size = _size(files)
        problems: list[str] = []
        for file in files:
            writer.begin(file)
            for block in blocks(file.content, problems):
                writer.feed(block)
                self.progress(options.source, writer.bytes_read, size)
                if writer.uncommitted >= BATCH_BYTES and writer.settled:
                    writer.commit()
        reading = writer.finish()
        self.report.problems += [f"{options.source}: {problem}" for problem in problems]
        return list(writer.runs.values()), reading, writer.windows, writer.prefills

    def _told(
        self, path: str, runs: Sequence[StoredRun], reading: Reading, rows: tuple[int, int], *, unchanged: bool
    ) -> tuple[list[RunRecord], Reading]:
        """Note what became of a log, and which run each of its records is."""
        for run in runs:
            self.places[id(run.facts)] = (run.id, run.source_id, run.ordinal)
            self.records.append(run.facts)  # kept alive, so that their identities stay theirs
            if run.id not in self.report.run_ids:
                self.report.run_ids.append(run.id)
        run_ids = tuple(run.id for run in runs)
        self.report.files.append(IngestedFile(path, reading, run_ids, *rows, unchanged))
        return [run.facts for run in runs], reading

    def _save_facts(self, connection: Connection, record: RunRecord, beside: Sequence[Beside]) -> int:
        facts = replace(record, windows=[], prefills=[], events=[], requests=[], labels=self.owner.labels)
        place = self.places.get(id(record))
        if place is None:  # no log tells of this run: only its metrics, a command or a config does
            path = beside[0].path if beside else record.source
            known, source_id, ordinal = None, source_at(connection, path, at=self.owner.now()), 0
        else:
            known, source_id, ordinal = place
        run_id = save_run(
            connection, facts, source_id=source_id, ordinal=ordinal, run_id=known, deployment=self.owner.deployment,
            sample=self.owner.sample,
            at=self.owner.now(),
        )  # fmt: skip
        for other in beside:
            self._save_beside(connection, run_id, record, other, with_prefills=place is None)
        if run_id not in self.report.run_ids:
            self.report.run_ids.append(run_id)
        return run_id

    def _save_beside(
        self, connection: Connection, run_id: int, record: RunRecord, beside: Beside, *, with_prefills: bool
    ) -> None:
        """Store what a source beside the log tells, in place of what it told before."""
        source_id = source_at(connection, beside.path, at=self.owner.now())
        forget_from(connection, source_id, 0, all_events=True)
        forget_requests(connection, [run_id], source_id)
        told = RunRecord(
            record.engine,
            record.source,
            events=list(beside.events),
            windows=list(beside.windows),
            prefills=list(beside.prefills) if with_prefills else [],
            requests=list(beside.requests),
        )
        save_run(connection, told, source_id=source_id, run_id=run_id, at=self.owner.now())
        append_series(connection, run_id, beside.series)


@contextmanager
def _log_file(path: Path, copies: Mapping[Path, str]) -> Iterator[LogFile]:
    """A file that can be looked at more than once; the standard input and pipes are written to a temporary one."""
    if path != STDIN and (path.is_file() or not path.exists()):
        yield LogFile(copies.get(path, str(path.absolute())), path)
        return
    with tempfile.NamedTemporaryFile(prefix="draftscope-") as copy:
        for block in blocks(path):
            copy.write(block)
        copy.flush()
        yield LogFile("-" if path == STDIN else str(path.absolute()), Path(copy.name))


def _size(files: Sequence[LogFile]) -> int | None:
    """The size of a log, ``None`` where its files are compressed."""
    if any(is_packed(file.content) for file in files):
        return None
    return sum(file.content.stat().st_size for file in files)


def _silent(_source: str, _done: int, _size: int | None) -> None:
    """Report no progress."""
