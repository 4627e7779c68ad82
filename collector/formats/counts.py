"""Counts behind rounded acceptance figures.

vLLM and llama.cpp print accepted and drafted tokens as they were counted. The number of drafts and
the counts by position are behind rounded figures: a length with two decimals and a rate with three
for each position. Both are recovered here.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from operator import add
from typing import Final, NamedTuple

POSITION_ROUNDING: Final = 0.0005
LENGTH_ROUNDING: Final = 0.005
SLACK: Final = 1e-9
_SEARCHED: Final = 2_000
"""Candidates for the number of drafts that are compared; a wider range is settled by its middle."""


class SpecCounts(NamedTuple):
    """What one line counted.

    ``verify_steps`` are drafts, one a request and step that had at least one drafted token;
    ``accepted_at`` the drafts that accepted at least i tokens. Both are ``None`` where the line
    does not tell. ``bonus_in_length`` says whether the printed length counts the target's token,
    ``None`` where both readings fit.
    """

    accepted: int
    drafted: int
    verify_steps: float | None = None
    accepted_at: tuple[float, ...] | None = None
    bonus_in_length: bool | None = None


def spec_counts(
    accepted: int,
    drafted: int,
    length: float | None,
    positions: tuple[float, ...],
    depth: int | None = None,
    *,
    known: int | None = None,
    passes: int | None = None,
    short: bool = False,
) -> SpecCounts:
    """Counts from what was printed.

    ``length`` is the printed mean acceptance length (``None`` or NaN where there is none), ``positions``
    the printed rates, ``depth`` the configured number of draft tokens for lines without positions.
    The number of drafts is the one that explains all figures: ``known``, where another line counted
    drafts and that fits; else drafts of full length, where those fit and drafts are not often
    ``short``; else the one nearest to the middle of what the figures allow; else, for short drafts, the
    number of ``passes`` of the target, which each verify one at most. With every draft at full length
    it is exact.
    """
    depth = len(positions) or depth
    if not drafted:
        return SpecCounts(accepted, drafted, 0.0, (0.0,) * len(positions) or None)
    bonus = _bonus(length, positions)
    fewest = -(-drafted // depth) if depth else 1
    low, high = _bounds(accepted, length, positions, bonus)
    low, high = max(low, float(fewest)), min(high, float(drafted))
    if known is not None and low - SLACK <= known <= high + SLACK:
        drafts = known
    elif depth and not short and drafted % depth == 0 and low - SLACK <= fewest <= high + SLACK:
        drafts = fewest
    else:
        found = _likely(
            accepted, length, positions, bonus, low, high, bounded=depth is not None, passes=passes if short else None
        )
        if found is None:
            return SpecCounts(accepted, drafted)
        drafts = found
    return SpecCounts(accepted, drafted, float(drafts), _shares(accepted, positions, drafts), bonus)


def total(rates: Iterable[float]) -> float:
    """Rates added up in their order; :func:`sum` rounds otherwise from one release of Python to the next."""
    return reduce(add, rates, 0.0)


def _likely(
    accepted: int,
    length: float | None,
    positions: tuple[float, ...],
    bonus: bool | None,
    low: float,
    high: float,
    *,
    bounded: bool,
    passes: int | None,
) -> int | None:
    """A number of drafts between the bounds, ``None`` where nothing narrows them."""
    if accepted and positions and total(positions) > 0:
        return _best(accepted, positions, low, high)
    if (
        accepted
        and length is not None
        and math.isfinite(length)
        and bonus is not False
        and length > 1 + LENGTH_ROUNDING
    ):
        return round(min(max(accepted / (length - 1), low), high))
    if passes is not None:
        return round(min(max(passes, low), max(high, low)))
    return math.ceil(low - SLACK) if bounded else None


def _bonus(length: float | None, positions: tuple[float, ...]) -> bool | None:
    """Whether the length counts the target's own token: 0.9.0 and later do, before not."""
    if length is None or math.isnan(length):
        return None
    if positions:
        own = total(positions)
        slack = LENGTH_ROUNDING + len(positions) * POSITION_ROUNDING + SLACK
        with_bonus, without = abs(length - 1 - own) <= slack, abs(length - own) <= slack
        if with_bonus != without:
            return with_bonus
    return None if length >= 1 else False


def _bounds(
    accepted: int, length: float | None, positions: tuple[float, ...], bonus: bool | None
) -> tuple[float, float]:
    """The numbers of drafts that length and positions allow."""
    low, high = 0.0, math.inf
    if not accepted:
        return low, high
    own = total(positions)
    slack = len(positions) * POSITION_ROUNDING
    if positions and own + slack > 0:
        low = accepted / (own + slack)
        high = accepted / (own - slack) if own > slack else math.inf
    if length is not None and math.isfinite(length) and (bonus is not None or not positions):
        extra = length - (bonus is not False)
        low = max(low, accepted / (extra + LENGTH_ROUNDING)) if extra + LENGTH_ROUNDING > 0 else low
        high = min(high, accepted / (extra - LENGTH_ROUNDING)) if extra > LENGTH_ROUNDING else high
    return low, high


def _best(accepted: int, positions: tuple[float, ...], low: float, high: float) -> int:
    """The whole number between the bounds whose multiples of the rates are nearest to whole numbers."""
    first, last = max(1, math.ceil(low - SLACK)), math.floor(high + SLACK)
    middle = round(accepted / max(total(positions), POSITION_ROUNDING))
    if last < first:
        return max(middle, first)
    middle = min(max(middle, first), last)
    if last - first > _SEARCHED:
        return middle
    fitting = [drafts for drafts in range(first, last + 1) if _fits(accepted, positions, drafts)]
    return min(fitting or [middle], key=lambda drafts: abs(drafts - middle))


def _fits(accepted: int, positions: tuple[float, ...], drafts: int) -> bool:
    """Whether whole counts exist that print as these rates and add up to the accepted tokens."""
    fewest = most = 0
    for rate in positions:
        low = math.ceil((rate - POSITION_ROUNDING) * drafts - SLACK)
        high = math.floor((rate + POSITION_ROUNDING) * drafts + SLACK)
        if high < low:
            return False
        fewest, most = fewest + max(low, 0), most + high
    return fewest <= accepted <= most


def _shares(accepted: int, positions: tuple[float, ...], drafts: int) -> tuple[float, ...] | None:
    """Counts by position: whole numbers that print as the rates, adding up to the accepted tokens where they can.

    What rounding leaves open is spread over the positions.
    """
    if not positions:
        return None
    counts = [round(rate * drafts) for rate in positions]
    missing = accepted - sum(counts)
    sign = 1 if missing > 0 else -1
    left = abs(missing)
    for index, rate in enumerate(positions):
        limit = rate * drafts + sign * POSITION_ROUNDING * drafts
        room = math.floor(limit + SLACK) - counts[index] if missing > 0 else counts[index] - math.ceil(limit - SLACK)
        taken = min(max(room, 0), -(-left // (len(positions) - index)))
        counts[index] += sign * taken
        left -= taken
    if list(positions) == sorted(positions, reverse=True):
        counts.sort(reverse=True)  # equal rates; a later position never accepts more often
    return tuple(float(max(count, 0)) for count in counts)
