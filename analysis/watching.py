"""Detectors over what is watched: each takes in minutes as they close, and its state is kept in between.

A state is a document of plain values that the database keeps, so that judging goes on after a restart where it
ended, and takes as long on the thirtieth day as on the first, whatever became of older windows. A detector
learns what is normal from the first minutes of a run; of a fleet, from the runs that are alive then, and anew
once none of those is left.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import groupby
from typing import Any, Final, NamedTuple

from analysis.theory.drift import DriftDetector, raised_threshold, request_equivalents
from analysis.theory.intervals import Interval, window_interval
from analysis.theory.replicas import ReplicaFigures, ReplicaVerdict, compare_replicas
from analysis.theory.settings import DEFAULTS
from collector.domain.errors import DraftscopeError, MalformedInput
from collector.domain.runs import Watched
from collector.domain.windows import Origin, Window

MINUTE: Final = 60
RECENT_SECONDS: Final = 1800
"""The stretch of time that runs of a fleet are compared over."""
_BEST_FIRST: Final = (Origin.COUNTERS, Origin.GAUGES)
_FORM: Final = 1


class Minute(NamedTuple):
    """What was verified in one minute: its end, accepted drafts, verify steps, requests running on average."""

    at: float
    accepted: float
    steps: float
    running: float
    origin: Origin


@dataclass(frozen=True, slots=True)
class Drift:
    """Where a detector stands.

    Attributes:
        statistic: summed shortfall of acceptance beyond the allowance, in spreads of the baseline; 0 is none.
        threshold: the statistic above which the alarm begins; it ends when the statistic is back at 0.
        drifted: whether the alarm stands.
        onset: when the shortfall began, seconds since 1970; ``None`` where there is none.
        normal: accepted drafts per step that were learnt as normal.
        latest: the same in the last block; ``None`` where none was finished since.
    """

    statistic: float
    threshold: float
    drifted: bool
    onset: float | None
    normal: float
    latest: float | None = None


def minutes_of(windows: Iterable[Window]) -> list[Minute]:
    """Windows that were added up by minute, in order of time, as minutes; those of the best source of each alone.

    Stretches whose beginning is not known, as from the start of a process to the first scrape, are left out.
    """
    found: list[Minute] = []
    for _, group in groupby(windows, key=lambda window: window.at // MINUTE):
        known = [window for window in group if window.verify_steps and window.accepted_tokens is not None]
        for origin in _BEST_FIRST:
            rows = [window for window in known if window.origin is origin and window.seconds]
            if rows:
                found.append(_added_up(rows, origin))
                break
    return found


def _added_up(rows: Sequence[Window], origin: Origin) -> Minute:
    by_unit: dict[str, float] = {}
    for row in rows:
        by_unit[row.unit] = by_unit.get(row.unit, 0.0) + (row.seconds or 0.0)
    covered = MINUTE if "" in by_unit else max(MINUTE, *by_unit.values())  # runs of a fleet stand side by side
    running = math.fsum((row.running_requests or 0.0) * (row.seconds or 0.0) for row in rows) / covered
    accepted = math.fsum(row.accepted_tokens or 0.0 for row in rows)
    return Minute(
        max(row.at for row in rows), accepted, math.fsum(row.verify_steps or 0.0 for row in rows), running, origin
    )


# ---- drift


def taken_in(state: Mapping[str, Any] | None, minutes: Sequence[Minute], *, series: int = 1) -> dict[str, Any]:
    """A state after some more minutes; ``None`` is a detector that knows nothing yet.

    ``series`` is how many runs are watched together: the more, the higher the threshold. A better source of
    figures than before is learnt anew, a worse one is left out, and so is a state that cannot be read.
    """
    detector, origin, latest = _resumed(state)
    detector.series = series
    for minute in minutes:
        if origin is not None and minute.origin is not origin:
            if _BEST_FIRST.index(minute.origin) > _BEST_FIRST.index(origin):
                continue
            detector.rebaseline()
        origin = minute.origin
        requests, lifetimes = request_equivalents(minute.steps, minute.running, None)
        outcome = detector.add(minute.at, minute.accepted, minute.steps, requests=requests, lifetimes=lifetimes)
        if outcome is not None:
            latest = outcome.value
    return {
        **(state or {}), "form": _FORM, "detector": detector.state(), "latest": latest,
        "origin": None if origin is None else origin.value,
    }  # fmt: skip


def drift_in(state: Mapping[str, Any]) -> Drift | None:
    """Where the detector of a state stands; ``None`` while it has not learnt what is normal."""
    detector, _, latest = _resumed(state)
    return standing_of(detector, latest)


def standing_of(detector: DriftDetector, latest: float | None) -> Drift | None:
    """Where a detector stands; ``None`` while it has not learnt what is normal."""
    baseline = detector.baseline
    if baseline is None:
        return None
    threshold = raised_threshold(detector.series, detector.settings, baseline.allowance)
    onset = detector.onset if detector.statistic > 0 else None
    return Drift(detector.statistic, threshold, detector.drifted, onset, baseline.mean, latest)


def with_members(state: Mapping[str, Any] | None, alive: Collection[int]) -> dict[str, Any] | None:
    """The state of a fleet whose runs of now are known: learnt anew where none of those it was learnt from is left."""
    if state is None or not alive:
        return None if state is None else dict(state)
    learnt_from = state.get("members")
    if learnt_from and not set(learnt_from) & set(alive):
        return {"members": sorted(alive)}
    return {**state, "members": learnt_from or sorted(alive)}


def _resumed(state: Mapping[str, Any] | None) -> tuple[DriftDetector, Origin | None, float | None]:
    if state is None or state.get("form") != _FORM:
        return DriftDetector(), None, None
    try:
        origin = None if state["origin"] is None else Origin(state["origin"])
        return DriftDetector.from_state(state["detector"]), origin, state["latest"]
    except (MalformedInput, KeyError, ValueError):
        return DriftDetector(), None, None


# ---- runs of a fleet


def acceptance_of_late(minutes: Sequence[Minute], alike: Sequence[Any] = ()) -> dict[str, Any]:
    """Acceptance over some minutes as a document; empty where nothing was verified.

    ``alike`` is what runs have to share to be compared: models, method, depth.
    """
    if not minutes:
        return {}
    steps = [minute.steps for minute in minutes]
    running = math.fsum(minute.running for minute in minutes) / len(minutes)
    try:
        interval = window_interval([minute.accepted / minute.steps for minute in minutes], steps, None, running)
    except DraftscopeError:  # impossible figures, which rules tell of
        return {}
    if interval.half == math.inf:
        return {}
    freedom = interval.degrees_of_freedom
    return {
        **asdict(interval), "degrees_of_freedom": None if freedom == math.inf else freedom, "steps": math.fsum(steps),
        "alike": list(alike),
    }  # fmt: skip


def among_siblings(watched: Watched) -> ReplicaVerdict | None:
    """How a run stands to those of its fleet that draft as it does; ``None`` where there is nobody to compare with.

    A run that was behind stays so until it is back within the margin, so that the verdict does not flap.
    """
    kind = tuple(watched.recent[watched.place].get("alike", ()))
    verdict = next((one for one in _compared(watched, kind) if one.unit == watched.place), None)
    if verdict is None:
        return None
    still = bool(watched.state.get("behind")) and verdict.share < DEFAULTS.replica_margin
    return ReplicaVerdict(
        verdict.unit, verdict.accepted_per_step, verdict.siblings, verdict.share, verdict.p_value,
        outlier=verdict.outlier or still,
    )  # fmt: skip


def outliers_of(watched: Watched) -> list[str]:
    """The runs of a fleet, by place, that are far below those that draft as they do."""
    kinds = {tuple(one.get("alike", ())) for one in watched.recent.values()}
    return sorted(one.unit for kind in kinds for one in _compared(watched, kind) if one.outlier)


def _compared(watched: Watched, kind: tuple[Any, ...]) -> tuple[ReplicaVerdict, ...]:
    """The runs of a fleet that draft like this, each against the others."""
    figures = {
        place: found
        for place, one in watched.recent.items()
        if tuple(one.get("alike", ())) == kind and (found := _figures(one)) is not None
    }
    return compare_replicas(figures)


def _figures(document: Mapping[str, Any]) -> ReplicaFigures | None:
    known = {item.name for item in fields(Interval)}
    if not known <= document.keys():
        return None
    given = {name: document[name] for name in known}
    if given["degrees_of_freedom"] is None:
        given["degrees_of_freedom"] = math.inf
    return ReplicaFigures(Interval(**given), float(document["steps"]))
