"""What carries logs puts around their lines; one module per kind, found by walking this package.

Adding a kind is adding a module with a ``WRAPPER``; nothing else lists them.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from typing import Final, NamedTuple

from collector.formats.tidy import without_escapes
from collector.formats.wrappers.base import Peeled, Wrapper

LINES_SAMPLED: Final = 400
ENOUGH: Final = 0.5
ENOUGH_IF_LOOSE: Final = 0.8
"""Share of sampled lines that must be wrapped alike."""
DEEPEST: Final = 8

Likeness = Callable[[bytes], int]
"""How much a text looks like an engine's log; 0 for not at all."""


@cache
def wrappers() -> tuple[Wrapper, ...]:
    """Every kind of wrapping of this package, by name."""
    found: list[Wrapper] = []
    for info in pkgutil.iter_modules(__path__, f"{__name__}."):
        candidate = getattr(importlib.import_module(info.name), "WRAPPER", None)
        if isinstance(candidate, Wrapper):
            found.append(candidate)
    return tuple(sorted(found, key=lambda wrapper: wrapper.name))


class _Candidate(NamedTuple):
    """How well a kind fits; the larger the better."""

    share: float
    likeness: int
    kept: int
    wrapper: Wrapper


def recognise_wrapper(head: bytes, likeness: Likeness, depth: int = 0) -> Wrapper | None:
    """How the lines of a log that begins like this are wrapped, ``None`` if they stand by themselves.

    Of several kinds that fit, the one wins that fits most lines, then the one beneath which an
    engine is found, then the one that takes most away.
    """
    lines = _lines(head)
    if not lines or depth >= DEEPEST:
        return None
    sample = lines[:: max(1, len(lines) // LINES_SAMPLED)]
    candidates: list[_Candidate] = []
    for wrapper in wrappers():
        share = sum(1 for line in sample if _peeled(wrapper, line) is not None) / len(sample)
        if share < (ENOUGH_IF_LOOSE if wrapper.loose else ENOUGH):
            continue
        beneath = b"\n".join(found.text for line in lines if (found := _peeled(wrapper, line)) is not None)
        alike = likeness(beneath)
        if (
            wrapper.loose
            and not _better(alike, lines, likeness)
            and not recognise_wrapper(beneath, likeness, depth + 1)
        ):
            continue
        candidates.append(_Candidate(share, alike, -len(beneath), wrapper))
    return max(candidates, key=lambda candidate: candidate[:3]).wrapper if candidates else None


def _better(alike: int, lines: list[bytes], likeness: Likeness) -> bool:
    """Whether lines look less like an engine's log as they are; only what begins a line counts."""
    return alike > likeness(b"\n".join(lines).replace(b"\r", b" "))


def _peeled(wrapper: Wrapper, line: bytes) -> Peeled | None:
    """A line, or what stands behind a progress bar in it, without its wrapping."""
    found = wrapper.peel(line)
    return wrapper.peel(line.rpartition(b"\r")[2]) if found is None and b"\r" in line else found


def _lines(head: bytes) -> list[bytes]:
    """The lines of a head without those that say nothing and the last one, which may be cut."""
    lines = head.split(b"\n")
    if len(lines) > 1:
        lines.pop()
    return [tidy for line in lines if (tidy := without_escapes(line).strip(b"\x00\r")).strip()]
