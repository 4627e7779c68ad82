"""What a launch command stands in: shell text, manifests, units, lists of processes. One module a kind, found here."""

from __future__ import annotations

import importlib
import pkgutil
from functools import cache

from collector.launch.sources.base import LaunchSource, Snippet

__all__ = ["LaunchSource", "Snippet", "launch_sources", "snippets_of"]


@cache
def launch_sources() -> tuple[LaunchSource, ...]:
    """Every kind, in the order in which they are tried."""
    found: list[LaunchSource] = []
    for info in pkgutil.iter_modules(__path__, f"{__name__}."):
        candidate = getattr(importlib.import_module(info.name), "SOURCE", None)
        if isinstance(candidate, LaunchSource):
            found.append(candidate)
    return tuple(sorted(found, key=lambda item: item.order))


def snippets_of(text: str, source: str) -> list[Snippet]:
    """The parts of a text in which commands may stand, read as the first kind that knows the text.

    Raises:
        MalformedInput: the text is of a known kind and broken.
    """
    for kind in launch_sources():
        snippets = kind.snippets(text, source)
        if snippets is not None:
            return snippets
    return []
