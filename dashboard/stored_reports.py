"""Reports between memory and database: what pages show of a run as it was judged last."""

from __future__ import annotations

import json
import zlib
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from analysis.compare import ChangeEffect, Difference
from analysis.history import Fate, Offered, Step
from analysis.thresholds import Thresholds
from collector.domain.quantities import Estimate
from collector.storage.bulk import digest_of
from collector.storage.reports import StoredReport
from collector.storage.runs import StoredRun
from dashboard.charts.drawn import Drawn
from dashboard.pages.drawing import drawn_of
from dashboard.pages.templating import product_version
from dashboard.store import RunReport


def report_state(bundle_state: str, thresholds: Thresholds) -> str:
    """What a report rests on: data of the run and of those it is compared with, limits, and the product's release."""
    return digest_of(bundle_state, asdict(thresholds), product_version())


def stored_report(report: RunReport, step: Step | None, state: str) -> StoredReport:
    """A report as it is kept; ``state`` as :func:`report_state` gives it."""
    content = {
        "release": product_version(),
        "document": report.document,
        "drawn": drawn_of(report).document(),
        "watched": report.watched,
    }
    packed = zlib.compress(json.dumps(content, separators=(",", ":")).encode(), 3)
    return StoredReport(state, None if step is None else asdict(step), packed)


def report_of(stored: StoredReport, run: StoredRun) -> RunReport | None:
    """The report of a run from what was kept of it; ``None`` where another release of the product kept it."""
    content = json.loads(zlib.decompress(stored.content))
    if content["release"] != product_version():
        return None
    return RunReport(
        str(run.id),
        content["document"],
        labels=run.labels,
        sample=run.sample,
        watched=content["watched"],
        drawn=Drawn.of(content["drawn"]),
        judged_at=run.judged_at,
        version=f"{stored.state} {run.judged_at}",
    )


def step_of(document: Mapping[str, Any]) -> Step:
    """A step of a history from what was kept of it."""
    return Step(
        document["before"],
        document["after"],
        tuple(ChangeEffect(**change) for change in document["changes"]),
        tuple(
            Difference(**{**item, **{end: _estimate(item[end]) for end in ("before", "after")}})
            for item in document["differences"]
        ),
        tuple(Fate(Offered(**fate["cause"]), fate["word"], fate["why"]) for fate in document["fates"]),
    )


def _estimate(document: Mapping[str, Any] | None) -> Estimate | None:
    return None if document is None else Estimate(**document)
