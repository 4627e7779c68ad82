"""Alert channels: one module a kind, found here."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Mapping
from functools import cache

from dashboard.sinks.base import Sink


@cache
def sink_kinds() -> Mapping[str, type[Sink]]:
    """Every kind of channel by its name in the settings.

    Raises:
        TypeError: two kinds share a name.
    """
    found: dict[str, type[Sink]] = {}
    for module_info in pkgutil.iter_modules(__path__, f"{__name__}."):
        module = importlib.import_module(module_info.name)
        for _, item in inspect.getmembers(module, inspect.isclass):
            if not issubclass(item, Sink) or inspect.isabstract(item) or item.__module__ != module.__name__:
                continue
            if item.kind in found:
                raise TypeError(f"{module.__name__}: channel kind {item.kind} exists already")
            found[item.kind] = item
    return found
