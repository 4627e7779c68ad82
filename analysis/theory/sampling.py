"""How sampling changes acceptance: from the two distributions to the chance that a draft is accepted.

``target`` p and ``draft`` q are probabilities along the last axis; leading axes are positions.
"""

from __future__ import annotations

import numpy as np
from numpy import float64
from numpy.typing import ArrayLike, NDArray

from collector.domain.errors import ImpossibleFigure


def overlap(target: ArrayLike, draft: ArrayLike) -> NDArray[float64]:
    """Acceptance of rejection sampling when the draft samples too: ``sum min(p, q) = 1 - TV(p, q)``.

    Raises:
        ImpossibleFigure: these are not probabilities over the same tokens.
    """
    p, q = _distributions(target, draft)
    return np.asarray(np.minimum(p, q).sum(axis=-1))


def greedy_draft_acceptance(target: ArrayLike, draft: ArrayLike) -> NDArray[float64]:
    """Acceptance when the draft takes its first choice and the target samples: ``p(arg max q)``.

    Source: vLLM V1 since pull request 16899.

    Raises:
        ImpossibleFigure: as :func:`overlap`.
    """
    p, q = _distributions(target, draft)
    return np.take_along_axis(p, q.argmax(axis=-1)[..., None], axis=-1)[..., 0]


def agreement(target: ArrayLike, draft: ArrayLike) -> NDArray[np.bool_]:
    """Whether the first choices agree: acceptance at temperature 0.

    Raises:
        ImpossibleFigure: as :func:`overlap`.
    """
    p, q = _distributions(target, draft)
    return np.asarray(p.argmax(axis=-1) == q.argmax(axis=-1))


def overlap_bounds(target: ArrayLike, draft: ArrayLike) -> tuple[NDArray[float64], NDArray[float64]]:
    """What the first choices alone say of the overlap: lowest and highest it can be.

    If they agree on m, at least ``min(p_m, q_m)``. If not (u and v), at most
    ``1 - ((p_u - p_v) + (q_v - q_u)) / 2``.

    Raises:
        ImpossibleFigure: as :func:`overlap`.
    """
    p, q = _distributions(target, draft)
    u, v = p.argmax(axis=-1)[..., None], q.argmax(axis=-1)[..., None]
    p_u, p_v, q_u, q_v = (np.take_along_axis(values, choice, axis=-1)[..., 0] for values in (p, q) for choice in (u, v))
    agree = (u == v)[..., 0]
    lowest = np.where(agree, np.minimum(p_u, q_v), 0.0)
    highest = np.where(agree, 1.0, 1 - ((p_u - p_v) + (q_v - q_u)) / 2)
    return lowest, highest


def _distributions(target: ArrayLike, draft: ArrayLike) -> tuple[NDArray[float64], NDArray[float64]]:
    p, q = np.asarray(target, dtype=float), np.asarray(draft, dtype=float)
    if p.shape != q.shape:
        raise ImpossibleFigure(
            f"distributions of shapes {p.shape} and {q.shape}", why="both must speak of the same positions and tokens"
        )
    for name, values in (("target", p), ("draft", q)):
        if not ((values >= 0).all() and np.allclose(values.sum(axis=-1), 1, atol=1e-6)):
            raise ImpossibleFigure(f"the {name}'s values are not probabilities", why="they must sum to 1")
    return p, q
