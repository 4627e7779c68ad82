"""The engines whose launch commands are read."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

import collector.launch
from collector.launch.base import Dialect


@cache
def dialects() -> tuple[Dialect, ...]:
    """The launch dialects of this package, by engine."""
    found: list[Dialect] = []
    for info in pkgutil.iter_modules(collector.launch.__path__, "collector.launch."):
        candidate = getattr(importlib.import_module(info.name), "DIALECT", None)
        if isinstance(candidate, Dialect):
            found.append(candidate)
    return tuple(sorted(found, key=lambda dialect: dialect.engine))


def dialect_of(engine: str) -> Dialect:
    """The launch dialect of an engine that a launch command names."""
    return next(dialect for dialect in dialects() if dialect.engine == engine)


def mentions_engine(text: str) -> bool:
    """Whether a text may hold the launch command of an engine."""
    return any(dialect.named_in(text) for dialect in dialects())
