"""Acceptance by position: prefix, conditional and marginal figures, and what each implies.

``prefix`` P_i: share of steps whose first i drafts were all accepted; it falls with i.
``conditional`` a_i = P_i / P_(i-1): how often draft i was accepted when all before it were.
``marginal``: accuracy at a position whatever came before it, as trainers print it. Products of
marginals only approximate a prefix, since easy stretches of text help all positions at once.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, pairwise
from operator import mul

from analysis.theory.settings import DEFAULTS
from collector.domain.drafts import Measure
from collector.domain.errors import ImpossibleFigure


def length_from_prefix(prefix: Sequence[float], depth: int | None = None) -> float:
    """Acceptance length: ``1 + P_1 + ... + P_k``, of the first ``depth`` positions if a depth is given."""
    return 1 + math.fsum(prefix[:depth])


def prefix_from_conditional(conditional: Sequence[float]) -> tuple[float, ...]:
    """``P_i = a_1 a_2 ... a_i``.

    Raises:
        ImpossibleFigure: a rate is not between 0 and 1.
    """
    _check_shares(conditional, 0.0)
    return tuple(accumulate(conditional, mul))


def conditional_from_prefix(
    prefix: Sequence[float], rounding: float = DEFAULTS.position_rounding
) -> tuple[float | None, ...]:
    """``a_i = P_i / P_(i-1)`` with ``P_0 = 1``; ``None`` where no step reached the position.

    Raises:
        ImpossibleFigure: as :func:`check_prefix`.
    """
    check_prefix(prefix, rounding)
    before = (1.0, *prefix)[: len(prefix)]
    return tuple(min(1.0, here / last) if last > 0 else None for here, last in zip(prefix, before, strict=True))


def prefix_from_marginal(marginal: Sequence[float]) -> tuple[float, ...]:
    """Prefix shares if positions were independent: the product of the marginals. An approximation.

    Raises:
        ImpossibleFigure: a rate is not between 0 and 1.
    """
    return prefix_from_conditional(marginal)


def prefix_from_sweep(lengths: Sequence[float], rounding: float = DEFAULTS.printed_rounding) -> tuple[float, ...]:
    """Prefix shares from the lengths of chains of depth 1, 2, 3, ... on the same traffic: ``P_k = L(k) - L(k-1)``.

    Raises:
        ImpossibleFigure: the lengths do not come from one chain (a step is negative, or grows).
    """
    before = (1.0, *lengths)[: len(lengths)]
    prefix = tuple(here - last for here, last in zip(lengths, before, strict=True))
    check_prefix(prefix, 2 * rounding)
    return prefix


def check_prefix(prefix: Sequence[float], rounding: float = DEFAULTS.position_rounding) -> None:
    """Make sure that these can be prefix shares.

    Raises:
        ImpossibleFigure: a share is not between 0 and 1, or is larger than the one before it,
            by more than ``rounding`` on each.
    """
    _check_shares(prefix, rounding)
    for position, (last, here) in enumerate(pairwise(prefix), start=2):
        if here > last + 2 * rounding:
            raise ImpossibleFigure(
                f"acceptance at position {position} is {here:g}, above {last:g} at the position before",
                why="a step accepts draft i only after all drafts before it, so shares of steps fall with the position",
                hint="the list may hold conditional rates or accuracies instead of shares of steps",
            )


def extend_prefix(prefix: Sequence[float], depth: int) -> tuple[float, ...]:
    """Prefix shares down to ``depth``: cut, or continued with the last conditional rate (a geometric tail).

    Raises:
        ImpossibleFigure: as :func:`check_prefix`, or the list is empty and a depth is asked for.
    """
    if depth <= len(prefix):
        return tuple(prefix[:depth])
    conditional = conditional_from_prefix(prefix)
    if not conditional:
        raise ImpossibleFigure("no position to continue from", hint="give the acceptance of at least one position")
    tail = conditional[-1] or 0.0
    missing = depth - len(prefix)
    return (*prefix, *(prefix[-1] * tail**step for step in range(1, missing + 1)))


def list_convention(
    values: Sequence[float],
    length: float,
    *,
    length_rounding: float = DEFAULTS.printed_rounding,
    value_rounding: float = DEFAULTS.position_rounding,
) -> tuple[Measure, ...]:
    """What a list by position holds, told by the length beside it, whatever its label says.

    ``Measure.PREFIX`` if ``1 + sum x_i`` gives the length within rounding,
    ``Measure.CONDITIONAL`` if ``1 + x_1 + x_1 x_2 + ...`` does. Both where both do, nearest
    first; empty where neither does (the two figures contradict).

    Raises:
        ImpossibleFigure: a value is not between 0 and 1.
    """
    _check_shares(values, value_rounding)
    low = [max(0.0, value - value_rounding) for value in values]
    high = [min(1.0, value + value_rounding) for value in values]
    found: list[tuple[float, Measure]] = []
    for measure in (Measure.PREFIX, Measure.CONDITIONAL):
        lowest, highest = (_length_if(measure, list_) for list_ in (low, high))
        if lowest - length_rounding <= length + 1e-9 and length - 1e-9 <= highest + length_rounding:
            found.append((abs(_length_if(measure, values) - length), measure))
    return tuple(measure for _, measure in sorted(found, key=lambda pair: pair[0]))


def _length_if(measure: Measure, values: Sequence[float]) -> float:
    return 1 + math.fsum(values if measure is Measure.PREFIX else accumulate(values, mul))


def _check_shares(values: Sequence[float], rounding: float) -> None:
    for position, value in enumerate(values, start=1):
        if not -rounding <= value <= 1 + rounding:
            raise ImpossibleFigure(
                f"acceptance at position {position} is {value:g}, not between 0 and 1",
                why="it is a share",
                hint="check whether the list holds percentages or counts",
            )
