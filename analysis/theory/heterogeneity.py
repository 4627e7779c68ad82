"""Requests differ: which way the chain formula errs when the acceptance rate varies between them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy import float64
from numpy.typing import NDArray

from analysis.theory.chain import expected_length
from collector.domain.errors import ImpossibleFigure

_NODES = 96


@dataclass(frozen=True, slots=True)
class Mixture:
    """Lengths and first-position acceptance where a request's rate follows a Beta distribution.

    Attributes:
        at_mean: length of a chain whose rate is the mean: what plugging in an average gives.
        equal_tokens: pooled length where requests have equally many tokens, ``1 / E[1 / L(a)]``.
        equal_steps: pooled length where requests have equally many steps, ``E[L(a)]``.
        first_position: pooled acceptance of the first draft under equal tokens,
            ``E[a / L(a)] / E[1 / L(a)]``: below the mean, since hard requests take more steps.
    """

    at_mean: float
    equal_tokens: float
    equal_steps: float
    first_position: float


def beta_mixture(mean: float, concentration: float, depth: int) -> Mixture:
    """The pooled figures of requests with rate ``a ~ Beta(mean s, (1 - mean) s)``, s = concentration.

    Raises:
        ImpossibleFigure: the mean is not strictly between 0 and 1, or the concentration is not above 0.
    """
    if not (0 < mean < 1 and concentration > 0):
        raise ImpossibleFigure(
            f"no Beta distribution has mean {mean:g} and concentration {concentration:g}",
            hint="the mean lies between 0 and 1, the concentration above 0",
        )
    rates, weights = _beta_quadrature(mean, concentration)
    lengths = np.polynomial.polynomial.polyval(rates, np.ones(depth + 1))
    inverse = float(weights @ (1 / lengths))
    return Mixture(
        at_mean=expected_length(mean, depth),
        equal_tokens=1 / inverse,
        equal_steps=float(weights @ lengths),
        first_position=float(weights @ (rates / lengths)) / inverse,
    )


def _beta_quadrature(mean: float, concentration: float) -> tuple[NDArray[float64], NDArray[float64]]:
    """Nodes and weights that integrate against the Beta density: Gauss-Jacobi by Golub and Welsch.

    Weights are normalised from the start, so that large concentrations do not overflow.
    """
    first, second = (1 - mean) * concentration - 1, mean * concentration - 1
    order = np.arange(1, _NODES)
    both = 2 * order + first + second
    diagonal = np.empty(_NODES)
    diagonal[0] = (second - first) / (first + second + 2)
    diagonal[1:] = (second - first) * (second + first) / (both * (both + 2))
    # The first off-diagonal element with the factor (1 + first + second), 0/0 at -1, cancelled.
    product = order[1:] * (order[1:] + first + second) / (both[1:] - 1)
    ratio = np.append(1.0, product) * (order + first) * (order + second) / (both + 1)
    beside = 2 / both * np.sqrt(ratio)
    nodes, vectors = np.linalg.eigh(np.diag(diagonal) + np.diag(beside, 1) + np.diag(beside, -1))
    return (nodes + 1) / 2, vectors[0] ** 2
