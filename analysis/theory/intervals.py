"""95% intervals of accepted drafts per step that hold their promise.

Requests differ, long requests weigh more and steps within a request are alike, so an interval
that takes drafted tokens for coin tosses covers 12 to 68% instead of 95%. These do not:

- request-level counts: ratio estimator with a delete-one jackknife;
- windows: the equal-weighted-cosine estimator with cap and guard (Lazarus, Lewis, Stock & Watson 2018);
- fewer than 12 windows: a conservative width from an assumed design effect.

Accepted drafts are pooled by steps, ``sum(accepted) / sum(steps)``; ratios are never averaged.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri, stdtr, stdtrit

from analysis.theory.settings import DEFAULTS, Settings
from collector.domain.errors import ImpossibleFigure, InputError

JACKKNIFE: Final = "jackknife"
EWC: Final = "ewc"
CONSERVATIVE: Final = "conservative"


@dataclass(frozen=True, slots=True)
class Interval:
    """Accepted drafts per step with a 95% interval.

    Attributes:
        accepted_per_step: pooled estimate.
        half: half width of the interval.
        error: standard error of the estimate.
        method: ``jackknife``, ``ewc`` or ``conservative``.
        count: requests (jackknife) or windows behind it.
        degrees_of_freedom: of the t quantile; infinite for the conservative interval.
        approximate: in plain words, why the interval may cover less than it says; empty if it holds.
    """

    accepted_per_step: float
    half: float
    error: float
    method: str
    count: int
    degrees_of_freedom: float
    approximate: str = ""

    @property
    def low(self) -> float:
        """Lower end, accepted per step; not below zero, as nothing can be."""
        return max(0.0, self.accepted_per_step - self.half)

    @property
    def high(self) -> float:
        """Upper end, accepted per step."""
        return self.accepted_per_step + self.half

    @property
    def length(self) -> float:
        """Acceptance length: 1 + accepted per step."""
        return 1 + self.accepted_per_step

    @property
    def length_low(self) -> float:
        """Lower end of the acceptance length."""
        return 1 + self.low

    @property
    def length_high(self) -> float:
        """Upper end of the acceptance length."""
        return 1 + self.high

    @property
    def quantile(self) -> float:
        """The t quantile that belongs to its degrees of freedom."""
        return t_quantile(self.degrees_of_freedom)


def t_quantile(degrees_of_freedom: float, confidence: float = DEFAULTS.confidence) -> float:
    """Two-sided quantile of the t distribution, the normal one where the degrees are infinite."""
    share = (1 + confidence) / 2
    return float(ndtri(share) if math.isinf(degrees_of_freedom) else stdtrit(degrees_of_freedom, share))


def t_probability(degrees_of_freedom: float, score: float) -> float:
    """Probability of a score this small or smaller; of the normal distribution where the degrees are infinite."""
    return float(ndtr(score) if math.isinf(degrees_of_freedom) else stdtr(degrees_of_freedom, score))


def request_interval(accepted: ArrayLike, steps: ArrayLike, settings: Settings = DEFAULTS) -> Interval:
    """Interval from request-level counts: ``R = sum A / sum N``, delete-one jackknife, t of the effective count - 1.

    ``accepted`` and ``steps`` hold one figure per request. Effective count: ``(sum N)^2 / sum N^2``.

    Raises:
        InputError: no request has a step.
        ImpossibleFigure: a count is negative or not a number.
    """
    counts, weights = _counted(accepted, steps)
    requests = weights.size
    total_accepted, total_steps = counts.sum(), weights.sum()
    pooled = float(total_accepted / total_steps)
    if requests < 2:
        return Interval(
            pooled, math.inf, math.inf, JACKKNIFE, requests, 1.0, "one request says nothing about how requests differ"
        )
    without = (total_accepted - counts) / (total_steps - weights)
    error = math.sqrt((requests - 1) / requests * float(((without - without.mean()) ** 2).sum()))
    effective = float(total_steps**2 / (weights**2).sum())
    # One giant request can bring the effective count to 1, where the t quantile ceases to exist.
    degrees = max(effective - 1, 1.0)
    few = f"only {requests} requests; from {settings.minimum_requests} on it holds"
    return Interval(
        pooled,
        max(t_quantile(degrees, settings.confidence) * error, settings.printed_rounding),
        error,
        JACKKNIFE,
        requests,
        degrees,
        few if requests < settings.minimum_requests else "",
    )


def cosine_terms(windows: int, request_lifetime_windows: float = 0) -> int:
    """How many cosines enter the estimate: ``max(2, min(floor(0.4 n^(2/3)), floor(n / 2L)))``.

    The cap keeps the cosines slower than a request lives, ``request_lifetime_windows`` = L (0 if unknown).
    """
    terms = math.floor(0.4 * math.pow(windows, 2 / 3))
    if request_lifetime_windows > 0:
        terms = min(terms, math.floor(windows / (2 * request_lifetime_windows)))
    return max(2, terms)


def lifetime_in_windows(windows: int, running: float, new_requests: float) -> float:
    """Mean lifetime of a request in windows, from how many began: ``b n / new``; 0 (unknown) where none is known to have.

    ``new_requests`` are the sequences that started inside the windows (SGLang's ``#new-seq``, a
    counter of finished requests, ...).
    """
    return running * windows / new_requests if new_requests > 0 else 0.0


def ewc_interval(
    accepted_per_step: ArrayLike,
    steps: ArrayLike,
    request_lifetime_windows: float = 0,
    nu: int | None = None,
    *,
    running: float | None = None,
    settings: Settings = DEFAULTS,
) -> Interval:
    """Interval from windows in time order: equal-weighted cosines, guarded by the plain t interval of the windows.

    ``accepted_per_step`` and ``steps`` hold one figure per window (lines of several ranks at one
    instant pooled into one); windows without steps weigh nothing and are left out. ``nu`` fixes the
    number of cosines. The half width is at least the printed rounding.

    Where the lifetime limits the cosines, neighbouring windows show the same requests and say little
    about how requests differ. There the half width is also at least that of the ``b (1 + n / 1.9 L)``
    requests seen, with a spread of 0.3 of the mean, if ``running`` = b is given.

    Raises:
        InputError: fewer than two windows have a step.
        ImpossibleFigure: a figure is negative or not a number.
    """
    weights = np.asarray(steps, dtype=float)
    counts, weights = _counted(np.asarray(accepted_per_step, dtype=float) * weights, weights)
    windows = weights.size
    if windows < 2:
        raise InputError(
            "one window has no spread to estimate an interval from",
            hint=f"use the conservative interval under {settings.minimum_windows} windows",
        )
    pooled = float(counts.sum() / weights.sum())
    deviations = (counts - pooled * weights) / weights.mean()
    terms = cosine_terms(windows, request_lifetime_windows) if nu is None else nu
    error, half = _guarded(deviations, terms, settings)
    if nu is None and windows < 2 * request_lifetime_windows * cosine_terms(windows):
        reason = "requests outlast windows"
        if running is not None:
            half = max(half, _request_half(pooled, windows, request_lifetime_windows, running, settings))
            reason += ", so the usual spread between requests is assumed"
    elif request_lifetime_windows > 0:
        reason = ""
    else:
        reason = _doubt(deviations, terms, settings)
    return Interval(pooled, max(half, settings.printed_rounding), error, EWC, windows, terms, reason)


def mean_interval(
    values: ArrayLike, weights: ArrayLike | None = None, settings: Settings = DEFAULTS
) -> tuple[float, float]:
    """Weighted mean of any figure of windows in time order, and the guarded half width around it.

    For throughput and step time; infinite half width for a single window.

    Raises:
        InputError: there are no values, or their weights sum to zero.
    """
    figures = np.asarray(values, dtype=float)
    shares = np.ones_like(figures) if weights is None else np.asarray(weights, dtype=float)
    if figures.size == 0 or not shares.sum() > 0:
        raise InputError("no windows to take a mean of")
    mean = float((figures * shares).sum() / shares.sum())
    if figures.size == 1:
        return mean, math.inf
    deviations = shares * (figures - mean) / shares.mean()
    return mean, _guarded(deviations, cosine_terms(figures.size), settings)[1]


def _guarded(deviations: NDArray[float64], terms: int, settings: Settings) -> tuple[float, float]:
    """Cosine standard error, and the half width guarded against a lucky small one."""
    from scipy.fft import dct

    windows = deviations.size
    projections = dct(deviations, norm="ortho")[1 : terms + 1]
    error = math.sqrt(float((projections**2).mean()) / windows)
    plain_error = math.sqrt(float((deviations**2).sum()) / (windows - 1) / windows)
    half = max(
        t_quantile(terms, settings.confidence) * error, t_quantile(windows - 1, settings.confidence) * plain_error
    )
    return error, half


def _request_half(pooled: float, windows: int, lifetime: float, running: float, settings: Settings) -> float:
    """Half width that the number of requests seen would give alone."""
    requests = max(1.0, running) * (1 + windows / (settings.request_length_dispersion * lifetime))
    return t_quantile(math.inf, settings.confidence) * settings.request_spread_share * pooled / math.sqrt(requests)


def _doubt(deviations: NDArray[float64], terms: int, settings: Settings) -> str:
    """Why the interval may cover less than it says where request lifetimes are unknown; empty if nothing speaks for it.

    It does where windows are still alike at an eighth of the fastest cosine's period: what lasts that
    long also lasts longer than the cosines look.
    """
    windows = deviations.size
    if windows < 2 * settings.minimum_windows:
        return f"how long requests live is not known, and {windows} windows are too few to tell"
    lag = math.ceil(windows / (4 * terms))
    power = float((deviations**2).sum())
    alike = float((deviations[lag:] * deviations[:-lag]).sum()) / power if power > 0 else 0.0
    if alike > 2 / math.sqrt(windows):
        return "windows resemble later ones, as where requests outlast them; the interval may cover about 80%"
    return ""


def conservative_interval(
    accepted: float,
    drafted: float | None,
    steps: float,
    depth: float | None,
    running: float | None,
    *,
    windows: int = 0,
    settings: Settings = DEFAULTS,
) -> Interval:
    """A deliberately wide interval for a handful of windows: ``2 sqrt(0.5^2 / b + 25 k p (1 - p) / N)``.

    It assumes a design effect of 25 over the binomial and a spread of 0.5 between requests.
    ``running`` is the number of distinct requests seen, else the mean running, else unknown (1).
    ``drafted`` defaults to steps times depth; where the depth is unknown too, the variance is the
    largest a mean of this size has in the field (that of an endless chain).

    Raises:
        InputError: there are no steps.
        ImpossibleFigure: a count is negative or not a number, or more is accepted than drafted.
    """
    counts, weights = _counted([accepted], [steps])
    pooled = float(counts[0] / weights[0])
    if drafted is None and depth is not None:
        drafted = float(weights[0]) * depth
    if drafted is None:
        step_variance = pooled * (1 + pooled)
    elif drafted <= 0:
        step_variance = 0.0
    else:
        share = float(counts[0]) / drafted
        if share > 1 + settings.printed_rounding:
            raise ImpossibleFigure(
                f"{counts[0]:g} drafts accepted of {drafted:g}",
                why="no more drafts can be accepted than were made",
                hint="check the draft depth and whether the target's own token is counted",
            )
        share = min(share, 1.0)
        step_variance = drafted / float(weights[0]) * share * (1 - share)
    requests = max(1.0, running or 1.0)
    error = math.sqrt(
        settings.assumed_request_spread**2 / requests
        + settings.assumed_design_effect * step_variance / float(weights[0])
    )
    reason = f"fewer than {settings.minimum_windows} windows, so a wide interval with an assumed spread stands in"
    return Interval(
        pooled, max(2 * error, settings.printed_rounding), error, CONSERVATIVE, windows or 1, math.inf, reason
    )


def window_interval(
    accepted_per_step: ArrayLike,
    steps: ArrayLike,
    depth: float | None,
    running: float | None,
    request_lifetime_windows: float = 0,
    *,
    settings: Settings = DEFAULTS,
) -> Interval:
    """The interval for windows in time order: cosines from 12 windows on, else the conservative one.

    Arguments as of :func:`ewc_interval` and :func:`conservative_interval`.

    Raises:
        InputError: no window has a step.
        ImpossibleFigure: a figure is negative or not a number, or more is accepted than drafted.
    """
    weights = np.asarray(steps, dtype=float)
    counts, weights = _counted(np.asarray(accepted_per_step, dtype=float) * weights, weights)
    if weights.size >= settings.minimum_windows:
        return ewc_interval(counts / weights, weights, request_lifetime_windows, running=running, settings=settings)
    return conservative_interval(
        float(counts.sum()), None, float(weights.sum()), depth, running, windows=weights.size, settings=settings
    )


def _counted(accepted: ArrayLike, steps: ArrayLike) -> tuple[NDArray[float64], NDArray[float64]]:
    """Both as arrays without the entries that have no steps."""
    counts, weights = np.asarray(accepted, dtype=float).ravel(), np.asarray(steps, dtype=float).ravel()
    if counts.size != weights.size:
        raise InputError(f"{counts.size} counts of accepted drafts beside {weights.size} counts of steps")
    used = weights != 0
    counts, weights = counts[used], weights[used]
    if weights.size == 0:
        raise InputError("no verify steps to estimate from", hint="give decode windows or requests with drafts")
    if not (np.isfinite(counts).all() and np.isfinite(weights).all() and (weights > 0).all() and (counts >= 0).all()):
        raise ImpossibleFigure(
            "accepted drafts and steps must be numbers, and not negative",
            why="a length below 1 leaves out the target's own token",
            hint="leave out windows whose figure is not a number, or correct the definition",
        )
    return counts, weights
