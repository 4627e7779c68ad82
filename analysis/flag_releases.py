"""Which releases of an engine have a flag."""

from __future__ import annotations

from functools import cache

from analysis.resolve import find_engine
from collector.domain.versions import Release


@cache
def releases_with(engine: str, flag: str) -> tuple[Release, ...]:
    """The releases that were read and have the flag; none where that is not known."""
    known = find_engine(engine)
    return () if known is None else tuple(release for release in known.releases if flag in known.defaults(release))


def releases_in_words(engine: str, flag: str) -> str:
    """``0.5.11 and later``, ``0.4.4 to 0.5.10``, ``every release read``; "" where it is not known."""
    having = releases_with(engine, flag)
    known = find_engine(engine)
    if not having or known is None:
        return ""
    if len(having) == len(known.releases):
        return "every release read"
    first, last = having[0], having[-1]
    if last == known.releases[-1]:
        return f"{first} and later"
    return str(first) if first == last else f"{first} to {last}"
