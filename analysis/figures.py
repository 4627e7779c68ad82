"""The quantities of one run and of its units, pooled from windows by counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.drafting import Drafting
from analysis.theory.chain import implied_rate
from analysis.theory.intervals import CONSERVATIVE, Interval, mean_interval, window_interval
from analysis.theory.positions import conditional_from_prefix
from analysis.theory.steps import step_time
from collector.domain.errors import ImpossibleFigure
from collector.domain.quantities import Estimate
from collector.domain.windows import Origin, PrefillWindow

_BEST_FIRST = (Origin.REQUESTS, Origin.COUNTERS, Origin.LOG)


@dataclass(frozen=True, slots=True)
class Pooled:
    """Acceptance of a run or unit: counts pooled over windows, and the interval around them.

    ``tainted`` is set where every window would have been left out and all were used instead.
    ``prefix`` are the shares of steps that accepted at least i drafts, where the source counts them.
    """

    verify_steps: float
    accepted_tokens: float
    interval: Interval
    origin: Origin
    windows: int
    tainted: bool
    prefix: tuple[float, ...] = ()

    @property
    def accepted_per_step(self) -> float:
        """Accepted drafts per verify step."""
        return self.accepted_tokens / self.verify_steps

    @property
    def length(self) -> float:
        """Acceptance length, the target's own token included."""
        return 1 + self.accepted_per_step


def best_rows(frame: pd.DataFrame) -> pd.DataFrame:
    """The rows of the best source that counted steps; sources are never added up."""
    for origin in _BEST_FIRST:
        rows = frame[(frame["origin"] == origin) & (frame["verify_steps"] > 0)]
        if not rows.empty:
            return rows
    return frame.iloc[:0]


def pooled_acceptance(frame: pd.DataFrame, drafting: Drafting) -> Pooled | None:
    """Pool the windows that count; ``None`` where nothing was verified."""
    rows = best_rows(frame)
    rows = rows[rows["accepted_tokens"].notna()]
    if rows.empty:
        return None
    counted = rows[rows["counted"]]
    tainted = counted.empty
    if tainted:
        counted = rows
    blocks = counted.groupby("block", sort=True)[["accepted_tokens", "verify_steps", "running_requests"]].sum()
    steps = blocks["verify_steps"].to_numpy(dtype=float)
    accepted = blocks["accepted_tokens"].to_numpy(dtype=float)
    running = float(blocks["running_requests"].mean()) if blocks["running_requests"].gt(0).any() else 1.0
    interval = _interval(accepted, steps, drafting.depth, max(running, 1.0))
    return Pooled(
        verify_steps=float(steps.sum()),
        accepted_tokens=float(accepted.sum()),
        interval=interval,
        origin=counted["origin"].iloc[0],
        windows=len(blocks),
        tainted=tainted,
        prefix=_prefix(counted),
    )


def _interval(accepted: np.ndarray, steps: np.ndarray, depth: int | None, running: float) -> Interval:
    """The interval over blocks; without bounds where a figure is impossible, so that nothing is concluded from it."""
    try:
        return window_interval(accepted / steps, steps, depth=depth, running=running)
    except ImpossibleFigure as error:
        pooled = float(accepted.sum() / steps.sum())
        return Interval(pooled, math.inf, math.inf, CONSERVATIVE, len(steps), math.inf, error.what)


def _prefix(rows: pd.DataFrame) -> tuple[float, ...]:
    """P_1, P_2, ... over the rows that count positions."""
    counted = rows[rows["accepted_at"].notna()]
    steps = float(counted["verify_steps"].sum())
    if not steps:
        return ()
    lists = counted["accepted_at"].tolist()
    longest = max(map(len, lists))
    return tuple(sum(item[i] for item in lists if i < len(item)) / steps for i in range(longest))


def acceptance_quantities(pooled: Pooled, drafting: Drafting) -> dict[str, Estimate]:
    """Length, rates and counts as estimates; figures that the depth makes impossible are left out."""
    interval = pooled.interval
    figures = {
        "acceptance_length": _estimate(pooled, pooled.length, interval.length_low, interval.length_high),
        "accepted_per_step": _estimate(pooled, pooled.accepted_per_step, interval.low, interval.high),
        "verify_steps": Estimate(pooled.verify_steps),
        "accepted_tokens": Estimate(pooled.accepted_tokens),
    }
    if pooled.prefix:
        figures["acceptance_rate_at"] = Estimate(list(pooled.prefix), verify_steps=pooled.verify_steps)
        conditional = list(conditional_from_prefix(pooled.prefix))
        figures["conditional_acceptance_rate_at"] = Estimate(conditional, verify_steps=pooled.verify_steps)
    if drafting.depth is not None and drafting.depth > 0:
        figures |= _conditional(pooled, drafting.depth, assumed=drafting.assumed)
    if drafting.width is not None and drafting.width > 1:
        slots = drafting.width - 1
        figures["draft_acceptance_rate"] = _estimate(
            pooled,
            pooled.accepted_per_step / slots,
            interval.low / slots,
            interval.high / slots,
            assumed=drafting.assumed,
        )
        figures["drafted_tokens"] = Estimate(pooled.verify_steps * slots, assumed=drafting.assumed)
    return figures


def _estimate(pooled: Pooled, value: float, low: float, high: float, *, assumed: bool = False) -> Estimate:
    """A figure with the interval and basis of the pooled acceptance."""
    interval = pooled.interval
    return Estimate(
        value,
        low,
        high,
        interval.method,
        pooled.windows,
        pooled.verify_steps,
        assumed=assumed,
        note=interval.approximate,
    )


def _conditional(pooled: Pooled, depth: int, *, assumed: bool) -> dict[str, Estimate]:
    try:
        rate = implied_rate(pooled.length, depth)
    except ImpossibleFigure:
        return {}
    top = depth + 1.0
    low = implied_rate(min(max(pooled.interval.length_low, 1.0), top), depth)
    high = implied_rate(min(max(pooled.interval.length_high, 1.0), top), depth)
    return {"conditional_acceptance_rate": _estimate(pooled, rate, low, high, assumed=assumed)}


def configuration_quantities(drafting: Drafting) -> dict[str, Estimate]:
    """Depth, width and the largest possible length."""
    figures: dict[str, Estimate] = {}
    if drafting.depth is not None:
        figures["draft_depth"] = Estimate(drafting.depth, assumed=drafting.assumed, note=drafting.note)
        figures["max_acceptance_length"] = Estimate(drafting.depth + 1, assumed=drafting.assumed, note=drafting.note)
    if drafting.width is not None:
        figures["verify_width"] = Estimate(drafting.width, assumed=drafting.assumed, note=drafting.note)
    return figures


def _steady(frame: pd.DataFrame) -> pd.DataFrame:
    """Steady rows, else counted ones, else all that have a throughput."""
    timed = frame[frame["generation_throughput"].gt(0) & (frame["running_requests"] != 0)]
    for mark in ("steady", "counted"):
        rows = timed[timed[mark]]
        if not rows.empty:
            return rows
    return timed


def load_quantities(frame: pd.DataFrame) -> dict[str, Estimate]:
    """Throughput, step time and load over steady windows; throughput is summed over units."""
    timed = frame[frame["generation_throughput"].gt(0)]
    if timed.empty:
        return {}
    origin = next(
        origin for origin in (Origin.COUNTERS, Origin.LOG, Origin.REQUESTS) if (timed["origin"] == origin).any()
    )
    rate = variance = running = waiting = 0.0
    windows = 0
    steady_rows: list[pd.DataFrame] = []
    for _, rows in timed[timed["origin"] == origin].groupby("unit", sort=False):
        steady = _steady(rows)
        windows = max(windows, len(steady))
        mean, half = _throughput(steady)
        rate, variance = rate + mean, variance + half**2
        running += float(steady["running_requests"].mean())
        waiting += float(steady["waiting_requests"].fillna(0).mean())
        steady_rows.append(steady)
    half = math.sqrt(variance)
    known = math.isfinite(half)
    figures = {
        "generation_throughput": Estimate(
            rate, rate - half if known else None, rate + half if known else None, windows=windows
        ),
        "running_requests": Estimate(running, windows=windows),
        "waiting_requests": Estimate(waiting, windows=windows),
    }
    timed = pd.concat(steady_rows)
    timed = timed[timed["running_requests"].gt(0)]
    if not timed.empty:
        time = step_time(
            timed["running_requests"], timed["acceptance_length"].fillna(1.0), timed["generation_throughput"]
        )
        figures["step_seconds"] = Estimate(
            time.seconds, max(0.0, time.seconds - time.half), time.seconds + time.half, windows=windows
        )
    usage = frame["kv_cache_usage"].dropna()
    if not usage.empty:
        figures["kv_cache_usage"] = Estimate(float(usage.mean()), windows=len(usage))
    return figures


def prompt_quantities(prefills: Sequence[PrefillWindow]) -> dict[str, Estimate]:
    """The share of prompt tokens found in the cache, over all prefill batches."""
    cached = sum(item.cached_tokens for item in prefills)
    total = cached + sum(item.new_tokens for item in prefills)
    return {"cached_token_share": Estimate(cached / total, windows=len(prefills))} if total else {}


def _throughput(rows: pd.DataFrame) -> tuple[float, float]:
    """Tokens over seconds where both are known, else the mean of what was printed; and the half width around it."""
    timed = rows[rows["generated_tokens"].gt(0) & rows["seconds"].gt(0)]
    if timed.empty:
        return mean_interval(rows["generation_throughput"])
    return mean_interval(timed["generated_tokens"] / timed["seconds"], timed["seconds"])
