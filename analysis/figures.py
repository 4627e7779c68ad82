"""The quantities of one run and of its units, pooled from windows by counts."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from analysis.drafting import Drafting
from analysis.frame import SCRAPED, SLOT
from analysis.theory.chain import implied_rate
from analysis.theory.intervals import (
    CONSERVATIVE,
    Interval,
    lifetime_in_windows,
    mean_interval,
    request_interval,
    window_interval,
)
from analysis.theory.positions import conditional_from_prefix
from analysis.theory.settings import DEFAULTS
from analysis.theory.steps import step_time
from collector.domain.errors import ImpossibleFigure
from collector.domain.quantities import Estimate
from collector.domain.requests import RequestResult
from collector.domain.windows import Origin, PrefillWindow

_BEST_FIRST = tuple(Origin)
_FEW_REQUESTS = (
    f"fewer than {DEFAULTS.minimum_requests} requests, so a wide interval with an assumed spread stands in for theirs"
)
_LOAD_BEST_FIRST = (SCRAPED, frozenset({Origin.LOG}), frozenset({Origin.REQUESTS}))
"""Throughput of scraped windows is counted, whatever told their acceptance."""


@dataclass(frozen=True, slots=True)
class Pooled:
    """Acceptance of a run or unit: counts pooled over windows, and the interval around them.

    ``tainted`` is set where every window would have been left out and all were used instead.
    ``drafted_tokens`` are counted ones, ``None`` where the source does not count them; ``windows``
    stand behind the interval, and are requests for request-level counts. ``prefix`` are the shares of steps that accepted at
    least i drafts, where the source counts them. ``most`` are the drafts that a step can accept, infinite where that is not known.
    """

    verify_steps: float
    accepted_tokens: float
    interval: Interval
    origin: Origin
    windows: int
    tainted: bool
    drafted_tokens: float | None = None
    prefix: tuple[float, ...] = ()
    most: float = math.inf

    @property
    def accepted_per_step(self) -> float:
        """Accepted drafts per verify step."""
        return self.accepted_tokens / self.verify_steps

    @property
    def length(self) -> float:
        """Acceptance length, the target's own token included."""
        return 1 + self.accepted_per_step

    @property
    def ends(self) -> tuple[float, float]:
        """Both ends of the interval, accepted per step: not beyond what a step can accept, unless the figure itself is."""
        interval = self.interval
        possible = math.isfinite(interval.high) and self.accepted_per_step <= self.most
        return interval.low, min(interval.high, self.most) if possible else interval.high

    @property
    def length_ends(self) -> tuple[float, float]:
        """Both ends of the interval of the acceptance length."""
        low, high = self.ends
        return 1 + low, 1 + high

    @property
    def each(self) -> str:
        """What stands behind the interval: ``request`` or ``window``."""
        return "request" if self.origin is Origin.REQUESTS else "window"


def best_origin(frame: pd.DataFrame) -> np.ndarray:
    """Which rows come from the best source that counted steps; sources are never added up. Shape (n,), bool."""
    verified = frame["verify_steps"].to_numpy(dtype=float) > 0
    origins = frame["origin"].to_numpy()
    for origin in _BEST_FIRST:
        rows: np.ndarray = verified & (origins == origin)
        if rows.any():
            return rows
    return np.zeros(len(frame), dtype=bool)


def varying_rows(frame: pd.DataFrame) -> np.ndarray:
    """Which rows show how acceptance varies. Shape (n,), bool.

    One scrape since the start counts everything and shows no variation; a log of the same run does. So
    these are the rows of the best source with enough windows, else of the one with the most.
    """
    verified = frame["verify_steps"].to_numpy(dtype=float) > 0
    counted = frame["counted"].to_numpy(dtype=bool)
    origins, blocks = frame["origin"].to_numpy(), frame["block"].to_numpy()
    most, chosen = 0, best_origin(frame)
    for origin in _BEST_FIRST:
        rows: np.ndarray = verified & (origins == origin)
        windows = len(np.unique(blocks[rows & counted]))
        if windows >= DEFAULTS.minimum_windows:
            return rows
        if windows > most:
            most, chosen = windows, rows
    return chosen


def pooled_acceptance(frame: pd.DataFrame, drafting: Drafting, where: np.ndarray | None = None) -> Pooled | None:
    """Pool the windows that count, of all rows or of those in ``where``; ``None`` where nothing was verified.

    The counts are those of the best source; where another source shows better how they vary, the
    width of the interval is taken from there.
    """
    accepted = frame["accepted_tokens"].to_numpy(dtype=float)
    allowed = ~np.isnan(accepted) if where is None else where & ~np.isnan(accepted)
    counted, tainted = _standing(frame, best_origin(frame) & allowed)
    if not counted.any():
        return None
    spread = _Blocks.of(frame, counted)
    interval = spread.interval(drafting.depth)
    varying, _ = _standing(frame, varying_rows(frame) & allowed)
    if varying.any() and (varying != counted).any():
        spread = _Blocks.of(frame, varying)
        interval = replace(spread.interval(drafting.depth), accepted_per_step=interval.accepted_per_step)
    steps, drafted = (frame[name].to_numpy(dtype=float)[counted] for name in ("verify_steps", "drafted_tokens"))
    return Pooled(
        verify_steps=float(steps.sum()),
        accepted_tokens=float(accepted[counted].sum()),
        drafted_tokens=None if np.isnan(drafted).any() else float(drafted.sum()),
        interval=interval,
        origin=Origin(frame["origin"].to_numpy()[counted][0]),
        windows=len(spread.steps),
        tainted=tainted,
        prefix=_prefix(frame, counted),
        most=_most_of(drafting),
    )


def pooled_requests(results: Sequence[RequestResult], drafting: Drafting) -> Pooled | None:
    """Pool the requests that count verify steps; ``None`` where none does."""
    counted = [result for result in results if result.counted]
    if not counted:
        return None
    steps, accepted = (
        np.array([getattr(result, name) for result in counted], dtype=float)
        for name in ("verify_steps", "accepted_tokens")
    )
    drafted = [result.drafted_tokens for result in counted if result.drafted_tokens is not None]
    histograms = [result.histogram for result in counted if result.histogram is not None]
    return Pooled(
        verify_steps=float(steps.sum()),
        accepted_tokens=float(accepted.sum()),
        drafted_tokens=float(sum(drafted)) if len(drafted) == len(counted) else None,
        interval=_Blocks(Origin.REQUESTS, accepted, steps, 1.0, 0.0).interval(drafting.depth),
        origin=Origin.REQUESTS,
        windows=len(counted),
        tainted=False,
        prefix=_prefix_of(histograms) if len(histograms) == len(counted) else (),
        most=_most_of(drafting),
    )


def _most_of(drafting: Drafting) -> float:
    return math.inf if drafting.depth is None or drafting.assumed else float(drafting.depth)


def _prefix_of(histograms: Sequence[tuple[int, ...]]) -> tuple[float, ...]:
    """P_1, P_2, ... from how many steps accepted 0, 1, 2, ... tokens."""
    counts = np.zeros(max(map(len, histograms)))
    for histogram in histograms:
        counts[: len(histogram)] += histogram
    at_least = counts[::-1].cumsum()[::-1]
    return tuple((at_least[1:] / at_least[0]).tolist())


def _standing(frame: pd.DataFrame, rows: np.ndarray) -> tuple[np.ndarray, bool]:
    """The rows that count, all of them where none does; and whether that is so."""
    counted = rows & frame["counted"].to_numpy(dtype=bool)
    return (counted, False) if counted.any() else (rows, True)


@dataclass(frozen=True, slots=True)
class _Blocks:
    """Windows put together by instant: accepted drafts and verify steps of each, shape (n,); load and new requests."""

    origin: Origin
    accepted: np.ndarray
    steps: np.ndarray
    running: float
    new_requests: float

    @classmethod
    def of(cls, frame: pd.DataFrame, rows: np.ndarray) -> _Blocks:
        """The blocks of some rows of one origin."""
        _, block = np.unique(frame["block"].to_numpy()[rows], return_inverse=True)
        running = np.bincount(block, np.nan_to_num(frame["running_requests"].to_numpy(dtype=float)[rows])).mean()
        return cls(
            Origin(frame["origin"].to_numpy()[rows][0]),
            np.bincount(block, frame["accepted_tokens"].to_numpy(dtype=float)[rows]),
            np.bincount(block, frame["verify_steps"].to_numpy(dtype=float)[rows]),
            max(float(running), 1.0),
            float(frame["prefills"].to_numpy(dtype=float)[rows].sum()),
        )

    def interval(self, depth: int | None) -> Interval:
        """The interval over requests or blocks; without bounds where a figure is impossible, so that nothing follows from it."""
        accepted, steps, size = self.accepted, self.steps, len(self.steps)
        of_requests = self.origin is Origin.REQUESTS
        try:
            if of_requests and size >= DEFAULTS.minimum_requests:
                return request_interval(accepted, steps)
            lifetime = 0.0 if of_requests else lifetime_in_windows(size, self.running, self.new_requests)
            running = size if of_requests else self.running
            found = window_interval(
                accepted / steps, steps, depth=depth, running=running, request_lifetime_windows=lifetime
            )
            return replace(found, approximate=_FEW_REQUESTS) if of_requests else found
        except ImpossibleFigure as error:
            pooled = float(accepted.sum() / steps.sum())
            return Interval(pooled, math.inf, math.inf, CONSERVATIVE, size, math.inf, error.what)


def _prefix(frame: pd.DataFrame, counted: np.ndarray) -> tuple[float, ...]:
    """P_1, P_2, ... over the rows that count positions."""
    stated = counted & frame["accepted_at"].notna().to_numpy()
    if not stated.any():
        return ()
    steps = float(frame["verify_steps"].to_numpy(dtype=float)[stated].sum())
    lists = frame["accepted_at"].to_numpy()[stated].tolist()
    longest = max(map(len, lists))
    return tuple(sum(item[i] for item in lists if i < len(item)) / steps for i in range(longest))


def acceptance_quantities(pooled: Pooled, drafting: Drafting) -> dict[str, Estimate]:
    """Length, rates and counts as estimates; figures that the depth makes impossible are left out."""
    low, high = pooled.ends
    figures = {
        "acceptance_length": _estimate(pooled, pooled.length, *pooled.length_ends),
        "accepted_per_step": _estimate(pooled, pooled.accepted_per_step, low, high),
        "verify_steps": Estimate(pooled.verify_steps),
        "accepted_tokens": Estimate(pooled.accepted_tokens),
    }
    if pooled.prefix:
        figures["acceptance_rate_at"] = Estimate(list(pooled.prefix), verify_steps=pooled.verify_steps)
        conditional = list(conditional_from_prefix(pooled.prefix))
        figures["conditional_acceptance_rate_at"] = Estimate(conditional, verify_steps=pooled.verify_steps)
    if drafting.depth is not None and drafting.depth > 0:
        figures |= _conditional(pooled, drafting.depth, assumed=drafting.assumed)
    slots = drafting.width - 1 if drafting.width is not None else None
    drafted = pooled.drafted_tokens
    if drafted is None and slots:
        drafted = pooled.verify_steps * slots
    if drafted:
        per_step = drafted / pooled.verify_steps
        share = pooled.accepted_per_step / per_step
        figures["draft_acceptance_rate"] = _estimate(
            pooled,
            share,
            low / per_step,
            min(1.0, high / per_step) if share <= 1 and math.isfinite(high) else high / per_step,
            assumed=drafting.assumed and pooled.drafted_tokens is None,
        )
        figures["drafted_tokens"] = Estimate(drafted, assumed=drafting.assumed and pooled.drafted_tokens is None)
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


def _steady(timed: pd.DataFrame) -> pd.DataFrame:
    """Steady rows, else counted ones, else all that have a throughput while something runs."""
    for mark in ("steady", "counted"):
        rows = timed[timed[mark]]
        if not rows.empty:
            return rows
    return timed


def load_quantities(frame: pd.DataFrame) -> dict[str, Estimate]:
    """Throughput, step time and load over steady windows; throughput is summed over units.

    A window at whose end nothing runs has idle time in its clock: alone, it tells no throughput.
    """
    timed = frame[frame["generation_throughput"].gt(0) & (frame["running_requests"] != 0)]
    if timed.empty:
        return {}
    timed = _best_timed(timed)
    if timed["unit"].str.startswith(SLOT).all() and timed["seconds"].gt(0).all():
        return _slot_load(timed)
    rate = variance = running = waiting = 0.0
    windows = 0
    steady_rows: list[pd.DataFrame] = []
    for _, rows in timed.groupby("unit", sort=False):
        steady = _steady(rows)
        windows = max(windows, len(steady))
        mean, half = _throughput(steady)
        rate, variance = rate + mean, variance + half**2
        running += float(steady["running_requests"].mean())
        waiting += float(steady["waiting_requests"].mean())
        steady_rows.append(steady)
    half = math.sqrt(variance)
    known = math.isfinite(half)
    figures = {
        "generation_throughput": Estimate(
            rate, max(0.0, rate - half) if known else None, rate + half if known else None, windows=windows
        )
    }
    for key, requests in (("running_requests", running), ("waiting_requests", waiting)):
        if math.isfinite(requests):  # some windows of each unit say how many
            figures[key] = Estimate(requests, windows=windows)
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


def _best_timed(timed: pd.DataFrame) -> pd.DataFrame:
    """The rows of the best source of throughput with enough windows, else of the one with the most."""
    choices = [timed[timed["origin"].isin(origins)] for origins in _LOAD_BEST_FIRST]
    enough = (rows for rows in choices if len(rows) >= DEFAULTS.minimum_windows)
    return next(enough, max(choices, key=len))


def _slot_load(requests: pd.DataFrame) -> dict[str, Estimate]:
    """Load where each window is a request of a slot: tokens over the time in which any slot was busy.

    Slots take turns, so their own speeds are not added up.
    """
    seconds = requests["seconds"].to_numpy(dtype=float)
    ends = requests["at"].to_numpy(dtype=float)
    busy = _covered(ends - seconds, ends)
    generated = requests["generated_tokens"].to_numpy(dtype=float)
    rate = float(generated.sum() / busy)
    alone, half = _throughput(requests)
    half *= rate / alone
    known = math.isfinite(half)
    windows = len(requests)
    figures = {
        "generation_throughput": Estimate(
            rate, max(0.0, rate - half) if known else None, rate + half if known else None, windows=windows
        ),
        "running_requests": Estimate(float(seconds.sum() / busy), windows=windows),
    }
    whole = requests[requests["running_requests"].notna()]  # of one that a log cuts off nobody knows whether it drafted
    if not whole.empty:
        time = step_time(
            whole["running_requests"], whole["acceptance_length"].fillna(1.0), whole["generation_throughput"]
        )
        figures["step_seconds"] = Estimate(
            time.seconds, max(0.0, time.seconds - time.half), time.seconds + time.half, windows=len(whole)
        )
    return figures


def _covered(begins: np.ndarray, ends: np.ndarray) -> float:
    """Seconds that lie in at least one of the spans. Shapes: (n,)."""
    order = np.argsort(begins)
    reached = np.maximum.accumulate(ends[order])
    before = np.concatenate(([-math.inf], reached[:-1]))
    return float(np.maximum(ends[order] - np.maximum(begins[order], before), 0.0).sum())


def coverage_quantities(frame: pd.DataFrame, *, with_first_tokens: bool = False) -> dict[str, Estimate]:
    """Generated tokens, and how many target passes had a draft.

    Each pass yields one token of the target's own and the accepted drafts, so passes = generated - accepted
    (theory section 1.2), whether or not a pass had a draft. What was accepted behind the end of an answer
    was never generated, so there are at least as many passes as verify steps, and where the engine's
    counters have the first tokens in them (``with_first_tokens``) one more for each prompt.
    """
    origin = best_origin(frame)
    if not origin.any():
        requests = frame[frame["unit"].str.startswith(SLOT)]
        return {"generated_tokens": Estimate(float(requests["generated_tokens"].sum()))} if len(requests) else {}
    rows = frame[frame["origin"] == frame["origin"].to_numpy()[origin][0]]
    if rows["generated_tokens"].isna().any():
        return {}
    generated = float(rows["generated_tokens"].sum())
    steps = float(rows["verify_steps"].sum())
    prompts = float(rows["prefills"].sum()) if with_first_tokens and rows["origin"].iloc[0] == Origin.COUNTERS else 0.0
    passes = max(generated - float(rows["accepted_tokens"].sum()), steps + prompts)
    figures = {"generated_tokens": Estimate(generated)}
    if passes > 0:
        figures["tokens_per_target_pass"] = Estimate(generated / passes)
        figures["draft_coverage"] = Estimate(steps / passes, verify_steps=steps)
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
