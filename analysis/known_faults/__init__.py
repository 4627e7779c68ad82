"""Faults of the engines that are known upstream: data by engine, matched against a judged run.

One YAML file an engine; adding a fault is one entry there and one in ``tests/known_faults``.
"""

from __future__ import annotations

from analysis.known_faults.base import KnownFault, known_faults
from analysis.known_faults.matching import Match, Standing, matched

__all__ = ["KnownFault", "Match", "Standing", "known_faults", "matched"]
