"""Latencies out of histograms: how often something took at most so long, counted since the start of a process."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from collector.domain.results import Latency
from collector.metrics.exposition import Sample
from collector.metrics.samples import Samples

_PERCENTILES: Final = {"p50": 0.50, "p90": 0.90, "p99": 0.99}


def latencies(names: Mapping[str, str], after: Iterable[Sample], before: Iterable[Sample] = ()) -> dict[str, Latency]:
    """Latencies by quantity, of what was counted between two scrapes, or since the start.

    ``names`` are the histograms of quantities. All series of one are taken together. A quantile lies on
    a straight line within its bucket; one beyond the last bound is not known.

    Source: prometheus.io/docs, ``histogram_quantile``.
    """
    later, earlier = Samples.of(after), Samples.of(before)
    found: dict[str, Latency] = {}
    for quantity, name in names.items():
        count, total = (_sum(later, f"{name}_{part}") - _sum(earlier, f"{name}_{part}") for part in ("count", "sum"))
        if count <= 0:
            continue
        buckets = _buckets(later, name)
        for bound, value in _buckets(earlier, name).items():
            buckets[bound] = buckets.get(bound, 0.0) - value
        quantiles = {label: _quantile(buckets, share * count) for label, share in _PERCENTILES.items()}
        found[quantity] = Latency(mean=total / count, **quantiles)
    return found


def _sum(samples: Samples, name: str) -> float:
    return sum(samples.values[position] for position in samples.table.by_name.get(name, ()))


def _buckets(samples: Samples, name: str) -> dict[float, float]:
    """Observations at or below each bound."""
    counts: dict[float, float] = {}
    for sample in samples.named(f"{name}_bucket"):
        bound = _bound(sample.labels.get("le", ""))
        counts[bound] = counts.get(bound, 0.0) + sample.value
    return counts


def _bound(text: str) -> float:
    """NaN for what is no number."""
    try:
        return float(text)
    except ValueError:
        return math.nan


def _quantile(buckets: Mapping[float, float], rank: float) -> float | None:
    low, below = 0.0, 0.0
    for bound in sorted(bound for bound in buckets if not math.isnan(bound)):
        if buckets[bound] >= rank:
            if math.isinf(bound):
                return None
            inside = buckets[bound] - below
            return low + (bound - low) * (rank - below) / inside if inside > 0 else bound
        low, below = bound, buckets[bound]
    return None
