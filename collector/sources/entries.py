"""Logs that are kept elsewhere line by line, each line with the instant at which it came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol


class Entry(NamedTuple):
    """One line, without its end, and when it came: nanoseconds since 1970."""

    at: int
    line: bytes


@dataclass(frozen=True, slots=True)
class Log:
    """One log: the name of its own it has in the database, the labels of its runs, and how its place calls it."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    key: tuple[str, ...] = ()


class Page(NamedTuple):
    """Lines in their order; ``more`` says that there are further ones already, ``doubt`` what the place cannot tell of them."""

    entries: Sequence[Entry]
    more: bool
    doubt: str = ""


class LogSource(Protocol):
    """Where logs are kept."""

    @property
    def name(self) -> str:
        """What names the place and the choice of logs, without secrets."""

    def logs(self, since: int) -> Sequence[Log]:
        """The logs of which lines came since an instant (nanoseconds since 1970), as far as the place tells.

        Raises:
            SourceError: it does not answer as it should.
        """

    def page(self, log: Log, since: int) -> Page:
        """The next lines of one log, those of the instant ``since`` included.

        Raises:
            SourceError: it does not answer as it should.
        """

    def close(self) -> None:
        """Close the connections."""
