"""Step time from steady windows, and its check against the clock.

Which windows are steady (no prefill, idle time or change of batch inside their clock) is settled
before; here their figures become one.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from analysis.theory.intervals import mean_interval
from collector.domain.errors import ImpossibleFigure, InputError


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of one iteration: the median over windows, half the 95% interval of their mean, and their number."""

    seconds: float
    half: float
    windows: int


def step_time(running: ArrayLike, length: ArrayLike, throughput: ArrayLike) -> StepTime:
    """Median of ``b L / X`` over steady windows in time order.

    Raises:
        InputError: there is no window.
        ImpossibleFigure: a throughput is not above zero.
    """
    rates = np.asarray(throughput, dtype=float)
    if rates.size == 0:
        raise InputError("no steady window to take a step time from", hint="give a longer stretch of decoding")
    if not (rates > 0).all():
        raise ImpossibleFigure("a throughput that is not above zero", hint="leave out windows that generated nothing")
    times = np.asarray(running, dtype=float) * np.asarray(length, dtype=float) / rates
    return StepTime(float(np.median(times)), mean_interval(times)[1], int(times.size))


def clock_step_seconds(at: ArrayLike, steady: ArrayLike, iterations: int) -> float | None:
    """Step time by the instants of neighbouring lines, ``iterations`` apart: a check on the printed throughput.

    ``at`` holds the end of every window in time order, ``steady`` whether each is steady. Whole
    seconds are good enough, since the differences add up over a stretch. ``None`` without a pair.
    """
    instants, mask = np.asarray(at, dtype=float), np.asarray(steady, dtype=bool)
    differences = np.diff(instants)[mask[1:]]
    return float(differences.sum()) / (differences.size * iterations) if differences.size else None
