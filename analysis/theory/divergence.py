"""Do drafts get accepted as often as validation implies, allowing for what is legitimately lost?"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from analysis.theory.intervals import CONSERVATIVE, Interval, t_probability
from analysis.theory.settings import DEFAULTS, Settings
from collector.domain.errors import ImpossibleFigure

Verdict = Literal["divergent", "consistent", "inconclusive"]


def healthy_factor(depth: float | None, settings: Settings = DEFAULTS) -> tuple[float, bool]:
    """Share of promised drafts a healthy deployment delivers at this depth, and whether that is extrapolated.

    Validation averages over all positions, whereas a step starts where the draft just failed; and
    neighbouring tokens are alike, so the chain formula promises too much. Beyond the measured depths
    the last factor is used, for an unknown depth that of depth 5; both count as extrapolated.
    """
    factors = (1.0, *settings.healthy_factors)
    if depth is None:
        return factors[settings.unknown_depth], True
    if depth >= len(factors) - 1:
        return factors[-1], depth > len(factors) - 1
    whole = math.floor(depth)
    return factors[whole] + (depth - whole) * (factors[whole + 1] - factors[whole]), False


def temperature_factor(temperature: float | None, settings: Settings = DEFAULTS) -> float:
    """Share of accepted drafts that sampling leaves: 1 when greedy (or unknown), 0.9 up to 0.7, 0.83 from 1 on.

    Between 0.7 and 1 it is interpolated.
    """
    if temperature is None or temperature <= 0:
        return 1.0
    if temperature <= settings.mild_temperature:
        return settings.mild_temperature_factor
    way = min(1.0, (temperature - settings.mild_temperature) / (1 - settings.mild_temperature))
    return settings.mild_temperature_factor + way * (
        settings.full_temperature_factor - settings.mild_temperature_factor
    )


def mixed_temperature_factor(
    shares: Mapping[float, float], validated: float | None = None, settings: Settings = DEFAULTS
) -> float:
    """The same for traffic at several temperatures: ``sum w_T f_T``, w the share of verify steps; 1 where none is known.

    What the validation already sampled, at ``validated`` or below, costs nothing more.
    """
    if not shares:
        return 1.0
    total = math.fsum(shares.values())
    return (
        math.fsum(
            share
            * (
                1.0
                if validated is not None and 0 < temperature <= validated
                else temperature_factor(temperature, settings)
            )
            for temperature, share in shares.items()
        )
        / total
    )


def margin(
    depth: float | None, temperature: float | None, *, replayed: bool = False, settings: Settings = DEFAULTS
) -> float:
    """Share of the promised drafts below which a deployment counts as divergent: ``0.9 f_k f_T``.

    ``replayed``: the validation walked the text in steps instead of averaging over positions, so
    that only the temperature is allowed for.
    """
    healthy = 1.0 if replayed else healthy_factor(depth, settings)[0]
    return settings.tolerance * healthy * temperature_factor(temperature, settings)


def realistic_length(
    expected_length: float,
    depth: float | None,
    temperature: float | None,
    *,
    replayed: bool = False,
    settings: Settings = DEFAULTS,
) -> float:
    """What a healthy deployment delivers of a promised length: ``1 + f_k f_T (promised - 1)``."""
    healthy = 1.0 if replayed else healthy_factor(depth, settings)[0]
    return 1 + healthy * temperature_factor(temperature, settings) * (expected_length - 1)


@dataclass(frozen=True, slots=True)
class Divergence:
    """Outcome of the divergence test.

    Attributes:
        retained_share: r, accepted per step over what validation implies.
        low, high: its 95% interval.
        p_value: one-sided, of a share this small if the true one were at the margin.
        verdict: ``divergent`` (all of the interval below the margin), ``consistent`` (all of it
            at or above) or ``inconclusive``.
        windows_needed: about how many windows (requests, for a request-level interval) a verdict
            takes in all; ``None`` where there is one, or where no number would do.
    """

    retained_share: float
    low: float
    high: float
    p_value: float
    verdict: Verdict
    windows_needed: int | None


def divergence_test(
    interval: Interval,
    expected_accepted: float,
    margin: float,
    expected_error: float = 0.0,
    settings: Settings = DEFAULTS,
) -> Divergence:
    """Test accepted per step against ``margin`` times what validation implies, ``expected_accepted`` = e.

    ``r = R / e`` with interval ``(R +- half) / e``; the error of e, where it has one, adds
    ``(r error / e)^2`` to the variance of r. The p-value agrees with the interval.

    Raises:
        ImpossibleFigure: nothing is expected to be accepted.
    """
    if not expected_accepted > 0:
        raise ImpossibleFigure(
            f"expected {expected_accepted:g} accepted drafts per step",
            why="validation that promises no accepted draft leaves nothing to compare with",
            hint="check the validation figures and the draft depth",
        )
    quantile = interval.quantile
    share = interval.accepted_per_step / expected_accepted
    half = math.hypot(interval.half / expected_accepted, quantile * share * expected_error / expected_accepted)
    low, high = share - half, share + half
    verdict: Verdict = "divergent" if high < margin else "consistent" if low >= margin else "inconclusive"
    distance = share - margin
    p_value = t_probability(interval.degrees_of_freedom, distance * quantile / half) if half < math.inf else 0.5
    return Divergence(share, low, high, p_value, verdict, _needed(interval, distance, half, verdict, settings))


def _needed(interval: Interval, distance: float, half: float, verdict: Verdict, settings: Settings) -> int | None:
    if verdict != "inconclusive":
        return None
    if interval.method == CONSERVATIVE:
        # Its width is assumed; how far the measured one will reach is known once there is one.
        return settings.minimum_windows
    if distance == 0 or half == math.inf:
        return None
    return max(interval.count + 1, math.ceil(interval.count * (half / distance) ** 2))
