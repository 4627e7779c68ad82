"""What the live metrics of an engine are: its names turned into our quantities, scrape by scrape.

An engine's counters run from the start of its process. The difference of two scrapes is a window;
the first scrape of a process is one as well, from the start of the process, without a clock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Final, NamedTuple

from collector.domain.arguments import Arguments, LaunchCommand
from collector.domain.versions import Release
from collector.domain.windows import PrefillWindow, Window
from collector.metrics.exposition import Sample
from collector.metrics.samples import Samples, SeriesKey

SAME_START_SECONDS: Final = 1.0
"""Two readings of one process's start differ by less."""


class UnitState(NamedTuple):
    """One unit at one instant. Counters run from the start of the process; ``None`` means: not exposed.

    Fields:
        generated_tokens, target_passes, graphless_passes: counters of decoding: tokens, passes of the target, those
            of them that ran without a captured graph.
        request_passes: counter: the passes of each request, added up; over target_passes the mean batch.
        prompts, computed_tokens, cached_tokens: counters of prefill: prompts, and their tokens computed or found in
            the cache.
        verify_steps, accepted_tokens, drafted_tokens: counters, where the engine counts them or tells what they must be.
        accepted_at: counters: steps that accepted at least i drafts, for i = 1, 2, ...
        preemptions: counter: requests that lost their place in the cache.
        running_requests, waiting_requests, tokens_in_use, kv_cache_usage, generation_throughput: gauges as last set.
        graph: gauge: 1 where the last decode step ran from a captured graph.
        printed_length, printed_rate: gauges of acceptance, in the engine's own definition.
        mean_length: the acceptance length since the start of the process that gave these two back.
    """

    generated_tokens: float | None = None
    target_passes: float | None = None
    graphless_passes: float | None = None
    request_passes: float | None = None
    prompts: float | None = None
    computed_tokens: float | None = None
    cached_tokens: float | None = None
    verify_steps: float | None = None
    accepted_tokens: float | None = None
    drafted_tokens: float | None = None
    accepted_at: tuple[float, ...] | None = None
    preemptions: float | None = None
    running_requests: float | None = None
    waiting_requests: float | None = None
    tokens_in_use: float | None = None
    kv_cache_usage: float | None = None
    generation_throughput: float | None = None
    graph: float | None = None
    printed_length: float | None = None
    printed_rate: float | None = None
    mean_length: float | None = None


class InfoPaths(NamedTuple):
    """Where an engine describes itself: the first of ``paths`` that is there is read.

    ``missed`` says what is not known where none of them is, and how to turn one on; "" where that is as usual.
    ``kind`` is what the answer is: an object or a list of objects.
    """

    paths: tuple[str, ...]
    missed: str = ""
    kind: type[dict[str, Any] | list[Any]] = dict


class Document(NamedTuple):
    """The answer of an information endpoint: its path as in :class:`InfoPaths`, its address, and the JSON."""

    path: str
    url: str
    content: Any


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What an engine's information endpoints say about the process.

    ``life`` is the same for all answers of one process and differs between processes, "" where the
    engine does not tell; ``mean_lengths`` hold acceptance lengths since its start by unit index.
    """

    engine_version: Release | None = None
    arguments: Arguments = field(default_factory=Arguments)
    launch: LaunchCommand | None = None
    life: str = ""
    mean_lengths: Mapping[int, float] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class EngineState:
    """An engine at one instant: its units by name, and the samples they were read from.

    ``counter_names`` are those of samples that never fall within one life of the process.
    ``started_at`` and ``processes`` (process ids) tell lives apart, as far as they are exposed.
    """

    at: float
    units: Mapping[str, UnitState]
    samples: Samples
    counter_names: frozenset[str]
    started_at: float | None = None
    processes: frozenset[str] = frozenset()

    @property
    def counters(self) -> dict[SeriesKey, float]:
        """The counters by series."""
        keys, values = self.samples.table.keys, self.samples.values
        return {keys[i]: values[i] for i in self.samples.table.among(self.counter_names)}


class Fall(NamedTuple):
    """A counter that is lower than it was."""

    name: str
    before: float
    after: float


@dataclass(frozen=True, slots=True)
class Interval:
    """What lies between two scrapes of one process.

    ``state`` is the later one as the next interval has to begin with it: a unit whose steps could not
    be counted keeps the counts known last, so that the next that can be is taken from there.
    """

    state: EngineState
    windows: list[Window] = field(default_factory=list)
    prefills: list[PrefillWindow] = field(default_factory=list)


class Taken(NamedTuple):
    """What was taken out of an engine's queue: windows, samples to keep, and what is to be said of it."""

    windows: tuple[Window, ...]
    samples: tuple[Sample, ...] = ()
    notes: tuple[str, ...] = ()


class EngineMetrics(ABC):
    """The live metrics of one engine. One module of this package has one ``METRICS``.

    Attributes:
        engine, title: its key and its name.
        owner: who owns the models by its list of models; "" where that tells nothing.
        prefixes: how the names of its metrics begin.
        sample_names: the samples that are read, with their suffixes.
        own_labels: labels that it puts on its samples wherever it knows them; others that all samples have, a collector put there.
        metrics_path: where its metrics are. Other paths of an engine may do more than read.
        queue_path: where it gives out, once, what happened since it was last asked; "" where it does not.
        start_header: the header of its metrics that differs between processes, "" where there is none.
        info_paths: where it describes itself.
        metrics_hint: how to turn its metrics on.
        life_argument: the argument that differs between processes, "" where there is none.
        name_argument: the argument that holds the name by which the model is served.
        latency_names: histograms by the quantity they are of; those that count steps are none of tokens.
        telling_names: samples of which ``stated`` depends on whether they are above 0, besides which series there are.
    """

    engine: ClassVar[str]
    title: ClassVar[str]
    owner: ClassVar[str] = ""
    prefixes: ClassVar[tuple[str, ...]]
    sample_names: ClassVar[frozenset[str]]
    own_labels: ClassVar[frozenset[str]] = frozenset()
    metrics_path: ClassVar[str] = "/metrics"
    queue_path: ClassVar[str] = ""
    start_header: ClassVar[str] = ""
    info_paths: ClassVar[tuple[InfoPaths, ...]]
    metrics_hint: ClassVar[str]
    life_argument: ClassVar[str] = ""
    name_argument: ClassVar[str] = "served_model_name"
    latency_names: ClassVar[Mapping[str, str]] = {}
    telling_names: ClassVar[frozenset[str]] = frozenset()

    @abstractmethod
    def info(self, documents: Sequence[Document]) -> EngineInfo:
        """Read the answers of information endpoints; secrets are masked."""

    def stated(self, samples: Iterable[Sample], arguments: Arguments, source: str) -> Arguments:
        """What the samples themselves say about how the engine runs, beside ``arguments`` that are known."""
        del samples, arguments, source
        return Arguments()

    def taken(self, body: bytes, at: float) -> Taken:
        """Read what ``queue_path`` gave out.

        Raises:
            MalformedInput: it is none of what it should be.
        """
        raise NotImplementedError

    @abstractmethod
    def needs_info(self, state: EngineState, info: EngineInfo) -> bool:
        """Whether windows of this engine need the information endpoint at every scrape."""

    @abstractmethod
    def state(self, samples: Iterable[Sample], info: EngineInfo, at: float) -> EngineState:
        """Read the samples of one scrape, or those that an earlier state kept."""

    @abstractmethod
    def interval(self, before: EngineState | None, after: EngineState, info: EngineInfo) -> Interval:
        """What happened between two scrapes of one process, or since its start where there is none before."""


def falls(before: EngineState, after: EngineState) -> list[Fall]:
    """The counters that fell: the process is another one, or was made to forget."""
    table = before.samples.table
    if table is after.samples.table:
        was, now = before.samples.values, after.samples.values
        fallen = [i for i in table.among(before.counter_names) if now[i] < was[i]]
        return [Fall(table.series[i].name, was[i], now[i]) for i in fallen]
    later = after.counters
    return [
        Fall(series[0], value, later[series])
        for series, value in before.counters.items()
        if series in later and later[series] < value
    ]


def same_process(before: EngineState, after: EngineState) -> bool | None:
    """Whether both states are of one process, by its start or its process ids; ``None`` where neither tells."""
    if before.started_at is not None and after.started_at is not None:
        return abs(before.started_at - after.started_at) < SAME_START_SECONDS
    if before.processes and after.processes:
        return bool(before.processes & after.processes)
    return None


def another_process(before: EngineState, after: EngineState, *, lives: tuple[str, str], fallen: bool) -> bool:
    """Whether another process answers: by what tells lives apart, else by counters that fell.

    ``lives`` are what :class:`EngineInfo` said of both.
    """
    told = same_process(before, after)
    if told is not False and all(lives):
        told = lives[0] == lives[1]
    return fallen if told is None else not told
