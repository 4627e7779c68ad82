"""Forms of a report: one module each, found here."""

from __future__ import annotations

import difflib
import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache

from collector.domain.errors import UnknownName
from dashboard.formats.base import ReportFormat

__all__ = ["ReportFormat", "find_format", "formats"]


@cache
def formats() -> Mapping[str, ReportFormat]:
    """Every form by its name, ``text`` first."""
    found: dict[str, ReportFormat] = {}
    for info in pkgutil.iter_modules(__path__, f"{__name__}."):
        candidate = getattr(importlib.import_module(info.name), "FORMAT", None)
        if isinstance(candidate, ReportFormat):
            found[candidate.name] = candidate
    return dict(sorted(found.items(), key=lambda item: (item[0] != "text", item[0])))


def find_format(name: str) -> ReportFormat:
    """The form of this name.

    Raises:
        UnknownName: there is none; the hint names the nearest.
    """
    known = formats()
    if name.lower() not in known:
        near = difflib.get_close_matches(name.lower(), known, 1, 0.5)
        hint = f"did you mean {near[0]}?" if near else f"known forms: {', '.join(known)}"
        raise UnknownName(f"no report has the form {name!r}", where="--format", hint=hint)
    return known[name.lower()]
