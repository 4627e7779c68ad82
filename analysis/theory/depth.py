"""How deep to draft, and whether to draft at all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from analysis.theory.positions import check_prefix, extend_prefix
from analysis.theory.settings import DEFAULTS, Settings
from collector.domain.errors import ImpossibleFigure, InputError


@dataclass(frozen=True, slots=True)
class BestDepth:
    """The depth to run with.

    Attributes:
        depth: the recommended depth: the smallest whose speed-up is within 3% of the best, since a
            shorter draft loads the target less under bursts. 0: turn speculation off.
        fastest: the depth with the highest speed-up.
        speedups: speed-up at depth 0, 1, 2, ...; at 0 it is 1.
        errors: standard error of each, zero where none was given.
        measured: positions beyond this one are extrapolated with the last conditional rate.
        gain: recommended over current speed-up.
        gain_low, gain_high: its 95% interval.
        certain: whether the recommended depth beats the current one beyond the error; true where they are the same.
    """

    depth: int
    fastest: int
    speedups: tuple[float, ...]
    errors: tuple[float, ...]
    measured: int
    gain: float
    gain_low: float
    gain_high: float
    certain: bool

    @property
    def turn_off(self) -> bool:
        """Whether no depth is worth it."""
        return self.depth == 0


def speedup_by_depth(
    prefix: Sequence[float], draft_cost: float, verify_cost: float | Sequence[float], overhead: float = 0.0
) -> tuple[float, ...]:
    """``S(k) = (1 + P_1 + ... + P_k) / (v_k + k c + o)`` for k = 0 (where it is 1) to the number of positions.

    ``verify_cost`` is one figure, or one per depth from 1 on, in plain steps; so is ``draft_cost`` per position.

    Raises:
        ImpossibleFigure: shares grow with the position, or a cost is not above zero.
        InputError: there are fewer verify costs than positions.
    """
    check_prefix(prefix)
    ratios = _ratios(len(prefix), draft_cost, verify_cost, overhead)
    return (1.0, *((1 + math.fsum(prefix[:depth])) / ratio for depth, ratio in enumerate(ratios, start=1)))


def worth_another_position(
    next_share: float, speedup: float, draft_cost: float, verify_growth: float = 0.0
) -> tuple[bool, float]:
    """Whether one position more pays, and the share it must exceed: ``P_(k+1) > S(k) (c + dv)``."""
    threshold = speedup * (draft_cost + verify_growth)
    return next_share > threshold, threshold


def split_step_cost(step_cost_ratio: float, depth: float, draft_cost: float) -> tuple[float, float]:
    """Split a step cost measured at one depth into verify and draft cost, given the class's slope per position.

    A verify step cannot cost less than a plain one, so the slope is lowered where it would.
    """
    if step_cost_ratio - depth * draft_cost >= 1 or depth == 0:
        return step_cost_ratio - depth * draft_cost, draft_cost
    return 1.0, max(0.0, (step_cost_ratio - 1) / depth)


def best_depth(
    prefix: Sequence[float],
    draft_cost: float,
    verify_cost: float | Sequence[float],
    *,
    overhead: float = 0.0,
    current: int = 0,
    errors: Sequence[float] = (),
    longest: int | None = None,
    settings: Settings = DEFAULTS,
) -> BestDepth:
    """The best depth from shares by position and costs.

    ``prefix`` holds P_1 to P_k as measured at one depth (shares drift up by 2 to 4% when the depth
    shrinks), ``errors`` their standard errors, ``current`` the depth that runs now, ``longest`` up
    to where to look; at most two positions beyond the measured ones are extrapolated.

    Raises:
        ImpossibleFigure, InputError: as :func:`speedup_by_depth`.
    """
    measured = len(prefix)
    limit = min(longest if longest is not None else measured, measured + settings.depth_extension)
    shares = extend_prefix(prefix, limit) if prefix else ()
    spreads = [*errors, *([errors[-1] if errors else 0.0] * len(shares))][: len(shares)]
    speedups = speedup_by_depth(shares, draft_cost, verify_cost, overhead)
    ratios = (1.0, *_ratios(len(shares), draft_cost, verify_cost, overhead))
    fastest = max(range(len(speedups)), key=lambda depth: (speedups[depth], -depth))
    close_enough = speedups[fastest] * (1 - settings.depth_indifference)
    depth = next(candidate for candidate, speedup in enumerate(speedups) if speedup >= close_enough)
    current = min(current, len(speedups) - 1)
    gain = speedups[depth] / speedups[current]
    # Shares of neighbouring positions err together, so their errors add up rather than average out.
    relative = math.fsum(
        abs(
            (position < depth) / (speedups[depth] * ratios[depth])
            - (position < current) / (speedups[current] * ratios[current])
        )
        * spread
        for position, spread in enumerate(spreads)
    )
    low, high = gain * math.exp(-1.96 * relative), gain * math.exp(1.96 * relative)
    return BestDepth(
        depth=depth,
        fastest=fastest,
        speedups=speedups,
        errors=tuple(math.fsum(spreads[:k]) / ratio for k, ratio in enumerate(ratios)),
        measured=measured,
        gain=gain,
        gain_low=low,
        gain_high=high,
        certain=depth == current or low > 1,
    )


def _ratios(
    positions: int, draft_cost: float, verify_cost: float | Sequence[float], overhead: float
) -> tuple[float, ...]:
    verify = [float(verify_cost)] * positions if isinstance(verify_cost, (int, float)) else list(verify_cost)
    if len(verify) < positions:
        raise InputError(
            f"{len(verify)} verify costs for {positions} depths", hint="give one per depth, or one for all"
        )
    ratios = tuple(verify[k - 1] + k * draft_cost + overhead for k in range(1, positions + 1))
    if any(not ratio > 0 for ratio in ratios):
        raise ImpossibleFigure("a step that costs nothing", hint="costs are in plain decode steps, above zero")
    return ratios
