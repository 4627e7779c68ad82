"""Metrics out of Prometheus, Thanos, Mimir or VictoriaMetrics."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dashboard.durations import duration
from dashboard.feeds.base import Feed, HttpSource

if TYPE_CHECKING:
    from collector.storage.engine import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class PrometheusSource(HttpSource):
    """A Prometheus-compatible store.

    Attributes:
        select: a selector that restricts what is read.
        since: how much of what lies before the first look is read.
    """

    kind: ClassVar[str] = "prometheus"

    select: str = ""
    since: str = "1h"

    def check(self) -> None:
        """Also the selector and the duration."""
        from collector.sources.prometheus import matchers_of

        HttpSource.check(self)
        matchers_of(self.select)
        duration(self.since, "since")

    def open(self, database: Database, now: Callable[[], float]) -> Feed:
        """Read on where the last look ended."""
        from collector.sources.prometheus import LARGEST_ANSWER
        from collector.stored_metrics import StoredMetrics

        since = duration(self.since, "since")
        return StoredMetrics(
            database,
            self.endpoint(LARGEST_ANSWER),
            self.select,
            since_seconds=since,
            deployment=self.deployment or None,
            labels=self.labels,
            now=now,
        )
