"""Messages that are known by a fixed part of their wording: their beginning, or a piece inside."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib.resources import files
from typing import Final

WIDTH: Final = 6
INSIDE: Final = "…"
"""Marks a line of a wordings file whose text may stand anywhere in a message."""


class Wordings:
    """Tells whether a message is one that an engine is known to print."""

    def __init__(self, lines: Iterable[str]) -> None:
        """``lines`` are beginnings, or, after :data:`INSIDE`, pieces."""
        self._beginnings: dict[bytes, tuple[bytes, ...]] = {}
        pieces: list[bytes] = []
        for line in lines:
            if line.startswith(INSIDE):
                pieces.append(re.escape(line[len(INSIDE) :].encode()))
            elif line:
                text = line.encode()
                self._beginnings[text[:WIDTH]] = (*self._beginnings.get(text[:WIDTH], ()), text)
        self._pieces = re.compile(b"|".join(pieces)) if pieces else None

    def know(self, message: bytes) -> bool:
        """Whether the message begins like a known one, or holds a known piece."""
        found = self._beginnings.get(message[:WIDTH])
        if found is not None and message.startswith(found):
            return True
        return self._pieces is not None and self._pieces.search(message, 0, 400) is not None


def wordings_of(package: str, name: str = "wordings.txt") -> Wordings:
    """The wordings listed in a file of a package."""
    return Wordings(files(package).joinpath(name).read_text("utf-8").splitlines())
