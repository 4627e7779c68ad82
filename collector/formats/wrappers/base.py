"""What may stand around the lines of a log, put there by whatever carried them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple


class Peeled(NamedTuple):
    """A line without its wrapping.

    Fields:
        text: what the program wrote; where that were several lines, with newlines between them.
        stream: whose log the line belongs to (pod, service, unit); "" where the wrapping does not tell.
        channel: within a stream, what partial lines are joined by (``stdout``, a rank).
        whole: ``False`` where the next line of the same channel goes on with this one.
    """

    text: bytes
    stream: bytes = b""
    channel: bytes = b""
    whole: bool = True


@dataclass(frozen=True, slots=True)
class WrappedSample:
    """A line as it is found, and what is inside."""

    line: str
    peeled: Peeled


@dataclass(frozen=True, slots=True)
class Wrapper:
    """One kind of wrapping.

    ``peel`` takes a line apart, or gives ``None`` for one that is not wrapped so. ``loose`` marks a
    form that other text may have by chance: it counts only if an engine's lines are found beneath.
    """

    name: str
    title: str
    peel: Callable[[bytes], Peeled | None]
    samples: tuple[WrappedSample, ...]
    loose: bool = False


def check_samples(wrapper: Wrapper) -> list[str]:
    """What is wrong with a wrapper: samples that it does not peel as stated."""
    problems = [] if wrapper.samples else [f"{wrapper.name} has no sample"]
    for sample in wrapper.samples:
        found = wrapper.peel(sample.line.encode())
        if found != sample.peeled:
            problems.append(f"{wrapper.name} peels {sample.line!r} to {found}")
    return problems
