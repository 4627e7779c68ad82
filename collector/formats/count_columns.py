"""Counts behind rounded acceptance figures, many lines at once: what :mod:`collector.formats.counts` gives for each.

Lines in which every draft had full length, the most by far, are counted as arrays; the others one by one.
"""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from collector.formats.columns import Figures, Mask
from collector.formats.counts import LENGTH_ROUNDING, POSITION_ROUNDING, SLACK, spec_counts


class CountColumns(NamedTuple):
    """Of each line: the drafts (NaN where it does not tell), those that accepted at least i tokens, the kind of length.

    Shapes (n,); ``accepted_at`` (n, depth), NaN where the line does not tell and behind the last position of shorter ones.
    ``bonus`` is 1 where the printed length counts the target's own token, -1 where not, 0 where both fit.
    """

    verify_steps: Figures
    accepted_at: Figures
    bonus: npt.NDArray[np.int8]


def counted(accepted: Figures, drafted: Figures, length: Figures, positions: Figures) -> CountColumns:
    """The counts of lines that print as many rates. Shapes (n,); ``positions`` (n, depth)."""
    depth = positions.shape[1]
    own: Figures = reduce(add, positions.T)  # in their order, as one line's
    drafts = drafted / depth
    plain = _with_bonus(length, own, depth) & (accepted > 0) & (drafted > 0) & (drafted % depth == 0)
    plain &= _in_bounds(drafts, accepted, length, own, depth)
    bonus: npt.NDArray[np.int8] = np.ones(len(plain), dtype=np.int8)
    rows = plain.nonzero()[0]
    found = _shares(accepted[rows], positions[rows], drafts[rows])
    if len(rows) == len(plain):
        return CountColumns(drafts, found, bonus)
    shares: Figures = np.full(positions.shape, np.nan)
    shares[rows] = found
    for row in (~plain).nonzero()[0].tolist():
        one = spec_counts(int(accepted[row]), int(drafted[row]), float(length[row]), tuple(positions[row].tolist()))
        drafts[row] = np.nan if one.verify_steps is None else one.verify_steps
        shares[row] = np.nan if one.accepted_at is None else one.accepted_at
        bonus[row] = _BONUS[one.bonus_in_length]
    return CountColumns(drafts, shares, bonus)


_BONUS = {True: 1, False: -1, None: 0}


def _with_bonus(length: Figures, own: Figures, depth: int) -> Mask:
    """Where only a length that counts the target's own token fits the rates."""
    slack = LENGTH_ROUNDING + depth * POSITION_ROUNDING + SLACK
    found: Mask = (np.abs(length - 1 - own) <= slack) & ~(np.abs(length - own) <= slack)
    return found


def _in_bounds(drafts: Figures, accepted: Figures, length: Figures, own: Figures, depth: int) -> Mask:
    """Where the figures allow this number of drafts."""
    slack = depth * POSITION_ROUNDING
    extra = length - 1
    with np.errstate(divide="ignore", invalid="ignore"):
        low = np.maximum(accepted / (own + slack), accepted / (extra + LENGTH_ROUNDING))
        high = np.where(own > slack, accepted / (own - slack), np.inf)
        high = np.minimum(high, np.where(extra > LENGTH_ROUNDING, accepted / (extra - LENGTH_ROUNDING), np.inf))
    found: Mask = (low - SLACK <= drafts) & (drafts <= high + SLACK) & (extra + LENGTH_ROUNDING > 0)
    return found


def _shares(accepted: Figures, positions: Figures, drafts: Figures) -> Figures:
    """Counts by position; the arithmetic is that of :mod:`collector.formats.counts`. Shape (n, depth)."""
    depth = positions.shape[1]
    counts = np.rint(positions * drafts[:, None])
    missing = accepted - counts.sum(axis=1)
    sign = np.where(missing > 0, 1.0, -1.0)
    left = np.abs(missing)
    for index in range(depth):
        limit = positions[:, index] * drafts + sign * POSITION_ROUNDING * drafts
        room = np.where(
            missing > 0, np.floor(limit + SLACK) - counts[:, index], counts[:, index] - np.ceil(limit - SLACK)
        )
        taken = np.minimum(np.maximum(room, 0), np.ceil(left / (depth - index)))
        counts[:, index] += sign * taken
        left -= taken
    falling = (np.diff(positions, axis=1) <= 0).all(axis=1)
    counts[falling] = -np.sort(-counts[falling], axis=1)
    return np.maximum(counts, 0.0)
