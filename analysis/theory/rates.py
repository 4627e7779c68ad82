"""Which formula an engine's printed accept rate follows.

Five are in use. L is the acceptance length, k the depth, n the verify width (root included);
for a chain n = k + 1, so the first two agree, and so do the next two.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from analysis.theory.settings import DEFAULTS
from collector.domain.errors import ImpossibleFigure

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


class RateDefinition(StrEnum):
    """A formula of a printed accept rate; the value is its name everywhere."""

    LENGTH_WIDTH = "length/width"
    """L / n: counts the target's own token. SGLang 0.5.5 to 0.5.10."""
    LENGTH_MAX_LENGTH = "length/max_length"
    """L / (k + 1): counts the target's own token. SGLang 0.5.3.post2 to 0.5.4; vLLM V0 system efficiency."""
    ACCEPTED_DRAFTED = "accepted/drafted"
    """(L - 1) / (n - 1): the strict one."""
    ACCEPTED_DEPTH = "accepted/depth"
    """(L - 1) / k: share of the largest possible run."""
    LENGTH_DEPTH = "length/depth"
    """L / k: counts the target's own token and may exceed 1."""

    @property
    def counts_bonus(self) -> bool:
        """Whether the numerator holds the target's own token."""
        return self.value.startswith("length")


@dataclass(frozen=True, slots=True)
class RateMatch:
    """Which definitions agree with printed rates over all windows.

    ``definition`` is the nearest one, ``None`` if none agrees; ``ties`` are all that agree,
    nearest first. ``candidates`` holds, for each definition that could be formed, its mean rate
    over the windows, ``deviations`` its largest distance from what was printed.
    """

    definition: RateDefinition | None
    ties: tuple[RateDefinition, ...]
    candidates: Mapping[RateDefinition, float]
    deviations: Mapping[RateDefinition, float]


def rate_parts(definition: RateDefinition, depth: float | None, width: float | None) -> tuple[float, float] | None:
    """The formula as (tokens taken off the length, denominator); ``None`` if it cannot be formed."""
    bonus = 0.0 if definition.counts_bonus else 1.0
    denominator = {
        RateDefinition.LENGTH_WIDTH: width,
        RateDefinition.LENGTH_MAX_LENGTH: None if depth is None else depth + 1,
        RateDefinition.ACCEPTED_DRAFTED: None if width is None else width - 1,
        RateDefinition.ACCEPTED_DEPTH: depth,
        RateDefinition.LENGTH_DEPTH: depth,
    }[definition]
    return None if denominator is None or denominator <= 0 else (bonus, denominator)


def rate_from_length(
    length: float, definition: RateDefinition, depth: float | None, width: float | None = None
) -> float:
    """The rate that a definition gives for this length.

    Raises:
        ImpossibleFigure: the definition needs a depth or width that is unknown or zero.
    """
    bonus, denominator = _formed(definition, depth, width)
    return (length - bonus) / denominator


def length_from_rate(rate: float, definition: RateDefinition, depth: float | None, width: float | None = None) -> float:
    """The length behind a printed rate.

    Raises:
        ImpossibleFigure: as :func:`rate_from_length`.
    """
    bonus, denominator = _formed(definition, depth, width)
    return rate * denominator + bonus


def infer_rate_definition(
    length: float | ArrayLike,
    rate: float | ArrayLike,
    depth: float | None,
    width: float | None,
    rounding: float = DEFAULTS.printed_rounding,
) -> RateMatch:
    """The definition that turns printed lengths into the printed rates, over one window or all of them.

    Both figures are rounded, so a definition agrees where its rate is within ``rounding`` of the
    printed one for some length within ``rounding`` of the printed one. A definition must agree in
    every window; windows without either figure (NaN) are left out.
    """
    import numpy as np

    lengths, rates = np.broadcast_arrays(np.asarray(length, dtype=float), np.asarray(rate, dtype=float))
    stated = ~(np.isnan(lengths) | np.isnan(rates))
    lengths, rates = lengths[stated], rates[stated]
    candidates: dict[RateDefinition, float] = {}
    deviations: dict[RateDefinition, float] = {}
    agreeing: list[tuple[float, RateDefinition]] = []
    for definition in RateDefinition:
        parts = rate_parts(definition, depth, width)
        if parts is None or lengths.size == 0:
            continue
        bonus, denominator = parts
        formed = (lengths - bonus) / denominator
        distance = np.abs(formed - rates)
        candidates[definition], deviations[definition] = float(formed.mean()), float(distance.max())
        if deviations[definition] <= rounding * (1 + 1 / denominator) + 1e-9:
            # Rounded past the arithmetic's noise, so that equal formulas keep the order they are known in.
            agreeing.append((round(float(distance.mean()), 9), definition))
    ties = tuple(definition for _, definition in sorted(agreeing, key=lambda pair: pair[0]))
    return RateMatch(ties[0] if ties else None, ties, candidates, deviations)


def _formed(definition: RateDefinition, depth: float | None, width: float | None) -> tuple[float, float]:
    parts = rate_parts(definition, depth, width)
    if parts is None:
        raise ImpossibleFigure(
            f"the rate {definition} cannot be formed at depth {depth} and verify width {width}",
            why="its denominator is unknown or zero",
            hint="give the draft depth and the number of draft tokens",
        )
    return parts
