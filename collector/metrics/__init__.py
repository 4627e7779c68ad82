"""Live metrics: one module or package per engine, found by walking this package.

Adding an engine is adding a module with a ``METRICS``; nothing else lists them.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from collector.metrics.base import EngineMetrics


@cache
def engines() -> tuple[EngineMetrics, ...]:
    """The engines whose metrics are read, by name."""
    found: list[EngineMetrics] = []
    for info in pkgutil.iter_modules(__path__, f"{__name__}."):
        candidate = getattr(importlib.import_module(info.name), "METRICS", None)
        if isinstance(candidate, EngineMetrics):
            found.append(candidate)
    return tuple(sorted(found, key=lambda metrics: metrics.engine))


def engine_of(body: bytes) -> EngineMetrics | None:
    """The engine whose metrics a body holds, by how their names begin; ``None`` where none of them is known."""
    text = b"\n" + body
    return next(
        (engine for engine in engines() if any(b"\n" + prefix.encode() in text for prefix in engine.prefixes)), None
    )
