"""Logs out of Grafana Loki."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from dashboard.durations import duration
from dashboard.feeds.base import Feed, HttpSource, opened_logs

if TYPE_CHECKING:
    from collector.storage.engine import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class LokiSource(HttpSource):
    """Logs of engines in Loki.

    Attributes:
        select: the streams to read.
        since: how much of what lies before the first look is read of a log.
    """

    kind: ClassVar[str] = "loki"

    select: str
    since: str = "1h"

    def check(self) -> None:
        """Also the selector and the duration."""
        from collector.sources.loki import matchers_of

        HttpSource.check(self)
        matchers_of(self.select)
        duration(self.since, "since")

    def open(self, database: Database, now: Callable[[], float]) -> Feed:
        """Read on where the last look ended."""
        from collector.sources.loki import LARGEST_ANSWER, Loki

        since = round((now() - duration(self.since, "since")) * 1e9)
        source = Loki(self.endpoint(LARGEST_ANSWER), self.select, now=now)
        return opened_logs(self, source, database, now, since=since)
