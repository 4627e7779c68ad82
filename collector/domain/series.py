"""Metrics that are kept beside the windows, under the engine's own names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple


class SeriesSample(NamedTuple):
    """One value of one series.

    Fields: the metric's ``name`` and ``labels`` as the engine exposes them, ``at`` in seconds
    since 1970, ``value`` as exposed (counters are not differenced).
    """

    name: str
    labels: Mapping[str, str]
    at: float
    value: float
