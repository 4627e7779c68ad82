"""From a Prometheus-compatible store to the database: what others scraped, as if it had been scraped here.

Every process whose metrics are in the store becomes the run that direct scraping would have made of
it, under the same address, so that both may follow one another and nothing is counted twice.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Final
from urllib.parse import urlsplit

from collector.metrics import engines
from collector.metrics.base import EngineInfo, EngineMetrics
from collector.metrics.exposition import Sample
from collector.scraping import Place, Recorder
from collector.sources.http import Endpoint
from collector.sources.prometheus import PrometheusApi, StoredSeries, matchers_of, one_of, selector
from collector.sources.scrape import Scrape, with_stated
from collector.storage.engine import Database
from collector.storage.scrapes import note_read, scraped_at

SETTLED_SECONDS: Final = 30.0
"""Samples are read once they are this old: until then a part of a scrape may still be under way to the store."""
OVERLAP_SECONDS: Final = 60.0
"""How far is looked back for samples that came late."""
LATEST_SECONDS: Final = 3600.0
"""How long is waited for a store that gives nothing, before it is taken that there was nothing."""

_INSTANCE: Final = "instance"
_CLUSTER: Final = "cluster"
_JOB: Final = "job"
_NAME: Final = "__name__"
_COLLIDED: Final = "exported_"
"""Put before a label of the engine where the collector has one of the same name."""

Labels = tuple[tuple[str, str], ...]
"""Labels in the order of their names."""


@dataclass(frozen=True, slots=True)
class _Told:
    """What a store tells of one process under one set of the collector's labels: samples by instant."""

    labels: Labels
    scrapes: Mapping[float, list[Sample]]

    @property
    def first(self) -> float:
        return min(self.scrapes)

    @property
    def last(self) -> float:
        return max(self.scrapes)


@dataclass(slots=True)
class _Known:
    """A process that was stored: the labels it was read under last, and up to when."""

    recorder: Recorder
    labels: Labels
    after: float | None


class StoredMetrics:
    """Reads the metrics of many engines out of a store. Call :meth:`step` from time to time."""

    def __init__(
        self,
        database: Database,
        endpoint: Endpoint,
        select: str = "",
        *,
        since_seconds: float = 0.0,
        deployment: str | None = None,
        labels: Mapping[str, str] | None = None,
        now: Callable[[], float] = time.time,
    ) -> None:
        """Nothing is asked yet.

        ``select`` restricts to series with these labels (``{namespace="llm"}``), ``since_seconds`` says how much
        of what lies before now is read at first. ``labels`` are put on every run, beside those of the collector.

        Raises:
            InputError: ``select`` is no selector.
        """
        self._database = database
        self._api = PrometheusApi(endpoint)
        self._matchers = matchers_of(select)
        self.name = f"{endpoint.address}{{{self._matchers}}}"
        self._since = since_seconds
        self._deployment = deployment
        self._labels = dict(labels or {})
        self._now = now
        self._known: dict[str, _Known] = {}
        self._read_up_to: float | None = None
        self.scrapes = 0
        """Scrapes that were stored."""
        self.run_ids: dict[int, None] = {}
        """The runs they were stored in, in order."""
        self.problems: dict[str, str] = {}
        """What is to be said of some of them, by address."""

    def step(self) -> bool:
        """Store the next stretch of what came since; whether there is a further one.

        Raises:
            SourceError: the store does not answer as it should; what was stored before stays.
            StorageError: the database refused; the next call goes on there.
        """
        now = self._now()
        end = now - SETTLED_SECONDS
        with self._database.reading() as connection:
            position = scraped_at(connection, self.name)
        begin = self._read_up_to
        if begin is None:
            begin = min(now - self._since, end) if position is None else position - OVERLAP_SECONDS
        reached = begin if position is None else position
        if begin < end:
            until, seen = self._stretch(begin, end)
            reached = max(reached, seen, until - LATEST_SECONDS)
        else:
            until = end
        with self._database.transaction() as connection:
            note_read(connection, self.name, reached)
        self._read_up_to = until if until < end else None  # at the end the next look begins a little before
        return until < end

    def close(self) -> None:
        """Close the connections to the store."""
        self._api.endpoint.close()

    def _stretch(self, begin: float, end: float) -> tuple[float, float]:
        """Store one stretch; returns its end and the last instant that was told of, 0 if none was."""
        selectors = [selector(_names(engine), self._matchers) for engine in engines()]
        until, series = self._api.read(selectors, begin, end)
        if not series:
            return until, 0.0
        generic = sorted({name for engine in engines() for name in engine.sample_names} - _engine_names())
        jobs = sorted({item.labels[_JOB] for item in series if _JOB in item.labels})
        matchers = ",".join(filter(None, (self._matchers, one_of(_JOB, jobs) if jobs else "")))
        beside = self._api.read_all([selector(generic, matchers)], begin, until)
        seen = max(item.samples[-1][0] for item in series)
        for engine in engines():
            own = [item for item in series if item.labels[_NAME] in engine.sample_names]
            extra = [item for item in beside if item.labels[_NAME] in engine.sample_names]
            for address, place, told in self._processes(engine, own, extra):
                self._store(engine, address, place, told)
        return until, seen

    # ---- which series are of one process

    def _processes(
        self, engine: EngineMetrics, own: Sequence[StoredSeries], beside: Sequence[StoredSeries]
    ) -> Iterator[tuple[str, Place, _Told]]:
        """The processes of one engine, each with what is told of it."""
        groups: dict[tuple[str, str], list[StoredSeries]] = {}
        named = [item for item in own if _INSTANCE in item.labels]  # VictoriaMetrics cuts off labels beyond the 30th
        for item in (_uncollided(series, engine.own_labels) for series in named or own):
            key = item.labels.get(_INSTANCE, ""), item.labels.get(_CLUSTER, "")
            groups.setdefault(key, []).append(item)
        for (instance, cluster), group in groups.items():
            told = _by_labels(engine, group, beside)
            if not instance:  # nothing but their labels tells them apart
                for each in told:
                    place = self._place("/".join(value for _, value in each.labels), "")
                    yield place.address, place, each
                continue
            place = self._place(instance, cluster)
            for each in self._apart(place.address, told):
                yield place.address, place, each

    def _apart(self, address: str, told: Sequence[_Told]) -> list[_Told]:
        """What is told of one address, once: several collectors may watch it, each with labels of its own."""
        known = self._known.get(address)
        chosen: list[_Told] = []
        left: list[_Told] = []
        for each in sorted(told, key=lambda each: (known is None or each.labels != known.labels, each.labels)):
            apart = all(each.last < other.first or each.first > other.last for other in chosen)
            (chosen if apart else left).append(each)
        if left:
            differing = sorted(set(left[0].labels) ^ set(chosen[0].labels))
            self.problems[address] = (
                f"{address} is told of more than once ({', '.join(f'{name}={value}' for name, value in differing)}):"
                " one of them is read; where these are different engines, select one and give it a target of its own"
            )
        else:
            self.problems.pop(address, None)
        return sorted(chosen, key=lambda each: each.first)

    def _place(self, instance: str, cluster: str) -> Place:
        text = instance if "://" in instance else f"http://{instance}"
        try:
            parts = urlsplit(text)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            host, port = instance, None
        address = f"{text} (cluster {cluster})" if cluster else text
        return Place(address, f"{self._api.endpoint.address} ({instance})", host, port)

    # ---- storing

    def _store(self, engine: EngineMetrics, address: str, place: Place, told: _Told) -> None:
        """Store the scrapes of one process that are new."""
        known = self._known.get(address)
        if known is None or known.labels != told.labels:
            labels = {name: value for name, value in told.labels if name != _INSTANCE} | self._labels
            recorder = Recorder(self._database, place, deployment=self._deployment, labels=labels)
            with self._database.reading() as connection:
                known = _Known(recorder, told.labels, scraped_at(connection, address))
            self._known[address] = known
        for at in sorted(told.scrapes):
            if known.after is not None and at <= known.after:
                continue
            samples = told.scrapes[at]
            info = with_stated(engine, EngineInfo(), samples, place.source)
            stored = known.recorder.store(Scrape(engine, info, engine.state(samples, info, at)))
            known.after = at
            self.run_ids[stored.run_id] = None
            self.scrapes += 1


def _names(engine: EngineMetrics) -> list[str]:
    return sorted(name for name in engine.sample_names if name.startswith(engine.prefixes))


def _engine_names() -> set[str]:
    return {name for engine in engines() for name in _names(engine)}


def _uncollided(series: StoredSeries, own: frozenset[str]) -> StoredSeries:
    """A series with the engine's labels under their own names."""
    renamed = {
        name: name.removeprefix(_COLLIDED) for name in series.labels if name.removeprefix(_COLLIDED) in own - {name}
    }
    if not renamed:
        return series
    labels = {name: value for name, value in series.labels.items() if name not in renamed.values()}
    return series._replace(labels={renamed.get(name, name): value for name, value in labels.items()})


def _by_labels(engine: EngineMetrics, group: Sequence[StoredSeries], beside: Iterable[StoredSeries]) -> list[_Told]:
    """Scrapes by the labels that the collector put on all series of a group."""
    shared = reduce(lambda names, item: names & item.labels.keys(), group, set(group[0].labels))
    shared -= {_NAME, *engine.own_labels}
    names = sorted(shared)
    found: dict[Labels, dict[float, list[Sample]]] = {}
    for item in group:
        target = tuple((name, item.labels[name]) for name in names)
        _add(found.setdefault(target, {}), item, shared)
    for item in beside:
        target = tuple((name, item.labels.get(name, "")) for name in names)
        if target in found:
            _add(found[target], item, shared, only_known=True)
    return [_Told(labels, scrapes) for labels, scrapes in found.items()]


def _add(
    scrapes: dict[float, list[Sample]], series: StoredSeries, without: set[str], *, only_known: bool = False
) -> None:
    labels = {name: value for name, value in series.labels.items() if name != _NAME and name not in without}
    name = series.labels[_NAME]
    for at, value in series.samples:
        if not only_known or at in scrapes:
            scrapes.setdefault(at, []).append(Sample(name, labels, value))
