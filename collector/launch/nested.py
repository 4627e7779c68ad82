"""Settings inside one option's value, named with a dot: ``speculative_config.method``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

NESTED: Final = frozenset({"speculative_config", "compilation_config"})
"""Options whose settings are compared one by one; other mappings stay whole."""


def flattened(values: Mapping[str, Any]) -> dict[str, Any]:
    """The same values, with each setting of a nested option under a name of its own."""
    named: dict[str, Any] = {}
    for name, value in values.items():
        if name in NESTED and isinstance(value, Mapping) and value:
            named |= {f"{name}.{key}": inner for key, inner in value.items()}
        else:
            named[name] = value
    return named
