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
    """A kind that fits a share of the lines, and what is beneath it."""

    share: float
    beneath: bytes
    wrapper: Wrapper


def recognise_wrapper(head: bytes, likeness: Likeness, depth: int = 0) -> Wrapper | None:
    """How the lines of a log that begins like this are wrapped, ``None`` if they stand by themselves.

    Of several kinds that fit, the one wins that fits most lines, then the one beneath which, and whatever else is
    around the lines there, most of an engine is found, then the one that takes most away.
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
        beneath = _beneath(wrapper, lines)
        if (
            wrapper.loose
            and not _better(likeness(beneath), lines, likeness)
            and not recognise_wrapper(beneath, likeness, depth + 1)
        ):
            continue
        candidates.append(_Candidate(share, beneath, wrapper))
    most = max((candidate.share for candidate in candidates), default=0.0)
    best = [candidate for candidate in candidates if candidate.share == most]
    if len(best) > 1:
        best.sort(key=lambda one: (-_innermost(one.beneath, likeness, depth + 1), len(one.beneath)))
    return best[0].wrapper if best else None


def _innermost(head: bytes, likeness: Likeness, depth: int) -> int:
    """How much a text looks like an engine's log once nothing is around its lines any more."""
    wrapper = recognise_wrapper(head, likeness, depth)
    return likeness(head) if wrapper is None else _innermost(_beneath(wrapper, _lines(head)), likeness, depth + 1)


def _beneath(wrapper: Wrapper, lines: list[bytes]) -> bytes:
    """What lines are without their wrapping, those that came in parts as one; others are left out."""
    texts = [b""]
    for found in (_peeled(wrapper, line) for line in lines):
        if found is not None:
            texts[-1] += found.text
            if found.whole:
                texts.append(b"")
    return b"\n".join(texts)


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
