"""How things are that are read, watched or looked at: one vocabulary for commands, pages and the API."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Condition(StrEnum):
    """How one aspect of something is. ``NOT_SET`` and ``MISSING`` are no faults: nobody asked for it, or it is not to be had."""

    FINE = "fine"
    READING = "reading"
    PARTLY = "in part"
    NOT_SET = "not set up"
    MISSING = "not available"
    WARNING = "warning"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Aspect:
    """One aspect: its name, its condition, what is to be said, and what to do about it."""

    name: str
    condition: Condition
    says: str
    hint: str = ""
