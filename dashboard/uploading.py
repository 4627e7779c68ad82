"""Files that come over HTTP: stored, judged, and forgotten as files."""

from __future__ import annotations

import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from collector.bundle import BundleOptions
from collector.domain.errors import InputError
from collector.ingest import ingest
from collector.sources.unpacking import free_path, unpack
from collector.storage.windows import count_windows
from dashboard.alerts import Alerting
from dashboard.diagnoses import Diagnoses
from dashboard.judging import MOST_JUDGED_WINDOWS, judge_runs

LARGEST_UPLOAD: Final = 256 << 20
"""Bytes of one upload, all files together."""
MOST_FILES: Final = 64


@dataclass(frozen=True, slots=True)
class Uploaded:
    """What became of an upload: the run its files are about, all runs that they told of, and what could not be used."""

    run: str
    runs: list[str]
    problems: list[str]


@contextmanager
def _places_of_uploads(folder: str) -> Iterator[None]:
    """Errors name files as they were uploaded, not where they lay for a moment."""
    try:
        yield
    except InputError as error:
        for part in ("what", "why", "where", "hint"):
            setattr(error, part, re.sub(rf"{re.escape(folder)}(?:/\w+)?/?", "", getattr(error, part)))
        raise


@dataclass(frozen=True, slots=True)
class Uploads:
    """Takes files into the database, as ``draftscope ingest FOLDER`` does."""

    diagnoses: Diagnoses
    alerting: Alerting

    def store(
        self, files: Sequence[tuple[str, BinaryIO]], options: BundleOptions, deployment: str | None = None
    ) -> Uploaded:
        """Store the runs of the files, one bundle together, and judge them. Safe to repeat.

        Raises:
            InputError: there is no file, or nothing of them could be used.
        """
        if not files:
            raise InputError("no file came with the request", hint="choose a log, or a folder's files packed as .zip")
        with tempfile.TemporaryDirectory(prefix="draftscope-upload-") as name, _places_of_uploads(name):
            taken, bundle = Path(name) / "taken", Path(name) / "bundle"
            taken.mkdir()
            bundle.mkdir()
            for file_name, stream in files:
                place = free_path(taken, file_name)
                with place.open("wb") as out:
                    shutil.copyfileobj(stream, out)
                unpack(place, bundle)
            report = ingest(self.diagnoses.database, [bundle], options, deployment=deployment)
            with self.diagnoses.database.reading() as connection:
                windows = count_windows(connection, report.run_ids)
            if windows <= MOST_JUDGED_WINDOWS:
                judge_runs(self.diagnoses, report.run_ids, self.alerting)
        subject = report.subjects[-1] if report.subjects else report.run_ids[-1]
        problems = [problem.replace(f"{bundle}/", "") for problem in report.problems]
        return Uploaded(str(subject), [str(run_id) for run_id in report.run_ids], problems)
