"""Counts behind vLLM's acceptance figures.

A ``SpecDecoding metrics`` line prints accepted and drafted tokens as they were counted. The number
of drafts and the counts by position are behind rounded figures: a length with two decimals and a
rate with three for each position. Both are recovered here.

Source: vLLM, ``vllm/v1/spec_decode/metrics.py`` (0.8.3 to 0.32.0) and ``vllm/spec_decode/metrics.py``
(up to 0.9.2).
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

POSITION_ROUNDING: Final = 0.0005
LENGTH_ROUNDING: Final = 0.005
_SLACK: Final = 1e-9
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
) -> SpecCounts:
    """Counts of one interval from what was printed.

    ``length`` is the printed mean acceptance length (``None`` or NaN where there is none),
    ``positions`` the printed rates, ``depth`` the configured number of draft tokens for lines
    without positions. The number of drafts is the one that explains all figures; of several the one
    nearest to the middle of what they allow. With every draft at full length it is exact.
    """
    depth = len(positions) or depth
    if not drafted:
        return SpecCounts(accepted, drafted, 0.0, (0.0,) * len(positions) or None)
    if not depth:
        return SpecCounts(accepted, drafted)
    bonus = _bonus(length, positions)
    fewest = -(-drafted // depth)
    if not positions or not accepted:
        return SpecCounts(accepted, drafted, float(fewest), _zeros(positions), bonus)
    low, high = _bounds(accepted, length, positions, bonus)
    low = max(low, float(fewest))
    full = drafted % depth == 0 and low - _SLACK <= fewest <= high + _SLACK
    drafts = fewest if full else _best(accepted, positions, low, high, most=drafted)
    return SpecCounts(accepted, drafted, float(drafts), _shares(accepted, positions, drafts), bonus)


def _zeros(positions: tuple[float, ...]) -> tuple[float, ...] | None:
    return (0.0,) * len(positions) if positions else None


def _bonus(length: float | None, positions: tuple[float, ...]) -> bool | None:
    """Whether the length counts the target's own token: 0.9.0 and later do, before not."""
    if length is None or math.isnan(length):
        return None
    if positions:
        own = sum(positions)
        slack = LENGTH_ROUNDING + len(positions) * POSITION_ROUNDING + _SLACK
        with_bonus, without = abs(length - 1 - own) <= slack, abs(length - own) <= slack
        if with_bonus != without:
            return with_bonus
    return None if length >= 1 else False


def _bounds(
    accepted: int, length: float | None, positions: tuple[float, ...], bonus: bool | None
) -> tuple[float, float]:
    """The numbers of drafts that length and positions allow."""
    own = sum(positions)
    slack = len(positions) * POSITION_ROUNDING
    low = accepted / (own + slack)
    high = accepted / (own - slack) if own > slack else math.inf
    if length is not None and not math.isnan(length) and bonus is not None:
        extra = length - bonus
        low = max(low, accepted / (extra + LENGTH_ROUNDING)) if extra + LENGTH_ROUNDING > 0 else low
        high = min(high, accepted / (extra - LENGTH_ROUNDING)) if extra > LENGTH_ROUNDING else high
    return low, high


def _best(accepted: int, positions: tuple[float, ...], low: float, high: float, most: int) -> int:
    """The whole number between the bounds whose multiples of the rates are nearest to whole numbers."""
    first = max(1, math.ceil(low - _SLACK))
    last = min(math.floor(min(high, most) + _SLACK), most)
    middle = round(accepted / sum(positions)) if sum(positions) else first
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
        low = math.ceil((rate - POSITION_ROUNDING) * drafts - _SLACK)
        high = math.floor((rate + POSITION_ROUNDING) * drafts + _SLACK)
        if high < low:
            return False
        fewest, most = fewest + max(low, 0), most + high
    return fewest <= accepted <= most


def _shares(accepted: int, positions: tuple[float, ...], drafts: int) -> tuple[float, ...]:
    """Counts by position: whole numbers that print as the rates, adding up to the accepted tokens where they can.

    What rounding leaves open is spread over the positions.
    """
    counts = [round(rate * drafts) for rate in positions]
    missing = accepted - sum(counts)
    sign = 1 if missing > 0 else -1
    left = abs(missing)
    for index, rate in enumerate(positions):
        limit = rate * drafts + sign * POSITION_ROUNDING * drafts
        room = math.floor(limit + _SLACK) - counts[index] if missing > 0 else counts[index] - math.ceil(limit - _SLACK)
        taken = min(max(room, 0), -(-left // (len(positions) - index)))
        counts[index] += sign * taken
        left -= taken
    if list(positions) == sorted(positions, reverse=True):
        counts.sort(reverse=True)  # equal rates; a later position never accepts more often
    return tuple(float(max(count, 0)) for count in counts)


class LifetimeCounts(NamedTuple):
    """The cumulative counters of a V0 line: draft tokens, emitted tokens (the target's own included), and depth."""

    drafted: int
    emitted: int
    depth: int

    @property
    def verify_steps(self) -> float:
        """Steps times requests: every draft of V0 has full length."""
        return self.drafted / self.depth

    @property
    def accepted(self) -> float:
        """Accepted tokens as the other engines count them.

        What V0 prints as accepted also counts tokens behind a rejected one, so it cannot be used.
        """
        return self.emitted - self.verify_steps
