"""Engine releases and ranges of releases."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering

from collector.domain.errors import InputError

_RELEASE = re.compile(r"[vb]?(\d+(?:\.\d+)*)(?:\.?(post|rc|dev)(\d+))?")
_RANK = {"dev": -2, "rc": -1, "": 0, "post": 1}


@total_ordering
@dataclass(frozen=True, slots=True)
class Release:
    """A release of an engine, ordered as its own project orders them: ``0.5.3 < 0.5.3.post2 < 0.5.4``.

    A project that numbers its builds writes ``b9093``.
    """

    numbers: tuple[int, ...]
    suffix: str = ""
    suffix_number: int = 0
    build: bool = False

    @classmethod
    def parse(cls, text: str) -> Release:
        """Read ``0.5.9``, ``v0.4.6.post5``, ``0.5.11rc1``, ``0.5.9+cu128`` or a build such as ``b9093``.

        Raises:
            ValueError: the text does not begin with a release number.
        """
        match = _RELEASE.match(text.strip())
        if match is None:
            raise ValueError(f"not a release: {text!r}")
        numbers = tuple(int(part) for part in match[1].split("."))
        return cls(numbers, match[2] or "", int(match[3] or 0), build=match[0].startswith("b"))

    @property
    def base(self) -> tuple[int, ...]:
        """The numbers alone: every ``0.5.3.postN`` shares the base of ``0.5.3``."""
        return self.numbers

    def _key(self) -> tuple[tuple[int, ...], int, int]:
        return (*self.numbers, 0, 0, 0, 0)[: max(4, len(self.numbers))], _RANK[self.suffix], self.suffix_number

    def __lt__(self, other: Release) -> bool:
        return self._key() < other._key()

    def __str__(self) -> str:
        text = ("b" if self.build else "") + ".".join(map(str, self.numbers))
        if not self.suffix:
            return text
        return f"{text}{'' if self.suffix == 'rc' else '.'}{self.suffix}{self.suffix_number}"


@dataclass(frozen=True, slots=True)
class ReleaseRange:
    """Releases from ``first`` to ``last``, both included; ``None`` is an open end.

    ``last`` covers its post-releases: ``0.5.10`` as an upper end includes ``0.5.10.post1``.
    """

    first: Release | None = None
    last: Release | None = None

    @classmethod
    def parse(cls, text: str) -> ReleaseRange:
        """Read ``0.5.5-0.5.10``, ``0.5.11-``, ``-0.5.2``, ``0.5.9`` or ``*``.

        Raises:
            ValueError: an end is not a release.
        """
        text = text.strip().replace("\N{EN DASH}", "-")
        if text in ("", "*"):
            return cls()
        low, dash, high = text.partition("-")
        first = Release.parse(low) if low else None
        if not dash:
            return cls(first, first)
        return cls(first, Release.parse(high) if high else None)

    def __contains__(self, release: Release) -> bool:
        if self.first is not None and release < self.first:
            return False
        if self.last is None or release <= self.last:
            return True
        return not self.last.suffix and release.suffix == "post" and release.numbers == self.last.numbers

    def intersect(self, other: ReleaseRange) -> ReleaseRange | None:
        """The releases in both ranges, or ``None`` where there are none."""
        firsts = [end for end in (self.first, other.first) if end is not None]
        lasts = [end for end in (self.last, other.last) if end is not None]
        both = ReleaseRange(max(firsts, default=None), min(lasts, key=_upper_key, default=None))
        if both.first is not None and both.last is not None and both.first not in both:
            return None
        return both

    def __str__(self) -> str:
        if self.first is None and self.last is None:
            return "every release"
        if self.first == self.last:
            return str(self.first)
        if self.last is None:
            return f"{self.first} and later"
        if self.first is None:
            return f"{self.last} and earlier"
        return f"{self.first} to {self.last}"


def _upper_key(release: Release) -> tuple[tuple[int, ...], bool, Release]:
    """Order of upper ends: one without suffix covers its post-releases, so it lies above them."""
    return release.numbers, not release.suffix, release


def stated_release(text: str | None, option: str) -> Release | None:
    """The release that an option or a field states, ``None`` where it states nothing.

    Raises:
        InputError: it is no release.
    """
    try:
        return Release.parse(text) if text else None
    except ValueError:
        raise InputError(f"{option} {text!r} is not a release", hint="for instance 0.5.10 or 0.5.3.post2") from None
