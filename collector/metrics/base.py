"""What the live metrics of an engine are: its names turned into our quantities, scrape by scrape.

An engine's counters run from the start of its process. The difference of two scrapes is a window;
the first scrape of a process is one as well, from the start of the process, without a clock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Final, NamedTuple, TypeAlias

from collector.domain.arguments import Arguments, LaunchCommand
from collector.domain.versions import Release
from collector.domain.windows import PrefillWindow, Window
from collector.metrics.exposition import Sample

SAME_START_SECONDS: Final = 1.0
"""Two readings of one process's start differ by less."""

SeriesKey: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
"""What makes a series: its name and its labels in order."""


def series_key(sample: Sample) -> SeriesKey:
    """The series of a sample."""
    return sample.name, tuple(sorted(sample.labels.items()))


class UnitState(NamedTuple):
    """One unit at one instant. Counters run from the start of the process; ``None`` means: not exposed.

    Fields:
        generated_tokens, target_passes, graphless_passes: counters of decoding: tokens, passes of the target, those
            of them that ran without a captured graph.
        prompts, computed_tokens, cached_tokens: counters of prefill: prompts, and their tokens computed or found in
            the cache.
        verify_steps, accepted_tokens: counters, where the engine counts them or tells what they must be.
        running_requests, waiting_requests, tokens_in_use, kv_cache_usage, generation_throughput: gauges as last set.
        graph: gauge: 1 where the last decode step ran from a captured graph.
        printed_length, printed_rate: gauges of acceptance, in the engine's own definition.
        mean_length: the acceptance length since the start of the process that gave these two back.
    """

    generated_tokens: float | None = None
    target_passes: float | None = None
    graphless_passes: float | None = None
    prompts: float | None = None
    computed_tokens: float | None = None
    cached_tokens: float | None = None
    verify_steps: float | None = None
    accepted_tokens: float | None = None
    running_requests: float | None = None
    waiting_requests: float | None = None
    tokens_in_use: float | None = None
    kv_cache_usage: float | None = None
    generation_throughput: float | None = None
    graph: float | None = None
    printed_length: float | None = None
    printed_rate: float | None = None
    mean_length: float | None = None


@dataclass(frozen=True, slots=True)
class EngineInfo:
    """What an engine's information endpoint says about the process.

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

    ``counters`` are the samples that never fall within one life of the process, by series.
    ``started_at`` and ``processes`` (process ids) tell lives apart, as far as they are exposed.
    """

    at: float
    units: Mapping[str, UnitState]
    samples: tuple[Sample, ...]
    counters: Mapping[SeriesKey, float]
    started_at: float | None = None
    processes: frozenset[str] = frozenset()


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


class EngineMetrics(ABC):
    """The live metrics of one engine. One module of this package has one ``METRICS``.

    Attributes:
        engine, title: its key and its name.
        prefixes: how the names of its metrics begin.
        sample_names: the samples that are read, with their suffixes.
        info_paths: where it describes itself, the newest path first.
        metrics_hint: how to turn its metrics on.
        life_argument: the argument that differs between processes, "" where there is none.
    """

    engine: ClassVar[str]
    title: ClassVar[str]
    prefixes: ClassVar[tuple[str, ...]]
    sample_names: ClassVar[frozenset[str]]
    info_paths: ClassVar[tuple[str, ...]]
    metrics_hint: ClassVar[str]
    life_argument: ClassVar[str] = ""

    @abstractmethod
    def info(self, document: Mapping[str, object], source: str) -> EngineInfo:
        """Read the answer of an information endpoint; secrets are masked."""

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
    return [
        Fall(series[0], value, after.counters[series])
        for series, value in before.counters.items()
        if series in after.counters and after.counters[series] < value
    ]


def same_process(before: EngineState, after: EngineState) -> bool | None:
    """Whether both states are of one process, by its start or its process ids; ``None`` where neither tells."""
    if before.started_at is not None and after.started_at is not None:
        return abs(before.started_at - after.started_at) < SAME_START_SECONDS
    if before.processes and after.processes:
        return bool(before.processes & after.processes)
    return None
