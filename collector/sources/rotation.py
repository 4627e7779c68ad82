"""Files that one log was rotated into: ``server.log``, ``server.log.1``, ``server.log.2.gz``, or with dates.

Source: logrotate (numbers grow with age; with ``dateext`` a date), Docker's ``json-file`` driver,
kubelet (``0.log.20260101-120000.gz``), Python's ``RotatingFileHandler`` and ``TimedRotatingFileHandler``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from collector.domain.errors import InputError
from collector.sources.file import STDIN, head_of, line_at, without_packing
from collector.sources.identity import length_of

_ROTATED: Final = re.compile(
    r"(?P<base>.+?)[.-](?:(?P<number>\d{1,4})"
    r"|(?P<date>(?:\d{8}|\d{4}-\d\d-\d\d)(?:[-T_]?\d\d[-:_]?\d\d(?:[-:_]?\d\d)?)?(?:[.-]\d{1,3})?))"
)
_INSTANT: Final = re.compile(rb"\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")


class Rotated(NamedTuple):
    """One log: its newest file, and the older ones, oldest first."""

    newest: Path
    older: tuple[Path, ...]


class _Place(NamedTuple):
    """Where a file stands among those of its log: its age, larger for newer ones."""

    base: Path
    age: tuple[int, str, int]


def rotated_sets(paths: Sequence[Path]) -> list[Rotated]:
    """Paths put together where they are files of one log; each of the others is a log of its own.

    Files whose first instants contradict the order of their names are left apart.
    """
    groups: dict[Path, list[tuple[_Place, Path]]] = {}
    for path in paths:
        place = _place(path)
        groups.setdefault(place.base, []).append((place, path))
    found: list[Rotated] = []
    for group in groups.values():
        ordered = [path for _, path in sorted(group)]
        if len(ordered) > 1 and _belong_together([place for place, _ in group], ordered):
            found.append(Rotated(ordered[-1], tuple(ordered[:-1])))
        else:
            found += [Rotated(path, ()) for _, path in group]
    return found


def rotated_of(path: Path) -> list[Path]:
    """The files that a log of this name was rotated into, and itself, oldest first.

    Raises:
        OSError: the folder may not be listed.
    """
    places = ((_place(other), other) for other in path.parent.iterdir() if other.name.startswith(path.name))
    return [other for place, other in sorted(places) if place.base == path]


def line_in(files: Sequence[Path], offset: int) -> str | None:
    """The line that begins at an offset in files that follow one another, redacted; ``None`` where it is gone."""
    try:
        for file in files:
            length = length_of(file)
            if offset < length:
                return line_at(file, offset)
            offset -= length
    except InputError:
        pass
    return None


def _place(path: Path) -> _Place:
    name = without_packing(path.name)
    match = _ROTATED.fullmatch(name) if path != STDIN else None
    if match is None:
        return _Place(path.with_name(name) if path.name else path, (2, "", 0))
    base = path.with_name(match["base"])
    if match["number"] is not None:
        return _Place(base, (1, "", -int(match["number"])))
    return _Place(base, (0, match["date"], 0))


def _belong_together(places: Sequence[_Place], ordered: Sequence[Path]) -> bool:
    ages = {place.age for place in places}
    current = any(kind == 2 for kind, _, _ in ages)
    dated = all(kind == 0 for kind, _, _ in ages)
    packed = any(path.name != without_packing(path.name) for path in ordered)
    if len(ages) < len(places) or not (current or dated or packed):
        return False
    instants = [instant for path in ordered if (instant := _first_instant(path))]
    return all(earlier <= later for earlier, later in pairwise(instants))


def _first_instant(path: Path) -> bytes:
    try:
        match = _INSTANT.search(head_of(path))
    except InputError:
        return b""
    return b"" if match is None else match[0].replace(b"T", b" ")
