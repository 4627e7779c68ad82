"""Stores one log while it is read: one file, or files that follow one another as a log is rotated.

Each file is a source with a point of its own up to which it is stored; rows and that point are
committed together. A run that began in an earlier file goes on in the next one. A log that was
interrupted or has grown is parsed from its beginning, because what a line means can depend on all
before it; rows that are there stay, and what only the log's end had decided is decided anew.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Connection

from collector.domain.arguments import Arguments
from collector.domain.runs import Reading, RunRecord
from collector.domain.windows import Columns, Row, Window
from collector.formats.base import ReadOptions, RunPart
from collector.formats.reader import LogReader
from collector.formats.streams import RUNS_OF_A_STREAM
from collector.sources.identity import Ends, Mark, begins_like, head_digest, length_of
from collector.storage.bulk import digest_of
from collector.storage.engine import Database
from collector.storage.runs import extend_run, link_runs, load_facts, save_run
from collector.storage.sources import (
    Checkpoint,
    StoredSource,
    add_source,
    find_sources,
    forget_from,
    runs_of_source,
    save_progress,
    sources_with_head,
)
from collector.storage.windows import (
    append_prefill_columns,
    append_prefills,
    append_window_columns,
    append_windows,
    has_windows,
)

CONTINUED: Final = -1
"""The place in a file of a run that began in the file before; one lower for each further stream."""


@dataclass(frozen=True, slots=True)
class Owner:
    """Where runs are stored, and what is put on each of them; ``now`` is the clock."""

    database: Database
    now: Callable[[], float]
    deployment: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    sample: bool = False


@dataclass(frozen=True, slots=True)
class LogFile:
    """One file of a log: what names it in the database, and where its bytes can be looked at more than once.

    ``only`` says that nothing else has this name: the same bytes under another one are another log, not a copy.
    """

    path: str
    content: Path
    only: bool = False


@dataclass(slots=True)
class StoredRun:
    """A run of a log: its id, the file that told of it last with its place there, and its facts.

    Of its windows one is kept, if it has any.
    """

    id: int
    source_id: int
    ordinal: int
    facts: RunRecord


@dataclass(slots=True)
class _Open:
    """A file that is being read.

    ``position`` and ``line`` say where in the log it begins, ``runs`` how many runs of each stream
    had begun by then, ``before`` what was made of the log by then; ``first`` marks the log's first
    file. ``forget`` is from where what is
    stored is to be decided anew, ``firm`` up to where what is stored holds whatever follows.
    """

    file: LogFile
    position: int
    line: int
    runs: dict[int, int]
    before: Reading
    first: bool
    ends: Ends = field(default_factory=Ends)
    source_id: int | None = None
    continued: dict[int, int] = field(default_factory=dict)
    forget: int | None = None
    firm: int = 0
    over: bool = False

    def ordinal(self, number: int) -> int:
        """The place of a run in this file."""
        stream, own = divmod(number, RUNS_OF_A_STREAM)
        begun = self.runs.get(stream, 0)
        return number - begun if own >= begun else CONTINUED - stream


class LogWriter:
    """Takes the bytes of a log's files in their order and stores what they say.

    Call :meth:`begin` before the bytes of each file, :meth:`commit` between pieces to bound the
    memory, and :meth:`finish` when nothing more will come.
    """

    def __init__(self, owner: Owner, options: ReadOptions, engine: str | None) -> None:
        self._owner = owner
        self._options = options
        self._engine = engine
        self._stated = stated_digest(options, engine)
        self._files: list[_Open] = []
        self._reader = LogReader(options, engine)
        self._resumed: set[int] = set()
        self.runs: dict[int, StoredRun] = {}
        self.windows = 0
        self.prefills = 0
        self.uncommitted = 0

    @property
    def bytes_read(self) -> int:
        """Bytes of the log so far."""
        return self._reader.bytes_read

    @property
    def settled(self) -> bool:
        """Whether it is clear whose log it is."""
        return self._reader.format is not None

    def begin(self, file: LogFile) -> None:
        """The next bytes are those of this file; the one before is over."""
        earlier = self._files
        if earlier:
            earlier[-1].over = True
        if earlier and self._reader.settle_if_known():
            self.commit()
            earlier = earlier[-1:]  # lines that go on in the next file begin in this one
        opened = _Open(
            file,
            self._reader.bytes_read,
            self._reader.lines,
            self._reader.runs_begun(),
            self._reader.summary(),
            first=not earlier,
        )
        with self._owner.database.reading() as connection:
            self._look_up(connection, opened)
            if opened.first and opened.continued:
                self._carry(connection, opened)
        self._files = [*earlier, opened]

    def feed(self, data: bytes) -> None:
        """Read further bytes.

        Raises:
            UnreadableInput: the first bytes are no log that is read here.
        """
        self._reader.feed(data)
        self._files[-1].ends.add(data)
        self.uncommitted += len(data)

    def settle(self) -> bool:
        """Decide whose log it is, if what has come so far tells, as nothing more may come for a while."""
        return self._reader.settle_if_known()

    def commit(self) -> None:
        """Store what was read."""
        parts = self._reader.take(columns=True)
        with self._owner.database.transaction() as connection:
            self._save(connection, [(parts, False)])
        self.uncommitted = 0

    def finish(self) -> Reading:
        """Nothing more will come: what was held back is decided.

        Raises:
            UnreadableInput: it was no log that is read here.
        """
        self._reader.settle()
        certain = self._reader.take(columns=True)
        self._reader.finish()
        decided_by_end = self._reader.take(columns=True)
        self._files[-1].over = True
        with self._owner.database.transaction() as connection:
            self._save(connection, [(certain, False), (decided_by_end, True)])
        self.uncommitted = 0
        return self._reader.summary()

    # ---- files

    def _look_up(self, connection: Connection, opened: _Open) -> None:
        """Go on with a source that is there; if something else was stated about it, all of it is read anew."""
        known = find_source(connection, opened.file)
        if known is None or not opened.ends.may_begin_like(mark_of(known.checkpoint)):
            return  # by now the name may be another file's
        opened.source_id = known.id
        opened.forget = known.checkpoint.firm_offset if known.checkpoint.options == self._stated else 0
        opened.continued = {
            CONTINUED - ordinal: run_id for ordinal, run_id in runs_of_source(connection, known.id) if ordinal < 0
        }

    def _carry(self, connection: Connection, opened: _Open) -> None:
        """The log began in files that are gone: what they said about its run still holds."""
        facts = load_facts(connection, next(iter(opened.continued.values())))
        self._reader = LogReader(replace(self._options, carried=facts.arguments), self._engine)

    def _open_source(self, connection: Connection, opened: _Open, reading: Reading, at: float) -> int:
        if opened.source_id is None:
            self._look_up(connection, opened)  # another process may have begun with it by now
        if opened.source_id is None:
            opened.source_id = add_source(connection, opened.file.path, reading, at=at)
        if opened.forget is not None:
            forget_from(connection, opened.source_id, opened.forget, all_events=opened.forget == 0)
            opened.firm, opened.forget = opened.forget, None
        return opened.source_id

    def _save(self, connection: Connection, batches: list[tuple[list[RunPart], bool]]) -> None:
        at = self._owner.now()
        reading = self._reader.summary()
        for opened in self._files:
            self._open_source(connection, opened, reading, at)
            opened.firm = max(opened.ends.length, opened.firm)
        for parts, provisional in batches:
            for part in parts:
                for opened, placed in self._placed(part):
                    self._store(connection, opened, placed, provisional=provisional, at=at)
        for opened in self._files:
            assert opened.source_id is not None
            mark = opened.ends.mark()
            checkpoint = Checkpoint(
                mark.offset,
                opened.firm,
                opened.over,
                mark.head_digest,
                mark.head_length,
                mark.tail_digest,
                self._stated,
            )
            own = reading if opened is self._files[-1] else None
            made = _difference(own or opened.before, opened.before)
            save_progress(connection, opened.source_id, checkpoint, made, path=opened.file.path, at=at)

    # ---- runs

    def _placed(self, part: RunPart) -> Iterator[tuple[_Open, RunPart]]:
        """A part of a run file by file, with positions as they are in the file."""
        if len(self._files) == 1:
            yield self._files[0], part
            return
        found: dict[int, RunPart] = {}

        def of(index: int) -> RunPart:
            if index not in found:
                run = replace(part.run, events=[], windows=[], prefills=[])
                found[index] = RunPart(part.number, run, part.ended)
            return found[index]

        starts = [opened.position for opened in self._files]
        lines = [opened.line for opened in self._files]
        for event in part.run.events:
            line = event.evidence.line
            of(len(lines) - 1 if line is None else bisect_right(lines, line - 1) - 1).run.events.append(event)
        for row in part.run.windows:
            index = bisect_right(starts, row.position) - 1
            of(index).run.windows.append(row._replace(position=row.position - starts[index]))
        for batch in part.run.prefills:
            index = bisect_right(starts, batch.position) - 1
            of(index).run.prefills.append(batch._replace(position=batch.position - starts[index]))
        for windows in part.windows:
            for index, chunk in _by_file(windows, starts):
                of(index).windows.append(chunk)
        for prefills in part.prefills:
            for index, prefill_chunk in _by_file(prefills, starts):
                of(index).prefills.append(prefill_chunk)
        if not found:
            of(len(starts) - 1)
        yield from ((self._files[index], found[index]) for index in sorted(found))

    def _store(self, connection: Connection, opened: _Open, part: RunPart, *, provisional: bool, at: float) -> None:
        assert opened.source_id is not None
        number, run, owner = part.number, part.run, self._owner
        before = self.runs.get(number)
        run_id = before.id if before is not None else self._continued(opened, part)
        if number in self._resumed:  # what is known from files that are gone began before it seems to
            run = replace(run, started_at=None)
        ordinal = opened.ordinal(number)
        if before is not None and before.source_id == opened.source_id and _only_goes_on(before.facts, run):
            extend_run(
                connection,
                before.id,
                opened.source_id,
                run.events,
                ended_at=run.ended_at,
                provisional=provisional,
            )
            run_id = before.id
        else:
            same_arguments = before is not None and before.facts.arguments is run.arguments
            facts = replace(
                run,
                windows=[],
                prefills=[],
                labels={**run.labels, **owner.labels},
                arguments=Arguments() if same_arguments else run.arguments,
            )
            run_id = save_run(
                connection,
                facts,
                source_id=opened.source_id,
                ordinal=ordinal,
                run_id=run_id,
                deployment=owner.deployment,
                sample=owner.sample,
                provisional=provisional,
                at=at,
            )
        if before is None:
            self._link(connection, number, run_id)
        windows = _first_window(part) if before is None or not before.facts.windows else before.facts.windows
        self.runs[number] = StoredRun(
            run_id, opened.source_id, ordinal, replace(run, windows=windows, prefills=[], events=[])
        )
        if provisional:
            opened.firm = min([opened.firm, *_positions(part)])
        self._append(connection, opened.source_id, run_id, part)

    def _append(self, connection: Connection, source_id: int, run_id: int, part: RunPart) -> None:
        self.windows += append_windows(connection, run_id, source_id, part.run.windows)
        self.prefills += append_prefills(connection, run_id, source_id, part.run.prefills)
        for windows in part.windows:
            self.windows += append_window_columns(connection, run_id, source_id, windows)
        for prefills in part.prefills:
            self.prefills += append_prefill_columns(connection, run_id, source_id, prefills)

    def _continued(self, opened: _Open, part: RunPart) -> int | None:
        """The id of a run that began in a file that is gone; a run that states its arguments began here."""
        stream, own = divmod(part.number, RUNS_OF_A_STREAM)
        run_id = opened.continued.get(stream)
        if own or run_id is None or not opened.first or len(part.run.arguments):
            return None
        opened.runs[stream] = 1
        self._resumed.add(part.number)
        return run_id

    def _link(self, connection: Connection, number: int, run_id: int) -> None:
        """The run before it in its stream that decoded is what a run is compared with."""
        stream = number // RUNS_OF_A_STREAM
        decoding = [
            earlier
            for earlier, run in self.runs.items()
            if run.facts.windows and earlier < number and earlier // RUNS_OF_A_STREAM == stream
        ]
        if decoding:
            link_runs(connection, run_id, previous=self.runs[max(decoding)].id)


def stored_log(
    database: Database, files: Sequence[LogFile], options: ReadOptions, engine: str | None
) -> tuple[list[StoredRun], Reading] | None:
    """The runs of a log that is known to its end, and what was made of it; ``None`` for any other."""
    stated = stated_digest(options, engine)
    with database.reading() as connection:
        found = [find_source(connection, file) for file in files]
        sources = [source for source in found if source is not None and source.checkpoint.options == stated]
        if len(sources) < len(files) or not all(map(_is_complete, files, sources)):
            return None
        runs: dict[int, StoredRun] = {}
        for source in sources:
            for ordinal, run_id in runs_of_source(connection, source.id):
                if run_id not in runs:
                    facts = load_facts(connection, run_id)
                    first = [Window(0, 0, facts.started_at or 0.0)] if has_windows(connection, run_id) else []
                    runs[run_id] = StoredRun(run_id, source.id, ordinal, replace(facts, windows=first))
        return list(runs.values()), replace(sources[-1].reading, source=options.source)


def stated_digest(options: ReadOptions, engine: str | None) -> str:
    """A digest of what was stated about a log."""
    launch = options.launch
    asked = None if launch is None else (launch.text, sorted(launch.requested.items()))
    return digest_of(engine, str(options.engine_version), asked)


def find_source(connection: Connection, file: LogFile) -> StoredSource | None:
    """The stored source whose bytes a file begins with: under its path, or a copy or renamed file."""
    candidates = find_sources(connection, file.path)
    if not file.only:
        candidates += sources_with_head(connection, head_digest(file.content))
    return next((source for source in candidates if begins_like(file.content, mark_of(source.checkpoint))), None)


def mark_of(checkpoint: Checkpoint) -> Mark:
    """The point up to which a source is stored."""
    return Mark(checkpoint.byte_offset, checkpoint.head_digest, checkpoint.head_length, checkpoint.tail_digest)


def _is_complete(file: LogFile, source: StoredSource) -> bool:
    return source.checkpoint.complete and source.checkpoint.byte_offset == length_of(file.content)


def _only_goes_on(before: RunRecord, run: RunRecord) -> bool:
    """Whether nothing is known of a run that was not, but for events, samples and a later end."""
    if run.started_at is None or run.ended_at is None:
        return False
    return _without_samples(before) == _without_samples(run)


def _without_samples(run: RunRecord) -> RunRecord:
    return replace(run, events=[], windows=[], prefills=[], ended_at=None)


def _by_file(columns: Columns[Row], starts: list[int]) -> Iterator[tuple[int, Columns[Row]]]:
    """Samples file by file, with positions as they are in the file. They are in the order of their positions."""
    positions = columns.values[0]
    edges = [bisect_left(positions, start) for start in starts] + [columns.length]
    for index, (first, last) in enumerate(pairwise(edges)):
        if last > first:
            local = [int(position) - starts[index] for position in positions[first:last]]
            values: tuple[Any, ...] = columns.part(slice(first, last)).values
            yield index, Columns(columns.kind, last - first, (local, *values[1:]))


def _positions(part: RunPart) -> Iterator[int]:
    """Where the samples of a part stand."""
    yield from (row.position for row in part.run.windows)
    yield from (row.position for row in part.run.prefills)
    yield from (int(columns.values[0][0]) for columns in part.windows)
    yield from (int(columns.values[0][0]) for columns in part.prefills)


def _first_window(part: RunPart) -> list[Window]:
    """One window, if there are any."""
    if part.run.windows:
        return part.run.windows[:1]
    return part.windows[0].part(slice(0, 1)).rows() if part.windows else []


def _difference(reading: Reading, before: Reading) -> Reading:
    """What was made of the log since an earlier moment."""
    counts = ("lines", "engine_lines", "understood", "unread", "torn_samples", "oversize_lines")
    return replace(reading, **{name: getattr(reading, name) - getattr(before, name) for name in counts})
