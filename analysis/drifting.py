"""Whether acceptance drifts away from what it was when the run was young: the detector over a run's windows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from analysis.figures import varying_rows
from analysis.theory.drift import DriftDetector, raised_threshold, request_equivalents
from analysis.view import RunView
from collector.domain.windows import Origin


@dataclass(frozen=True, slots=True)
class Drift:
    """Where the detector stands at the end of a run.

    Attributes:
        statistic: summed shortfall of acceptance beyond the allowance, in spreads of the baseline; 0 is none.
        threshold: the statistic above which the alarm begins; it ends when the statistic is back at 0.
        drifted: whether the alarm stands.
        onset: when the shortfall began, seconds since 1970; ``None`` where there is none.
    """

    statistic: float
    threshold: float
    drifted: bool
    onset: float | None


def acceptance_drift(view: RunView) -> Drift | None:
    """Drift of accepted tokens per verify step; ``None`` while the run is too young to know what is normal.

    Blocks are those of the windows that count, several units at one instant together.
    Source: theory section 4.6.
    """
    if not view.record.windows:
        return None
    frame = view.frame
    rows = varying_rows(frame) & frame["counted"].to_numpy(dtype=bool)
    rows &= ~np.isnan(frame["accepted_tokens"].to_numpy(dtype=float))
    if not rows.any():
        return None
    of_requests = frame["origin"].to_numpy()[rows][0] == Origin.REQUESTS
    _, block = np.unique(frame["block"].to_numpy()[rows], return_inverse=True)

    def summed(column: str) -> list[float]:
        sums: list[float] = np.bincount(block, np.nan_to_num(frame[column].to_numpy(dtype=float)[rows])).tolist()
        return sums

    ends = np.zeros(block.max() + 1)
    np.maximum.at(ends, block, frame["at"].to_numpy(dtype=float)[rows])
    detector = DriftDetector()
    columns = (summed(name) for name in ("accepted_tokens", "verify_steps", "running_requests"))
    for at, accepted, steps, running in zip(ends.tolist(), *columns, strict=True):
        requests, lifetimes = (1.0, 1.0) if of_requests else request_equivalents(steps, running, None)
        load = running or None
        detector.add(at, accepted, steps, requests=requests, lifetimes=lifetimes, load=load)
    if detector.baseline is None:
        return None
    threshold = raised_threshold(1, detector.settings, detector.baseline.allowance)
    onset = detector.onset if detector.statistic > 0 else None
    return Drift(detector.statistic, threshold, detector.drifted, onset)
