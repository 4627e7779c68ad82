"""Scrapes that were kept in files: one tells of a process since its start, several of what lies between them.

A body says nothing about when it was scraped. The file's name may (``metrics-1795973721631.prom``);
where it does not, counts between two scrapes are known and their speed is not.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Final

from collector.domain.arguments import UNSEEN, Arguments, Value
from collector.domain.errors import MalformedInput, UnreadableInput
from collector.domain.evidence import Evidence
from collector.domain.results import Latency
from collector.domain.runs import Event
from collector.domain.series import SeriesSample
from collector.domain.windows import PrefillWindow, Window
from collector.metrics import engine_of, engines
from collector.metrics.base import EngineInfo, EngineMetrics, EngineState, Fall, falls, same_process
from collector.metrics.exposition import Sample, parse_exposition
from collector.metrics.histograms import latencies
from collector.sources.file import blocks

LARGEST: Final = 64 << 20
"""Bytes of one kept scrape; a busy engine's metrics are some hundred kB."""
BEFORE: Final = "before"
"""The word in a file's name that makes it the earlier of two."""
_INSTANT: Final = re.compile(r"(?<![\d.])([12]\d{9})(?:(\d{3})|(\.\d+))?(?!\d)")
"""Seconds or milliseconds since 1970, in a file's name."""


@dataclass(frozen=True, slots=True)
class Snapshot:
    """One kept scrape.

    ``at`` is the instant in the file's name; ``place`` where its line about acceptance begins, as byte
    and line.
    """

    path: Path
    source: str
    engine: EngineMetrics
    samples: tuple[Sample, ...]
    lines: int
    first: bool
    at: float | None
    place: tuple[int, int]


@dataclass(slots=True)
class Kept:
    """What the kept scrapes of one process tell.

    ``arguments`` are those that the metrics state, ``notes`` say what the windows are about.
    """

    engine: EngineMetrics
    source: str
    path: Path
    arguments: Arguments
    started_at: float | None
    ended_at: float | None
    windows: list[Window] = field(default_factory=list)
    prefills: list[PrefillWindow] = field(default_factory=list)
    latencies: dict[str, Latency] = field(default_factory=dict)
    series: list[SeriesSample] = field(default_factory=list)
    events: list[Event] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def completed(self, known: Arguments) -> Arguments:
        """Arguments with what the metrics state, where nothing better is known."""
        merged = dict(known.by_name)
        details = any(name.startswith("speculative_config.") and known[name].effective is not UNSEEN for name in known)
        for name, told in self.arguments.items():
            contradicted = name == "speculative_config" and details
            if known[name].effective is UNSEEN and not contradicted:
                merged[name] = replace(
                    known[name], effective=told.effective, effective_evidence=told.effective_evidence
                )
        return Arguments(merged)


def holds_metrics(head: bytes) -> bool:
    """Whether a file that begins like this is a scrape of a known engine."""
    return engine_of(head) is not None


def read_snapshot(path: Path, source: str, *, first: bool = False) -> Snapshot:
    """Read one kept scrape; ``first`` says that it is the earlier one.

    Raises:
        UnreadableInput: it cannot be opened, is too large, or holds no metrics of a known engine.
        MalformedInput: a line is none of the format, or the end is missing.
    """
    body = _bytes_of(path, source)
    at = _instant_of(path.name)
    first = first or BEFORE in path.name.lower()
    lines = body.count(b"\n")
    engine = engine_of(body)
    if engine is None:
        titles = ", ".join(item.title for item in engines())
        raise UnreadableInput(
            "these are not the metrics of an engine that is read",
            where=source,
            hint=f"metrics of {titles} are read; keep them with: curl -s http://HOST:PORT/metrics > metrics.prom",
        )
    samples = parse_exposition(body, wanted=engine.sample_names, source=source)
    if not samples:
        raise UnreadableInput(f"no metrics of {engine.title} that are read are in this file", where=source)
    return Snapshot(path, source, engine, tuple(samples), lines, first, at, _place(body, engine))


def read_together(snapshots: Sequence[Snapshot]) -> Kept:
    """What the scrapes of one process tell; at least one is given.

    Raises:
        MalformedInput: they are of different engines.
    """
    if len({snapshot.engine.engine for snapshot in snapshots}) > 1:
        raise MalformedInput(
            "metrics of different engines were given for one run",
            where=", ".join(snapshot.source for snapshot in snapshots),
            hint="give those of one process",
        )
    ordered = _in_order(snapshots)
    last = ordered[-1]
    engine = last.engine
    arguments = engine.stated(last.samples, Arguments(), last.source)
    info = EngineInfo(arguments=arguments)
    states = [engine.state(item.samples, info, at) for item, at in zip(ordered, _instants(ordered), strict=True)]
    kept = Kept(engine, last.source, last.path, arguments, states[-1].started_at, last.at)
    kept.series = [
        SeriesSample(sample.name, sample.labels, state.at, sample.value) for state in states for sample in state.samples
    ]
    _fill(kept, ordered, states, info)
    kept.windows = [
        window._replace(position=last.place[0], line=last.place[1]) if number == len(kept.windows) - 1 else window
        for number, window in enumerate(kept.windows)
    ]
    return kept


def _fill(kept: Kept, ordered: Sequence[Snapshot], states: Sequence[EngineState], info: EngineInfo) -> None:
    """Windows between scrapes of one process; after another began, or from one scrape alone, since its start."""
    begin = 0
    for number, (earlier, later) in enumerate(pairwise(states), 1):
        fallen = falls(earlier, later)
        same = same_process(earlier, later)
        if same is False or (same is None and fallen):
            names = f"{ordered[number - 1].source} and {ordered[number].source}"
            told = f" ({_told(fallen[0])})" if fallen else ""
            kept.notes.append(f"{names} are of different processes{told}: the later one alone is used")
            begin = number
        elif fallen:
            proof = Evidence(ordered[number].source, None, _told(fallen[0]))
            values: dict[str, Value] = {
                "metric": fallen[0].name, "before": fallen[0].before, "after": fallen[0].after
            }  # fmt: skip
            kept.events.append(Event("counter-reset", proof, later.at, values))
    first, *others = states[begin:]
    kept.latencies = latencies(kept.engine.latency_names, ordered[-1].samples, ordered[begin].samples if others else ())
    if not others:
        kept.notes.append("one scrape: everything since the start of the process")
        _add(kept, None, first, info)
        return
    kept.notes.append(f"the interval between {len(others) + 1} scrapes{_length(first, others[-1])}")
    for after in others:
        first = after if falls(first, after) else _add(kept, first, after, info)


def _add(kept: Kept, before: EngineState | None, after: EngineState, info: EngineInfo) -> EngineState:
    """Keep what lies between two states; gives the one from which the next goes on."""
    interval = kept.engine.interval(before, after, info)
    kept.windows += interval.windows
    kept.prefills += interval.prefills
    return interval.state


def _told(fall: Fall) -> str:
    return f"{fall.name} {fall.before:g}, then {fall.after:g}"


def _length(before: EngineState, after: EngineState) -> str:
    seconds = after.at - before.at
    return f", {seconds:.0f} s" if seconds > 0 else "; their names tell no time, so no speed is known"


# ---- order and time


def _in_order(snapshots: Sequence[Snapshot]) -> list[Snapshot]:
    """The earlier first: by the word in the name, by the instant in it, by how far the counters are."""
    timed = _are_timed(snapshots)

    def place(snapshot: Snapshot) -> tuple[bool, float]:
        if timed and snapshot.at is not None:
            return not snapshot.first, snapshot.at
        state = snapshot.engine.state(snapshot.samples, EngineInfo(), 0.0)
        return not snapshot.first, sum(state.counters.values())

    return sorted(snapshots, key=place)


def _instants(ordered: Sequence[Snapshot]) -> list[float]:
    """Seconds since 1970. Without names that tell them it is when the last file was written, for all: no clock ran."""
    if _are_timed(ordered):
        return [snapshot.at for snapshot in ordered if snapshot.at is not None]
    return [ordered[-1].at or ordered[-1].path.stat().st_mtime] * len(ordered)


def _are_timed(snapshots: Sequence[Snapshot]) -> bool:
    return None not in {snapshot.at for snapshot in snapshots} and len({s.at for s in snapshots}) == len(snapshots)


def _instant_of(name: str) -> float | None:
    """The instant in a file's name; ``None`` where there is none."""
    found = _INSTANT.search(name)
    if found is None:
        return None
    return float(found[1] + (found[3] or "")) + (int(found[2]) / 1000 if found[2] else 0.0)


# ---- bytes


def _bytes_of(path: Path, source: str) -> bytes:
    parts: list[bytes] = []
    size = 0
    for block in blocks(path):
        parts.append(block)
        size += len(block)
        if size > LARGEST:
            raise UnreadableInput(
                f"the file is larger than {LARGEST >> 20} MiB",
                why="no engine's metrics are",
                where=source,
                hint="give one scrape, not a history of them",
            )
    return b"".join(parts)


def _place(body: bytes, engine: EngineMetrics) -> tuple[int, int]:
    """Byte and line of the first sample about acceptance, else of the first one that is read."""
    best: tuple[int, int] | None = None
    position = 0
    for number, line in enumerate(body.split(b"\n"), 1):
        name = re.split(rb"[{ ]", line, maxsplit=1)[0].decode("utf-8", "replace")
        if name in engine.sample_names:
            if "accept" in name:
                return position, number
            best = best or (position, number)
        position += len(line) + 1
    return best or (0, 1)
