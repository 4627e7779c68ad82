"""Diagnoses of stored runs, kept as long as their data stays the same."""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import Final

from analysis.diagnosis import Diagnosis
from analysis.runner import diagnose
from analysis.thresholds import Thresholds
from collector.ingest import load_for_judgement
from collector.storage.engine import Database
from collector.storage.live import streams_of
from collector.storage.runs import StoredRun, load_stored
from collector.storage.states import bundle_state
from dashboard.store import RunReport

MOST_KEPT: Final = 32
"""Diagnoses held in memory; each has the windows of up to three runs."""


@dataclass(frozen=True, slots=True)
class Diagnosed:
    """A run with its diagnosis; ``state`` is that of the data it rests on."""

    run: StoredRun
    state: str
    diagnosis: Diagnosis
    report: RunReport


class Diagnoses:
    """Judges stored runs on demand. Safe to use from several threads."""

    def __init__(self, database: Database, thresholds: Thresholds | None = None, *, most_kept: int = MOST_KEPT) -> None:
        self.database = database
        self.thresholds = thresholds or Thresholds()
        self._most_kept = most_kept
        self._kept: OrderedDict[int, Diagnosed] = OrderedDict()
        self._kept_lock = Lock()
        self._work_lock = Lock()

    def of(self, run_id: int) -> Diagnosed:
        """The diagnosis of a run as it is stored now.

        Raises:
            UnknownName: no run has this id.
        """
        return self._current(run_id) or self._make(run_id)

    def _current(self, run_id: int) -> Diagnosed | None:
        with self._kept_lock:
            kept = self._kept.get(run_id)
        if kept is None:
            return None
        with self.database.reading() as connection:
            load_stored(connection, run_id)
            if bundle_state(connection, run_id) != kept.state:
                return None
        with self._kept_lock:
            if run_id in self._kept:
                self._kept.move_to_end(run_id)
        return kept

    def _make(self, run_id: int) -> Diagnosed:
        """One at a time: several who ask for the same run wait for one answer, and memory stays bounded."""
        with self._work_lock:
            made = self._current(run_id)
            if made is not None:
                return made
            with self.database.reading() as connection:
                run = load_stored(connection, run_id)
                state = bundle_state(connection, run_id)
                bundle = load_for_judgement(connection, run_id)
                watched = bool(streams_of(connection, [run_id]))
            diagnosis = diagnose(bundle, self.thresholds)
            report = RunReport.of(str(run_id), diagnosis, run.labels, sample=run.sample, watched=watched)
            made = Diagnosed(run, state, diagnosis, report)
            with self._kept_lock:
                self._kept[run_id] = made
                self._kept.move_to_end(run_id)
                while len(self._kept) > self._most_kept:
                    self._kept.popitem(last=False)
            return made
