"""Reads what would be stored, and stores nothing: what is understood, and how much it would be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from collector.bundle import BundleOptions, bundles_of, of_responses, read_bundle
from collector.domain.arguments import LaunchCommand
from collector.domain.errors import InputError
from collector.domain.runs import Reading, RunRecord
from collector.domain.versions import Release
from collector.formats.base import ReadOptions, RunPart
from collector.formats.reader import LogReader
from collector.sources.file import STDIN, blocks, is_packed

BATCH_BYTES: Final = 8 << 20
"""Bytes of a log between two looks at what was read."""

Progress = Callable[[str, int, int | None], None]
"""Called with a source's name, the bytes read of it and its size (``None`` where it is not known)."""


@dataclass(frozen=True, slots=True)
class CountedLog:
    """What one log holds: runs, decode windows and prefill batches."""

    reading: Reading
    runs: int
    windows: int
    prefills: int


@dataclass(slots=True)
class Counted:
    """What was found in everything that was given, in files of responses too; ``problems`` say what could not be used."""

    logs: list[CountedLog] = field(default_factory=list)
    responses: list[Reading] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)


def dry_run(
    paths: Sequence[Path], options: BundleOptions | None = None, *, progress: Progress | None = None
) -> Counted:
    """Read files and folders as they would be stored, in bounded memory.

    Raises:
        InputError: nothing that was given could be used.
    """
    counted = Counted()
    errors: list[InputError] = []
    work = _Count(counted, progress)
    for group in bundles_of(paths, options):
        try:
            bundle = read_bundle(group, options, read=work.log)
        except InputError as error:
            errors.append(error)
        else:
            counted.problems += bundle.problems
            counted.responses += of_responses(bundle.readings)
    if errors and not counted.logs:
        raise errors[0]
    counted.problems += [str(error) for error in errors]
    return counted


@dataclass(slots=True)
class _Count:
    counted: Counted
    progress: Progress | None

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
        """Read one log; gives its runs without their windows but for one, which says that they have some."""
        name = source or ("standard input" if path == STDIN else str(path))
        reader = LogReader(ReadOptions(name, engine_version, launch), engine)
        runs: dict[int, RunRecord] = {}
        rows = [0, 0]
        problems: list[str] = []
        size = None if path == STDIN or is_packed(path) else path.stat().st_size
        looked = 0
        for file in (*older, path):
            for block in blocks(file, problems):
                reader.feed(block)
                if reader.bytes_read - looked >= BATCH_BYTES:
                    looked = reader.bytes_read
                    _count(reader.take(columns=True), runs, rows)
                if self.progress is not None:
                    self.progress(name, reader.bytes_read, None if older else size)
        reader.finish()
        _count(reader.take(columns=True), runs, rows)
        reading = reader.summary()
        reading.notes = (*reading.notes, *problems)
        self.counted.logs.append(CountedLog(reading, len(runs), *rows))
        return [runs[number] for number in sorted(runs)], reading


def _count(parts: Iterable[RunPart], runs: dict[int, RunRecord], rows: list[int]) -> None:
    for part in parts:
        known = runs.get(part.number)
        first = known.windows if known is not None else []
        if not first:
            first = part.run.windows[:1] or (part.windows[0].part(slice(0, 1)).rows() if part.windows else [])
        events = [*known.events, *part.run.events] if known is not None else part.run.events
        runs[part.number] = replace(part.run, windows=first, prefills=[], events=events)
        rows[0] += len(part.run.windows) + sum(columns.length for columns in part.windows)
        rows[1] += len(part.run.prefills) + sum(columns.length for columns in part.prefills)
