"""A run: one life of one engine process, with everything that was read about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from collector.domain.arguments import Arguments, LaunchCommand, Value
from collector.domain.drafts import ModelConfig, Validation
from collector.domain.evidence import Evidence
from collector.domain.requests import RequestResult
from collector.domain.results import BenchmarkRow, Latency
from collector.domain.series import SeriesSample
from collector.domain.versions import Release, ReleaseRange
from collector.domain.windows import PrefillWindow, Window


class Role(StrEnum):
    """What a run is to the question at hand."""

    SUBJECT = "subject"
    PREVIOUS = "previous"
    BASELINE = "baseline"


@dataclass(frozen=True, slots=True)
class Event:
    """A line that says something about the run as a whole.

    ``kind`` is a stable word (``announcement``, ``weights-loaded``, ``crashed``, ``refused``,
    ``shutdown``, ``retracted``, ...), ``values`` what the line states under our own names.
    """

    kind: str
    evidence: Evidence
    at: float | None = None
    values: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class UnreadShape:
    """Lines that were not understood, by their shape: digits and quoted parts taken out."""

    shape: str
    count: int
    example: Evidence


@dataclass(slots=True)
class Reading:
    """What was made of one source.

    ``lines`` counts all, ``engine_lines`` those that bear the engine's mark, ``understood`` all
    lines whose meaning is known (noise included), ``unread`` engine lines without one.
    ``torn_samples`` are lines that begin like a sample line and cannot be read;
    ``oversize_lines`` were longer than the cap and dropped.
    """

    source: str
    role: str = ""
    kind: str = ""
    lines: int = 0
    engine_lines: int = 0
    understood: int = 0
    unread: int = 0
    torn_samples: int = 0
    oversize_lines: int = 0
    unread_shapes: tuple[UnreadShape, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(slots=True)
class RunRecord:
    """One life of one engine process.

    ``arguments`` hold what was asked (launch command) and what the engine said it runs with;
    predictions are added by the analysis. ``engine_version`` is what the inputs state,
    ``release_range`` what the form of the lines allows. ``line_text`` gives the redacted text at a
    window's position while its source is at hand. ``device`` is the accelerator by its common name
    (``h100``), where the user said which. ``latencies`` are those of the engine's own histograms, by quantity.
    ``requests`` are request results, each response once; ``requests_asked`` says that the run is to be judged by
    them however few they are.
    """

    engine: str
    source: str
    engine_version: Release | None = None
    release_range: ReleaseRange = field(default_factory=ReleaseRange)
    started_at: float | None = None
    ended_at: float | None = None
    host: str = ""
    port: int | None = None
    arguments: Arguments = field(default_factory=Arguments)
    launch: LaunchCommand | None = None
    events: list[Event] = field(default_factory=list)
    windows: list[Window] = field(default_factory=list)
    prefills: list[PrefillWindow] = field(default_factory=list)
    results: list[BenchmarkRow] = field(default_factory=list)
    requests: list[RequestResult] = field(default_factory=list)
    requests_asked: bool = False
    latencies: Mapping[str, Latency] = field(default_factory=dict)
    draft_config: ModelConfig | None = None
    target_config: ModelConfig | None = None
    validation: Validation | None = None
    temperature: float | None = None
    device: str | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    line_text: Callable[[int], str | None] | None = field(default=None, compare=False, repr=False)

    def events_of(self, kind: str) -> list[Event]:
        """The events of one kind, in the order they were read."""
        return [event for event in self.events if event.kind == kind]


@dataclass(frozen=True, slots=True)
class Beside:
    """What a source beside the log tells of a run; windows, prefill batches and events are among the run's own.

    ``path`` is where it lies, ``series`` are samples that no window holds, ``requests`` request results.
    """

    path: str
    windows: Sequence[Window] = ()
    prefills: Sequence[PrefillWindow] = ()
    events: Sequence[Event] = ()
    series: Sequence[SeriesSample] = ()
    requests: Sequence[RequestResult] = ()


@dataclass(frozen=True, slots=True)
class Watched:
    """What is kept of a watched run beside its windows: where its detectors stand, and those of its fleet.

    Documents are those that :mod:`analysis.watching` made.

    Attributes:
        place: where the run stands among ``recent``.
        state: of its own detectors.
        recent: acceptance of late of each run of its fleet that is alive, its own included, by place.
        fleet: the fleet's name. fleet_state: of all its runs together.
        leads: whether this run tells what is found of the fleet as a whole.
    """

    place: str
    state: Mapping[str, Any]
    recent: Mapping[str, Mapping[str, Any]]
    fleet: str
    fleet_state: Mapping[str, Any]
    leads: bool


@dataclass(slots=True)
class Bundle:
    """Everything that was given about one question: the judged run and those it is compared with.

    ``beside`` says which of a run's windows come from sources beside its log; ``watched`` is ``None`` for a run
    that is not watched.
    """

    subject: RunRecord
    previous: RunRecord | None = None
    baseline: RunRecord | None = None
    readings: list[Reading] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    beside: dict[Role, list[Beside]] = field(default_factory=dict)
    watched: Watched | None = None
