"""From a running engine to the database: each process that answers at an address is a run.

Where the last scrape ended is known from the database, so that single scrapes, hours apart, give
the same counts as one long watch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from sqlalchemy import Connection

from collector.domain.arguments import Arguments
from collector.domain.errors import StorageError
from collector.domain.evidence import Evidence
from collector.domain.results import Latency
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
from collector.metrics.exposition import Series
from collector.metrics.histograms import latencies
from collector.metrics.samples import Samples, SeriesKey, SeriesTable
from collector.sources.http import Server
from collector.sources.scrape import Scrape, Scraper
from collector.storage.engine import Database
from collector.storage.runs import load_arguments
from collector.storage.scrapes import (
    Continued,
    Overtaken,
    ScrapeState,
    SeriesDocument,
    last_scrape,
    read_sources,
    run_that_states,
    save_continued,
    save_scrape,
    scraped_at,
)
from collector.storage.types import stored_instant
from collector.storage.windows import append_values, series_digest, series_ids

SERIES_SECONDS: Final = 600.0
"""Between two values that are kept of a series."""
LATENCY_SECONDS: Final = 60.0
"""Between two looks at the histograms of latency."""
CLOCK_JUMP_SECONDS: Final = 2.0
"""How much longer or shorter than it was an interval may look; more is a clock that was set."""
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


class _Jump(NamedTuple):
    """A clock that was set between two scrapes: the later instant, seconds that it went, and seconds that passed.

    ``length`` is how long the window that ends there really was.
    """

    at: float
    shown: float
    passed: float
    length: float


@dataclass(frozen=True, slots=True)
class _Kept:
    """What was kept of a run's series: their values and ids, and when that was."""

    at: float
    values: Mapping[SeriesKey, float]
    ids: Mapping[SeriesKey, int]


@dataclass(slots=True)
class _Process:
    """The process that answered last: its run, its last state, and what is stored of its series."""

    run_id: int | None
    life: str
    started_at: float | None
    state: EngineState
    info: EngineInfo | None = None
    source_id: int | None = None
    kept: _Kept | None = None


@dataclass(slots=True)
class _Pending:
    """A scrape that is about to be stored. ``told`` says that nothing is new in what the engine says of itself."""

    scrape: Scrape
    process: _Process
    interval: Interval
    told: bool
    events: list[Event]
    latencies: Mapping[str, Latency]
    state: ScrapeState
    series: list[tuple[SeriesKey, SeriesSample]]
    since_start: bool
    restarted: bool
    fallen: tuple[Fall, ...]
    run_id: int = 0
    ids: Mapping[SeriesKey, int] = field(default_factory=dict)

    @property
    def is_plain(self) -> bool:
        """Whether it adds windows to a run that is known, and nothing else."""
        process = self.process
        known = process.kept is not None and all(key in process.kept.ids for key, _ in self.series)
        return process.run_id is not None and process.source_id is not None and known and self.told and not self.events

    def stored(self) -> Stored:
        """What became of it."""
        return Stored(self.run_id, self.scrape, self.interval, self.since_start, self.restarted, self.fallen)


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
        self._recorder = Recorder(database, Place.of(scraper.endpoint), deployment=deployment, labels=labels)

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

    @classmethod
    def of(cls, endpoint: Server) -> Place:
        """An engine that is asked itself."""
        return cls(endpoint.address, f"{endpoint.address}/metrics", endpoint.host, endpoint.port)


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
        self.address = place.address
        self._deployment = deployment
        self._labels = dict(labels or {})
        self._process: _Process | None = None
        self._after: float | None = None
        self._overtaken = False
        self._measured_at: float | None = None
        self._last: Scrape | None = None
        self._taken: list[Window] = []

    def store(self, scrape: Scrape) -> Stored:
        """Store what lies between the last scrape and this one; one that is no later than the last adds nothing.

        Raises:
            StorageError: the database refused; the next call stores the whole interval.
        """
        (stored,) = store_all([(self, scrape)])
        if isinstance(stored, Exception):
            raise stored
        return stored

    def accept(self, scrape: Scrape) -> None:
        """Take over what is gone from the engine: it waits here until it is stored."""
        self._taken += scrape.taken or ()

    def prepare(self, scrape: Scrape) -> _Pending | Stored:
        """Work out what lies between the last scrape and this one; nothing is stored. One that comes too late is done."""
        known = self._process
        if known is None:
            known = self._process = self._last_stored(scrape)
        if known is not None and known.run_id is not None and scrape.state.at <= known.state.at and self._overtaken:
            return Stored(known.run_id, scrape, Interval(known.state), since_start=False, restarted=False)
        fallen = tuple(falls(known.state, scrape.state)) if known is not None else ()
        restarted = known is not None and another_process(
            known.state, scrape.state, lives=(known.life, scrape.info.life), fallen=bool(fallen)
        )
        if known is None or restarted:
            process, fallen, since_start = self._begin(scrape), (), True
            interval = scrape.engine.interval(None, scrape.state, scrape.info)
        else:
            process, since_start = known, False
            interval = Interval(scrape.state)  # what lies around a reset is not known
            if not fallen:
                interval = scrape.engine.interval(known.state, scrape.state, scrape.info)
        jump = None if known is None or restarted else self._jump(known.state.at, scrape)
        if jump is not None:
            interval = replace(interval, windows=[_timed_by(window, jump) for window in interval.windows])
        if scrape.taken is not None:
            interval = replace(interval, windows=list(self._taken))
        told = process.info is not None and process.info.arguments == scrape.info.arguments
        late = latencies(scrape.engine.latency_names, scrape.state.samples) if self._is_late(scrape.state.at) else {}
        series = _changed(scrape.state, process.kept) if _is_due(process.kept, scrape.state.at) else []
        return _Pending(
            scrape, process, interval, told, self._events(scrape.state.at, fallen, jump), late,
            _state_of(interval.state), series, since_start, restarted, fallen,
        )  # fmt: skip

    def save(self, connection: Connection, pending: _Pending) -> None:
        """Store everything that is known of a scrape.

        Raises:
            Overtaken: the last scrape is not the one that is known here; nothing was stored.
        """
        pending.run_id = save_scrape(
            connection, self._record(pending), address=self.address, after=self._after, run_id=pending.process.run_id,
            deployment=self._deployment, state=pending.state, at=pending.scrape.state.at,
        )  # fmt: skip
        digests = pending.scrape.state.samples.table.derived(_digests)
        series = {digests[key]: (sample.name, sample.labels) for key, sample in pending.series}
        numbers = series_ids(connection, pending.run_id, series)
        pending.ids = {key: numbers[digests[key]] for key, _ in pending.series}
        append_values(connection, [(pending.ids[key], item.at, item.value) for key, item in pending.series])

    def continued(self, pending: _Pending) -> Continued:
        """A scrape that is plain, as it is stored with others."""
        process, kept = pending.process, pending.process.kept
        assert process.run_id is not None
        assert process.source_id is not None
        assert kept is not None
        assert self._after is not None
        pending.run_id = process.run_id
        return Continued(
            process.source_id, process.run_id, self._after, pending.scrape.state.at, pending.interval.windows,
            pending.interval.prefills, pending.state, pending.latencies or None,
            [(kept.ids[key], item.at, item.value) for key, item in pending.series],
        )  # fmt: skip

    def settle(self, pending: _Pending, source: tuple[int, float] | None) -> Stored:
        """Go on from a scrape that was stored; ``source`` is the id of its source, and when that was read by the database.

        ``None`` where it is the one that is known.
        """
        process, at = pending.process, pending.scrape.state.at
        kept = process.kept
        if _is_due(kept, at):
            fresh = {key: sample.value for key, sample in pending.series}
            before = kept or _Kept(at, {}, {})
            kept = _Kept(at, {**before.values, **fresh}, {**before.ids, **pending.ids})
        source_id, self._after = source or (process.source_id, stored_instant(at))
        self._taken.clear()
        self._overtaken = False
        self._last = pending.scrape
        if pending.latencies:
            self._measured_at = at
        process.run_id, process.source_id = pending.run_id, source_id
        process.state, process.info, process.kept = pending.interval.state, pending.scrape.info, kept
        self._process = process
        return pending.stored()

    def _is_late(self, at: float) -> bool:
        """Whether latencies are to be looked at again."""
        return self._measured_at is None or not 0 <= at - self._measured_at < LATENCY_SECONDS

    def overtaken(self) -> None:
        """Another program watches the engine too: go on where that one ended."""
        self._process, self._last, self._overtaken = None, None, True

    def _begin(self, scrape: Scrape) -> _Process:
        """A process that was not seen here before. Its log may have been read already: then it is that run.

        Where the engine does not say when it started, that is known no better than: by now.
        """
        state, info = scrape.state, scrape.info
        run_id = self._run_of_log(scrape.engine, info)
        started_at = state.started_at
        if run_id is None and started_at is None:
            started_at = state.at
        return _Process(run_id, info.life, started_at, state)

    def _run_of_log(self, engine: EngineMetrics, info: EngineInfo) -> int | None:
        drawn = info.arguments[engine.life_argument] if info.life else None
        port = info.arguments.value("port")
        if drawn is None or drawn.requested_seen or not isinstance(port, int):
            return None
        with self.database.reading() as connection:
            return run_that_states(
                connection, engine.engine, port, drawn.name, info.arguments.value(drawn.name), other_than=self.address
            )

    def _last_stored(self, scrape: Scrape) -> _Process | None:
        """Where the last scrape of this address, perhaps by another program, ended."""
        engine = scrape.engine
        with self.database.reading() as connection:
            self._after = scraped_at(connection, self.address)
            last = last_scrape(connection, self.address)
            arguments = Arguments() if last is None else load_arguments(connection, last.run_id)
        if last is None:
            return None
        stood = last.state
        samples = Samples(SeriesTable(Series(name, labels) for name, labels in stood.series.series), stood.values)
        life = arguments.value(engine.life_argument) if engine.life_argument else None
        state = engine.state(samples, EngineInfo(arguments=arguments), stood.at)
        units = {name: _with_counts(unit, stood.counted.get(name)) for name, unit in state.units.items()}
        state = replace(state, units=units)
        return _Process(last.run_id, _UNKNOWN if life is None else str(life), None, state)

    def _jump(self, before: float, scrape: Scrape) -> _Jump | None:
        """How far the clock went and how long it really was, where these differ by more than clocks drift."""
        if self._last is None or self._last.steady_at is None or scrape.steady_at is None:
            return None
        at = scrape.state.at
        shown, passed = at - self._last.state.at, scrape.steady_at - self._last.steady_at
        if abs(shown - passed) <= CLOCK_JUMP_SECONDS:
            return None
        return _Jump(at, shown, passed, at - before + passed - shown)

    def _events(self, at: float, fallen: tuple[Fall, ...], jump: _Jump | None) -> list[Event]:
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
        if jump is not None:
            told = f"the clock went {jump.shown:+.1f} s while {jump.passed:.1f} s passed"
            events.append(Event("clock-jump", Evidence(source, None, told), at, jump._asdict()))
        return events

    def _record(self, pending: _Pending) -> RunRecord:
        scrape, process, interval = pending.scrape, pending.process, pending.interval
        info = scrape.info
        return RunRecord(
            engine=scrape.engine.engine,
            source=self._place.source,
            engine_version=info.engine_version,
            started_at=process.started_at if process.run_id is None else None,
            ended_at=scrape.state.at,
            host=self._place.host,
            port=self._place.port,
            arguments=Arguments() if pending.told else info.arguments,
            launch=None if pending.told else info.launch,
            events=pending.events,
            windows=interval.windows,
            prefills=interval.prefills,
            latencies=pending.latencies,
            labels=self._labels,
        )


def _with_counts(unit: UnitState, counted: tuple[float, float] | None) -> UnitState:
    """A unit whose steps the engine does not count itself, with those that were stored of it."""
    if counted is None or (unit.verify_steps is not None and unit.mean_length is None):
        return unit
    return unit._replace(verify_steps=counted[0], accepted_tokens=counted[1])


def _timed_by(window: Window, jump: _Jump) -> Window:
    """A window between two scrapes with the time that really passed."""
    if window.at != jump.at or (window.seconds is None and jump.shown > 0):  # the latter: since the start
        return window
    tokens, seconds = window.generated_tokens, jump.length
    throughput = tokens / seconds if tokens is not None and seconds > 0 else None
    return window._replace(seconds=seconds, generation_throughput=throughput)


def _is_due(kept: _Kept | None, at: float) -> bool:
    """Whether series are to be kept again. Counters and histograms lose nothing in between: they run from the start."""
    return kept is None or not 0 <= at - kept.at < SERIES_SECONDS


def _changed(state: EngineState, kept: _Kept | None) -> list[tuple[SeriesKey, SeriesSample]]:
    """The series whose value is another than the one that was kept."""
    known = kept.values if kept is not None else {}
    samples = state.samples
    return [
        (key, SeriesSample(series.name, series.labels, state.at, value))
        for key, series, value in zip(samples.table.keys, samples.table.series, samples.values, strict=True)
        if value != (before := known.get(key)) and not (before is not None and value != value and before != before)  # noqa: PLR0124
    ]


def _digests(table: SeriesTable) -> dict[SeriesKey, str]:
    return {
        key: series_digest(series.name, series.labels) for key, series in zip(table.keys, table.series, strict=True)
    }


def _document(table: SeriesTable) -> SeriesDocument:
    return SeriesDocument.of(table.series)


def _state_of(state: EngineState) -> ScrapeState:
    counted = {
        name: (unit.verify_steps, unit.accepted_tokens or 0.0)
        for name, unit in state.units.items()
        if unit.verify_steps is not None
    }
    return ScrapeState(state.at, state.samples.table.derived(_document), state.samples.values, counted)


def store_all(scrapes: Sequence[tuple[Recorder, Scrape]]) -> list[Stored | Exception]:
    """Store scrapes of several engines in one unit of work; gives for each what became of it.

    Where the database refuses, nothing is stored; the next scrape of each engine stores the whole interval.
    A fault of ours with one scrape is that one's alone.
    """
    done: dict[int, Stored | Exception] = {}
    for recorder, scrape in scrapes:
        recorder.accept(scrape)
    for _ in range(_MOST_TRIES):
        left = [number for number in range(len(scrapes)) if number not in done]
        if not left:
            break
        try:
            done |= _store_once({number: scrapes[number] for number in left})
        except StorageError as error:
            done |= dict.fromkeys(left, error)
        except Exception:  # noqa: BLE001 - found by whose it is
            for number in left:
                try:
                    done |= _store_once({number: scrapes[number]})
                except Exception as error:  # noqa: BLE001 - told by whoever asked for it
                    done[number] = error
    return [
        done.get(number)
        or StorageError(
            "another program stores scrapes of this engine as well",
            why="it was faster time and again",
            where=recorder.address,
            hint="let one program watch it",
        )
        for number, (recorder, _) in enumerate(scrapes)
    ]


def _store_once(scrapes: Mapping[int, tuple[Recorder, Scrape]]) -> dict[int, Stored | Exception]:
    """Store what can be stored; scrapes that were overtaken are left out, to be tried again from where the other ended."""
    done: dict[int, Stored | Exception] = {}
    pending: dict[int, _Pending] = {}
    for number, (recorder, scrape) in scrapes.items():
        prepared = recorder.prepare(scrape)
        if isinstance(prepared, Stored):
            done[number] = prepared
        else:
            pending[number] = prepared
    if not pending:
        return done
    database = next(iter(scrapes.values()))[0].database
    plain = [number for number, item in pending.items() if item.is_plain]
    with database.transaction() as connection:
        taken = save_continued(connection, [scrapes[number][0].continued(pending[number]) for number in plain])
        stored = {number for number, was in zip(plain, taken, strict=True) if was}
        for number in pending.keys() - set(plain):
            try:
                scrapes[number][0].save(connection, pending[number])
            except Overtaken:
                continue
            stored.add(number)
        others = [scrapes[number][0].address for number in stored.difference(plain)]
        sources = read_sources(connection, others) if others else {}
    for number, item in pending.items():
        recorder = scrapes[number][0]
        if number in stored:
            done[number] = recorder.settle(item, sources.get(recorder.address))
        else:
            recorder.overtaken()
    return done
