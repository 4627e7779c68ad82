"""Engine logs: one module or package per engine, found by walking this package.

Adding a format is adding a module with a ``FORMAT``; nothing else lists them.
"""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from collector.domain.errors import UnknownName
from collector.formats.base import LogFormat


@cache
def formats() -> tuple[LogFormat, ...]:
    """Every log format of this package, by engine."""
    found: list[LogFormat] = []
    for info in pkgutil.iter_modules(__path__, f"{__name__}."):
        module = importlib.import_module(info.name)
        candidate = getattr(module, "FORMAT", None)
        if isinstance(candidate, LogFormat):
            found.append(candidate)
    return tuple(sorted(found, key=lambda log_format: log_format.engine))


def format_of(engine: str) -> LogFormat:
    """The format of an engine's log.

    Raises:
        UnknownName: no log of that engine is read.
    """
    for log_format in formats():
        if log_format.engine == engine:
            return log_format
    known = ", ".join(log_format.engine for log_format in formats())
    raise UnknownName(f"no log format for engine {engine!r}", hint=f"known engines: {known}")
