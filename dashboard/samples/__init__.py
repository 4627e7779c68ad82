"""Runs that are shipped with the product, to look at; never among a user's own."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from analysis.thresholds import Thresholds
from collector.ingest import ingest
from collector.storage.engine import Database
from dashboard.alerts import Alerting
from dashboard.diagnoses import Diagnoses
from dashboard.judging import Sweep

FOLDER: Final = Path(__file__).parent


def load_samples(database: Database, thresholds: Thresholds | None = None) -> list[int]:
    """Store every shipped bundle, marked as sample, and judge its runs; returns them. Safe to repeat."""
    bundles = sorted(path for path in FOLDER.iterdir() if path.is_dir() and not path.name.startswith("_"))
    report = ingest(database, bundles, sample=True)
    Sweep(Diagnoses(database, thresholds), Alerting()).sweep()
    return report.run_ids
