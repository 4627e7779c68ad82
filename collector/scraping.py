"""From a running engine to the database: each process that answers at an address is a run.

Where the last scrape ended is known from the database, so that single scrapes, hours apart, give
the same counts as one long watch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

from collector.domain.arguments import Arguments
from collector.domain.errors import StorageError
from collector.domain.evidence import Evidence
from collector.domain.runs import Event, RunRecord
from collector.domain.series import SeriesSample
from collector.domain.windows import Window
from collector.metrics.base import (
    EngineInfo,
    EngineMetrics,
    EngineState,
    Fall,
    Interval,
    UnitState,
    another_process,
    falls,
)
from collector.metrics.exposition import Sample
from collector.metrics.histograms import latencies
from collector.metrics.samples import SeriesKey, series_key
from collector.sources.scrape import Scrape, Scraper
from collector.storage.engine import Database
from collector.storage.runs import load_arguments
from collector.storage.scrapes import Overtaken, last_scrape, run_that_states, save_scrape, scraped_at

_UNKNOWN: Final = ""
_MOST_TRIES: Final = 5


@dataclass(frozen=True, slots=True)
class Stored:
    """What became of one scrape: its run, and what was stored of it.

    ``since_start`` says that the windows reach back to the start of the process, ``restarted``
    that another process answered than before, ``falls`` which counters of the same process fell.
    """

    run_id: int
    scrape: Scrape
    interval: Interval
    since_start: bool
    restarted: bool
    falls: tuple[Fall, ...] = ()


@dataclass(slots=True)
class _Process:
    """The process that answered last: its run, its last state, and what is stored of its series."""

    run_id: int | None
    life: str
    started_at: float | None
    state: EngineState
    stored: dict[SeriesKey, float]
    info: EngineInfo | None = None


class Watch:
    """Scrapes one engine and stores what comes."""

    def __init__(
        self,
        database: Database,
        scraper: Scraper,
        *,
        deployment: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Nothing is asked or stored yet; ``labels`` are put on every run."""
        self.database = database
        self.scraper = scraper
        endpoint = scraper.endpoint
        place = Place(endpoint.address, f"{endpoint.address}/metrics", endpoint.host, endpoint.port)
        self._recorder = Recorder(database, place, deployment=deployment, labels=labels)

    def take(self) -> Stored:
        """Scrape once and store it.

        Raises:
            SourceError: the engine does not answer as it should; nothing was stored.
            StorageError: the database refused; the next call stores the whole interval.
        """
        return self._recorder.store(self.scraper.scrape())


@dataclass(frozen=True, slots=True)
class Place:
    """Where an engine is scraped: ``address`` names it in the database, ``source`` in evidence.

    ``host`` is "" where nothing says on which machine it runs.
    """

    address: str
    source: str
    host: str
    port: int | None


class Recorder:
    """Stores scrapes of one engine in their order, whoever made them."""

    def __init__(
        self,
        database: Database,
        place: Place,
        *,
        deployment: str | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> None:
        """Nothing is stored yet; ``labels`` are put on every run."""
        self.database = database
        self._place = place
        self._address = place.address
        self._deployment = deployment
        self._labels = dict(labels or {})
        self._process: _Process | None = None
        self._after: float | None = None
        self._taken: list[Window] = []

    def store(self, scrape: Scrape) -> Stored:
        """Store what lies between the last scrape and this one; one that is no later than the last adds nothing.

        Raises:
            StorageError: the database refused; the next call stores the whole interval.
        """
        if scrape.taken is not None:
            self._taken += scrape.taken  # gone from the engine, so they wait here until they are stored
        for _ in range(_MOST_TRIES):
            try:
                return self._store(scrape)
            except Overtaken:  # another program watches it too: go on where that one ended
                self._process = known = self._last_stored(scrape)
                if known is not None and known.run_id is not None and scrape.state.at <= known.state.at:
                    return Stored(known.run_id, scrape, Interval(known.state), since_start=False, restarted=False)
        raise StorageError(
            "another program stores scrapes of this engine as well",
            why="it was faster time and again",
            where=self._address,
            hint="let one program watch it",
        )

    def _store(self, scrape: Scrape) -> Stored:
        """Store what lies between the last scrape and this one.

        Raises:
            Overtaken: the last scrape is not the one that is known here.
        """
        if self._process is None:
            self._process = self._last_stored(scrape)
        before = self._process
        fallen = tuple(falls(before.state, scrape.state)) if before is not None else ()
        restarted = before is not None and another_process(
            before.state, scrape.state, lives=(before.life, scrape.info.life), fallen=bool(fallen)
        )
        if before is None or restarted:
            process, fallen, since_start = self._begin(scrape), (), True
            interval = scrape.engine.interval(None, scrape.state, scrape.info)
        else:
            process, since_start = before, False
            interval = Interval(scrape.state)  # what lies around a reset is not known
            if not fallen:
                interval = scrape.engine.interval(before.state, scrape.state, scrape.info)
        if scrape.taken is not None:
            interval = replace(interval, windows=list(self._taken))
        record = self._record(process, scrape, interval, fallen)
        series = list(_changed(scrape.state, process.stored))
        with self.database.transaction() as connection:
            run_id = save_scrape(
                connection, record, series, address=self._address, after=self._after, run_id=process.run_id,
                deployment=self._deployment, at=scrape.state.at,
            )  # fmt: skip
            after = scraped_at(connection, self._address)
        self._after = after
        self._taken.clear()
        stored = process.stored | {_key_of(sample): sample.value for sample in series}
        self._process = replace(process, run_id=run_id, state=interval.state, stored=stored, info=scrape.info)
        return Stored(run_id, scrape, interval, since_start, restarted, fallen)

    def _begin(self, scrape: Scrape) -> _Process:
        """A process that was not seen here before. Its log may have been read already: then it is that run.

        Where the engine does not say when it started, that is known no better than: by now.
        """
        state, info = scrape.state, scrape.info
        run_id = self._run_of_log(scrape.engine, info)
        started_at = state.started_at
        if run_id is None and started_at is None:
            started_at = state.at
        return _Process(run_id, info.life, started_at, state, {})

    def _run_of_log(self, engine: EngineMetrics, info: EngineInfo) -> int | None:
        drawn = info.arguments[engine.life_argument] if info.life else None
        port = info.arguments.value("port")
        if drawn is None or drawn.requested_seen or not isinstance(port, int):
            return None
        with self.database.reading() as connection:
            return run_that_states(
                connection, engine.engine, port, drawn.name, info.arguments.value(drawn.name), other_than=self._address
            )

    def _last_stored(self, scrape: Scrape) -> _Process | None:
        """Where the last scrape of this address, perhaps by another program, ended."""
        engine = scrape.engine
        with self.database.reading() as connection:
            self._after = scraped_at(connection, self._address)
            last = last_scrape(connection, self._address)
            arguments = Arguments() if last is None else load_arguments(connection, last.run_id)
        if last is None:
            return None
        samples = [Sample(sample.name, sample.labels, sample.value) for sample in last.series]
        life = arguments.value(engine.life_argument) if engine.life_argument else None
        state = engine.state(samples, EngineInfo(arguments=arguments), last.at)
        units = {name: _with_counts(unit, last.counted.get(name)) for name, unit in state.units.items()}
        state = replace(state, units=units)
        stored = {series_key(sample): sample.value for sample in samples}
        return _Process(last.run_id, _UNKNOWN if life is None else str(life), None, state, stored)

    def _record(self, process: _Process, scrape: Scrape, interval: Interval, fallen: tuple[Fall, ...]) -> RunRecord:
        info, at = scrape.info, scrape.state.at
        known = process.info is not None and process.info.arguments == info.arguments
        source = self._place.source
        events = [
            Event(
                "counter-reset",
                Evidence(source, None, f"{fall.name} {fall.before:g}, then {fall.after:g}"),
                at,
                {"metric": fall.name, "before": fall.before, "after": fall.after},
            )
            for fall in fallen[:1]
        ]
        return RunRecord(
            engine=scrape.engine.engine,
            source=source,
            engine_version=info.engine_version,
            started_at=process.started_at if process.run_id is None else None,
            ended_at=at,
            host=self._place.host,
            port=self._place.port,
            arguments=Arguments() if known else info.arguments,
            launch=None if known else info.launch,
            events=events,
            windows=interval.windows,
            prefills=interval.prefills,
            latencies=latencies(scrape.engine.latency_names, scrape.state.samples),
            labels=self._labels,
        )


def _with_counts(unit: UnitState, counted: tuple[float, float] | None) -> UnitState:
    """A unit whose steps the engine does not count itself, with those that were stored of it."""
    if counted is None or (unit.verify_steps is not None and unit.mean_length is None):
        return unit
    return unit._replace(verify_steps=counted[0], accepted_tokens=counted[1])


def _changed(state: EngineState, stored: Mapping[SeriesKey, float]) -> list[SeriesSample]:
    """The series whose value is another than the stored one; counters begin at 0."""
    changed: list[SeriesSample] = []
    for sample in state.samples:
        key = series_key(sample)
        before = stored.get(key, 0.0 if key in state.counters else None)
        if sample.value != before and not (before is not None and sample.value != sample.value and before != before):  # noqa: PLR0124
            changed.append(SeriesSample(sample.name, sample.labels, state.at, sample.value))
    return changed


def _key_of(sample: SeriesSample) -> SeriesKey:
    return series_key(Sample(sample.name, sample.labels, sample.value))
