"""Which of several replicas, ranks or engines falls behind its siblings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.theory.divergence import divergence_test
from analysis.theory.intervals import Interval
from analysis.theory.settings import DEFAULTS, Settings


@dataclass(frozen=True, slots=True)
class ReplicaFigures:
    """One replica's interval and the verify steps it rests on."""

    interval: Interval
    steps: float


@dataclass(frozen=True, slots=True)
class ReplicaVerdict:
    """One replica against the pool of the others.

    Attributes:
        unit: the replica's name.
        accepted_per_step: its own figure. siblings: what it is compared with.
        share: its figure over theirs.
        p_value: one-sided, of a share this small if the true one were at the margin.
        outlier: whether it counts as behind, with the share of false ones among such controlled.
    """

    unit: str
    accepted_per_step: float
    siblings: float
    share: float
    p_value: float
    outlier: bool


def benjamini_hochberg(p_values: Sequence[float], rate: float = DEFAULTS.false_discovery_rate) -> tuple[int, ...]:
    """Indexes of the rejected hypotheses at this false discovery rate, in ascending order.

    Source: Benjamini & Hochberg (1995).
    """
    order = sorted(range(len(p_values)), key=lambda index: p_values[index])
    passing = [rank for rank, index in enumerate(order, start=1) if p_values[index] <= rate * rank / len(p_values)]
    return tuple(sorted(order[: passing[-1]])) if passing else ()


def compare_replicas(
    replicas: Mapping[str, ReplicaFigures], settings: Settings = DEFAULTS
) -> tuple[ReplicaVerdict, ...]:
    """Each replica against the others, in the order given; nothing to say of fewer than two.

    The test is that of :mod:`analysis.theory.divergence` against the leave-one-out pool with the
    replica margin; the pool's own error counts. Where the median of the others is lower than their
    pool it stands in, so that one better replica does not make outliers of the rest. Replicas whose
    siblings accept nothing are not judged.
    """
    verdicts: list[ReplicaVerdict] = []
    all_steps = np.array([figures.steps for figures in replicas.values()], dtype=float)
    rates = np.array([figures.interval.accepted_per_step for figures in replicas.values()], dtype=float)
    errors = np.array([_error(figures.interval) for figures in replicas.values()], dtype=float)
    for index, (unit, own) in enumerate(replicas.items()):
        others = np.arange(len(replicas)) != index
        steps = float(all_steps[others].sum())
        if steps == 0:
            continue
        pooled = float((all_steps * rates)[others].sum()) / steps
        siblings = min(pooled, float(np.median(rates[others])))
        if siblings == 0:
            continue
        pooled_error = float(np.sqrt((((all_steps * errors)[others]) ** 2).sum())) / steps
        test = divergence_test(own.interval, siblings, settings.replica_margin, pooled_error, settings)
        verdicts.append(
            ReplicaVerdict(
                unit, own.interval.accepted_per_step, siblings, test.retained_share, test.p_value, outlier=False
            )
        )
    behind = set(benjamini_hochberg([verdict.p_value for verdict in verdicts], settings.false_discovery_rate))
    return tuple(
        ReplicaVerdict(v.unit, v.accepted_per_step, v.siblings, v.share, v.p_value, index in behind)
        for index, v in enumerate(verdicts)
    )


def _error(interval: Interval) -> float:
    """Standard error that agrees with the guarded half width."""
    return interval.half / interval.quantile
