"""vLLM: what ``vllm serve`` and the offline engine make of their flags, releases 0.8.5 to 0.32.0.

Settings inside ``speculative_config`` and ``compilation_config`` are named with a dot, as the
log reader names them. The modules follow the engine's own stations; importing them registers
their steps.

Source: ``vllm/config/speculative.py``, ``vllm/config/vllm.py`` and ``vllm/engine/arg_utils.py``
of the releases in ``engine.READ``.
"""

from __future__ import annotations

from analysis.resolve.vllm import (
    caches,
    checks,
    depth,
    generation,
    graphs,
    head,
    methods,
    requests,
    scheduling,
    start,
)
from analysis.resolve.vllm.engine import ENGINE

__all__ = [
    "ENGINE",
    "caches",
    "checks",
    "depth",
    "generation",
    "graphs",
    "head",
    "methods",
    "requests",
    "scheduling",
    "start",
]
