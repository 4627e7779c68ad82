"""Follows Python tracebacks through a log and gives the last line of each.

A chain of exceptions ends in the one that counts: links between them (``During handling of …``)
lead on. Lines of other writers in between do not end a traceback.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

BEGIN: Final = b"Traceback (most recent call last):"
_LINK: Final = re.compile(
    rb"(?:The above exception was the direct cause|During handling of the above exception|The above exception, )"
)
_EXCEPTION: Final = re.compile(rb"[A-Za-z_][\w.]{2,80}(?::|\s*$)")


class Raised(NamedTuple):
    """The last line of a traceback.

    ``fatal`` says that a fatal headline led to it, ``marked`` that one of its frames is in a file
    whose name the reader was told to look for.
    """

    number: int
    line: bytes
    fatal: bool
    marked: bool


class Tracebacks:
    """State between the lines of a traceback. ``active`` says that one is being followed."""

    def __init__(self, marks: tuple[bytes, ...] = ()) -> None:
        self.active = False
        self._marks = marks
        self._marked = False
        self._fatal = False
        self._last: tuple[int, bytes] | None = None

    def begin(self, *, fatal: bool = False) -> None:
        """A line opens a traceback; ``fatal`` where the engine said that a process dies of it."""
        self.active = True
        self._fatal = fatal
        self._marked = False
        self._last = None

    def take(self, number: int, line: bytes) -> bool:
        """Whether a bare line is part of the traceback."""
        stripped = line.strip()
        if not stripped or line[:1] in (b" ", b"\t", b"|", b"+"):
            self._marked = self._marked or any(mark in stripped for mark in self._marks)
            return True
        if line.startswith(BEGIN) or _LINK.match(line):
            self._last = None
            return True
        if self._last is None and _EXCEPTION.match(line):
            self._last = number, line
            return True
        return False

    def end(self) -> Raised | None:
        """Stop following; the exception that was reached, if one was."""
        raised = None if self._last is None else Raised(*self._last, self._fatal, self._marked)
        self.active = False
        self._last = None
        return raised

    @property
    def reached(self) -> bool:
        """Whether the last line so far is an exception."""
        return self._last is not None
