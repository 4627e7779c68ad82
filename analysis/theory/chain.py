"""Chains of drafts: from a constant acceptance rate to the expected length, and back.

``rate`` is the conditional acceptance rate a (how often a draft is accepted when all before it
were), ``length`` the acceptance length with the target's own token counted, ``depth`` the number
of drafts in a step, k. A fractional depth is a mixture of the two depths beside it, as where an
engine adapts the depth: the length is interpolated between theirs.

Source: Leviathan et al., arXiv 2211.17192.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from analysis.theory.settings import DEFAULTS
from collector.domain.errors import ImpossibleFigure

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import ArrayLike, NDArray

_BISECTIONS = 60
"""Halvings of [0, 1]: past the resolution of a double."""


def expected_length(rate: float, depth: float) -> float:
    """Mean tokens of a step: ``1 + a + a^2 + ... + a^k``. Summed, as the closed form breaks down near a = 1.

    Raises:
        ImpossibleFigure: the rate is not between 0 and 1, or the depth is negative.
    """
    _check_rate(rate)
    _check_depth(depth)
    return _length(rate, depth)


def accepted_variance(rate: float, depth: int) -> float:
    """Variance of the accepted drafts of one step, a truncated geometric: ``sum (2i - 1) a^i - (sum a^i)^2``.

    Raises:
        ImpossibleFigure: as :func:`expected_length`.
    """
    mean = expected_length(rate, depth) - 1
    return math.fsum((2 * i - 1) * rate**i for i in range(1, depth + 1)) - mean**2


def binomial_variance(rate: float, depth: int) -> float:
    """What a binomial on drafted tokens would claim for the same variance: ``k p (1 - p)``, p = accepted / drafted.

    For comparison only: 1.9 to 3.9 times too small even where all steps are independent.

    Raises:
        ImpossibleFigure: as :func:`expected_length`.
    """
    if depth == 0:
        return 0.0
    share = (expected_length(rate, depth) - 1) / depth
    return depth * share * (1 - share)


def implied_rate(length: float, depth: float, rounding: float = DEFAULTS.printed_rounding) -> float:
    """The constant rate that gives this length at this depth; 0 or 1 where the length is at an edge within rounding.

    Raises:
        ImpossibleFigure: the length is outside ``[1, depth + 1]`` by more than ``rounding``
            (wrong depth, another definition, or corrupt data), or nothing is drafted at all.
    """
    _check_depth(depth)
    if not 1 - rounding <= length <= depth + 1 + rounding:
        raise ImpossibleFigure(
            f"acceptance length {length:g} is not possible at depth {depth:g}",
            why=f"a step yields between 1 and {depth + 1:g} tokens",
            hint="check the depth, whether the figure counts the target's own token, and the source of the figure",
        )
    if depth == 0:
        raise ImpossibleFigure(
            "no acceptance rate follows from a length at depth 0",
            why="nothing is drafted",
            hint="give the depth the engine drafts with",
        )
    if length <= 1:
        return 0.0
    if length >= depth + 1:
        return 1.0
    low, high = 0.0, 1.0
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if _length(middle, depth) < length:
            low = middle
        else:
            high = middle
    return (low + high) / 2


def implied_rates(lengths: ArrayLike, depth: float, rounding: float = DEFAULTS.printed_rounding) -> NDArray[float64]:
    """:func:`implied_rate` of many lengths at once, shape kept; NaN where the length is impossible."""
    import numpy as np

    _check_depth(depth)
    length = np.asarray(lengths, dtype=float)
    low, high = np.zeros_like(length), np.ones_like(length)
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        below = _length(middle, depth) < length
        low, high = np.where(below, middle, low), np.where(below, high, middle)
    rates = np.where(length <= 1, 0.0, np.where(length >= depth + 1, 1.0, (low + high) / 2))
    possible = (length >= 1 - rounding) & (length <= depth + 1 + rounding) & (depth > 0)
    return np.where(possible, rates, np.nan)


def implied_rate_error(length: float, length_error: float, depth: float) -> float:
    """Error (or half width) of the implied rate: that of the length over ``sum i a^(i-1)``.

    Raises:
        ImpossibleFigure: as :func:`implied_rate`.
    """
    return length_error / length_slope(implied_rate(length, depth), depth)


def length_slope(rate: float, depth: float) -> float:
    """How fast the expected length grows with the rate: ``sum i a^(i-1)``.

    Raises:
        ImpossibleFigure: as :func:`expected_length`.
    """
    _check_rate(rate)
    _check_depth(depth)
    whole = math.floor(depth)
    slope = math.fsum(i * rate ** (i - 1) for i in range(1, whole + 1))
    return slope + (depth - whole) * (whole + 1) * rate**whole


def implied_rate_bounds(length: float) -> tuple[float, float]:
    """Lowest and highest constant rate behind a length of unknown depth.

    The lowest is that of an endless chain, ``1 - 1/length``, the highest that of the shortest
    chain that can yield the length.

    Raises:
        ImpossibleFigure: the length is below 1 by more than printed rounding.
    """
    shortest = max(1, math.ceil(length - 1 - 1e-9)) if math.isfinite(length) else 1
    return max(0.0, 1 - 1 / length) if length > 0 else 0.0, implied_rate(length, shortest)


def _length(rate: float, depth: float) -> float:
    """The series by Horner's rule; ``rate`` may be an array."""
    whole = math.floor(depth)
    total = 1.0 + 0.0 * rate
    for _ in range(whole):
        total = 1.0 + rate * total
    return total + (depth - whole) * rate ** (whole + 1)


def _check_rate(rate: float) -> None:
    if not 0 <= rate <= 1:
        raise ImpossibleFigure(
            f"acceptance rate {rate:g} is not between 0 and 1",
            why="a rate is a share of drafts",
            hint="check whether the figure is a percentage or counts the target's own token",
        )


def _check_depth(depth: float) -> None:
    if not (math.isfinite(depth) and depth >= 0):
        raise ImpossibleFigure(f"draft depth {depth:g} is not possible", why="a depth counts drafts")
