"""``/metrics``: the stored judgements as Prometheus metrics, and how draftscope itself fares.

Everything comes from what was stored when a run was judged, so a scrape costs a few queries. The
number of series is bounded: the present run of every place, and no labels but those of the families.
Series of a run end when the next one takes its place, or some time after its last sign of life.
Sample runs never appear.
"""

from __future__ import annotations

import re
import time
import zlib
from collections.abc import Callable, Sequence
from threading import Lock
from typing import Final

from fastapi import APIRouter, Request
from fastapi.responses import Response
from prometheus_client.exposition import choose_encoder

from collector.storage.engine import Database
from collector.storage.overview import load_health, present_runs
from dashboard.collecting import TargetState
from dashboard.exporter.choices import ExporterChoices
from dashboard.exporter.health import health_metrics
from dashboard.exporter.runs import Encoder, Given, RunSeries

MOST_RUNS: Final = 2_000
_ESCAPING: Final = re.compile(r";\s*escaping=[^;,]*")
"""What a scraper asks to do with names that older Prometheus servers do not take; there are none here."""


class Exporter:
    """Answers scrapes. Safe to use from several threads."""

    def __init__(
        self,
        database: Database,
        choices: ExporterChoices | None = None,
        *,
        targets: Callable[[], Sequence[TargetState]] = list,
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``targets`` tells how watching engines goes in this process."""
        self._database = database
        self._choices = choices or ExporterChoices()
        self._targets = targets
        self._clock = clock
        self._series = RunSeries(self._choices.labels)
        self._scrapes = 0
        self._lock = Lock()

    def exposition(self, encode: Encoder) -> bytes:
        """All families in one format.

        Raises:
            StorageError: the database refused.
        """
        now = self._clock()
        since = now - self._choices.forget_after_seconds
        with self._lock:
            with self._database.reading() as connection:
                present = present_runs(connection, since=since, most=MOST_RUNS)
                runs = self._series.render(connection, present, encode, now=now)
                health = load_health(connection)
            self._scrapes += 1
            metrics = health_metrics(health, present, self._targets(), scrapes=self._scrapes, now=now)
            return runs.encode() + encode(Given(list(metrics)))


def metrics_router(exporter: Exporter) -> APIRouter:
    """The endpoint: nothing of this process or its libraries is exported by accident."""
    router = APIRouter()

    @router.get("/metrics", summary="Verdicts and figures for Prometheus", response_class=Response)
    def metrics(request: Request) -> Response:
        encode, content_type = choose_encoder(_ESCAPING.sub("", request.headers.get("accept", "")))
        content = exporter.exposition(encode)
        headers = {"Content-Type": content_type, "Vary": "Accept, Accept-Encoding"}
        if "gzip" in request.headers.get("accept-encoding", ""):
            # The fastest level is a tenth of the size already; the usual one takes four times as long.
            content = zlib.compress(content, 1, wbits=31)
            headers["Content-Encoding"] = "gzip"
        return Response(content, headers=headers)

    return router
