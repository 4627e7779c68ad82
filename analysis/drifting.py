"""Whether acceptance drifts away from what it was when the run was young."""

from __future__ import annotations

import numpy as np

from analysis.figures import varying_rows
from analysis.theory.drift import DriftDetector, request_equivalents
from analysis.view import RunView
from analysis.watching import Drift, drift_in, standing_of
from collector.domain.runs import Watched
from collector.domain.windows import Origin


def acceptance_drift(view: RunView, watched: Watched | None = None) -> Drift | None:
    """Drift of accepted tokens per verify step; ``None`` while the run is too young to know what is normal.

    Of a watched run it is where its detector stands, which took in every minute once. Of others it is that of all
    windows that count, several units at one instant together.
    Source: theory section 4.6.
    """
    if watched is not None and watched.state.get("origin") is not None:
        return drift_in(watched.state)
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
    latest = None
    columns = (summed(name) for name in ("accepted_tokens", "verify_steps", "running_requests"))
    for at, accepted, steps, running in zip(ends.tolist(), *columns, strict=True):
        requests, lifetimes = (1.0, 1.0) if of_requests else request_equivalents(steps, running, None)
        outcome = detector.add(at, accepted, steps, requests=requests, lifetimes=lifetimes)
        latest = latest if outcome is None else outcome.value
    return standing_of(detector, latest)
