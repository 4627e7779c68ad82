"""A running engine as a run in memory: what was scraped since watching began, and nothing stored."""

from __future__ import annotations

from typing import Final

from collector.domain.results import Latency
from collector.domain.runs import RunRecord
from collector.metrics.base import EngineState, another_process, falls
from collector.metrics.histograms import latencies
from collector.sources.scrape import Scrape, Scraper

MOST_WINDOWS: Final = 4_000
"""Windows that are kept, all units together; the oldest are let go."""


class LiveRun:
    """Scrapes one engine and keeps the windows of the process that answers now."""

    def __init__(self, scraper: Scraper) -> None:
        """Nothing is asked yet."""
        self.scraper = scraper
        self.record: RunRecord | None = None
        self.scrape: Scrape | None = None
        self.scrapes = 0
        self._life = ""
        self._begun: EngineState | None = None
        self._state: EngineState | None = None

    def take(self) -> RunRecord:
        """Scrape once; gives the run as it is known now.

        Raises:
            SourceError: the engine does not answer as it should.
        """
        scrape = self.scraper.scrape()
        before = self._state
        fallen = before is not None and bool(falls(before, scrape.state))
        record = self.record
        if (
            before is None
            or record is None
            or another_process(before, scrape.state, lives=(self._life, scrape.info.life), fallen=fallen)
        ):
            before, fallen = None, False
            record = self.record = self._begin(scrape)
        if not fallen:  # what lies around a reset is not known
            interval = scrape.engine.interval(before, scrape.state, scrape.info)
            windows = interval.windows if scrape.taken is None else list(scrape.taken)
            record.windows = [*record.windows, *windows][-MOST_WINDOWS:]
            record.prefills = [*record.prefills, *interval.prefills][-MOST_WINDOWS:]
            self._state = interval.state
        else:
            self._state = scrape.state
        record.engine_version = scrape.info.engine_version
        record.arguments = scrape.info.arguments
        record.ended_at = scrape.state.at
        record.latencies = self._latencies(scrape)
        self.scrape, self._life = scrape, scrape.info.life
        self.scrapes += 1
        return record

    def _begin(self, scrape: Scrape) -> RunRecord:
        self._begun = scrape.state
        endpoint = self.scraper.endpoint
        return RunRecord(
            scrape.engine.engine,
            f"{endpoint.address}{scrape.engine.metrics_path}",
            started_at=scrape.state.started_at,
            host=endpoint.host,
            port=endpoint.port,
        )

    def _latencies(self, scrape: Scrape) -> dict[str, Latency]:
        """Since watching began; until anything was observed since then, since the start of the process."""
        begun = self._begun.samples if self._begun is not None else ()
        names, samples = scrape.engine.latency_names, scrape.state.samples
        return latencies(names, samples, begun) or latencies(names, samples)
