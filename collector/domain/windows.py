"""Decode windows: what an engine reported about one stretch of decoding."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from itertools import repeat
from typing import Any, Final, Generic, NamedTuple, TypeVar


class Origin(StrEnum):
    """Where a window's acceptance comes from, best first. Figures of two origins are never added up."""

    REQUESTS = "requests"
    COUNTERS = "counters"
    LOG = "log"
    GAUGES = "gauges"
    """A sample: the stretch that a gauge happened to describe when it was looked at."""


class Window(NamedTuple):
    """One stretch of decoding of one unit (scheduler rank, engine, slot).

    Counts never include the target's own token. ``None`` means that the source does not say.
    Instants are seconds since 1970 on the engine's clock; a log that prints no zone is read as UTC.

    Fields:
        position: byte offset in the source, or any number that orders and names the window there.
        line: line number in the source, 1-based; 0 where the source has no lines.
        at: end of the window, seconds since 1970.
        unit: the unit as the engine names it (``DP0 TP0``, ``engine 4``, ``slot 1``); "" if it is alone.
        seconds: the window's length by the engine's own clock; ``None`` with counters: since the start of the process.
        running_requests, waiting_requests: requests decoding and queued.
        verify_steps: steps times requests (theory section 1.1).
        accepted_tokens, drafted_tokens: draft tokens accepted and proposed.
        generated_tokens: tokens generated.
        generation_throughput: tokens per second as printed.
        printed_length, printed_rate: acceptance figures as printed, in the engine's own definition.
        tokens_in_use: tokens held in the cache. kv_cache_usage: its share, 0 to 1.
        graph: whether the decode step ran from a captured graph.
        prefills: prompts that were processed inside this window's clock.
        accepted_at: steps that accepted at least i drafts, for i = 1, 2, ...
    """

    position: int
    line: int
    at: float
    unit: str = ""
    seconds: float | None = None
    running_requests: float | None = None
    waiting_requests: float | None = None
    verify_steps: float | None = None
    accepted_tokens: float | None = None
    drafted_tokens: float | None = None
    generated_tokens: float | None = None
    generation_throughput: float | None = None
    printed_length: float | None = None
    printed_rate: float | None = None
    tokens_in_use: float | None = None
    kv_cache_usage: float | None = None
    graph: bool | None = None
    prefills: int = 0
    accepted_at: tuple[float, ...] | None = None
    origin: Origin = Origin.LOG


class PrefillWindow(NamedTuple):
    """One prefill batch: prompt tokens computed and found in the cache.

    Fields: position, line, at, unit as for :class:`Window`; new_tokens and cached_tokens are counts.
    """

    position: int
    line: int
    at: float
    unit: str
    new_tokens: float
    cached_tokens: float


_LARGEST_EXACT: Final = 2.0**53

Row = TypeVar("Row", Window, PrefillWindow)


@dataclass(frozen=True, slots=True)
class Coded:
    """A column of few different texts: their list, and an array with the place of each row's text in it."""

    texts: list[str]
    codes: Any

    def tolist(self) -> list[str]:
        """The text of each row."""
        return [self.texts[code] for code in self.codes.tolist()]

    def recoded(self, numbers: list[int]) -> Any:
        """For each row the number that stands for its text, as an array."""
        found = self.codes.copy()
        for code, number in enumerate(numbers):
            found[self.codes == code] = number
        return found

    def __getitem__(self, rows: slice) -> Coded:
        """Some rows."""
        return Coded(self.texts, self.codes[rows])


@dataclass(frozen=True, slots=True)
class Partial:
    """A column of which some rows say nothing: an array of doubles that is NaN there, and what the others stand for."""

    figures: Any
    kind: type[float | int | bool] = float

    def tolist(self) -> list[float | int | bool | None]:
        """The figure of each row, ``None`` where it says nothing."""
        return [None if figure != figure else self.kind(figure) for figure in self.figures.tolist()]  # noqa: PLR0124 - NaN

    def __getitem__(self, rows: slice) -> Partial:
        """Some rows."""
        return Partial(self.figures[rows], self.kind)


@dataclass(frozen=True, slots=True)
class CountsAt:
    """A column of counts by position: an array of shape (n, depth) that is NaN behind a row's last one.

    A row that is NaN throughout says nothing.
    """

    counts: Any

    def tolist(self) -> list[tuple[float, ...] | None]:
        """The counts of each row."""
        return [tuple(count for count in row if count == count) or None for row in self.counts.tolist()]  # noqa: PLR0124

    def __getitem__(self, rows: slice) -> CountsAt:
        """Some rows."""
        return CountsAt(self.counts[rows])


@dataclass(frozen=True, slots=True)
class Columns(Generic[Row]):
    """Many windows of one kind as columns, which cost a tenth of as many objects.

    ``values`` has one item a field of ``kind``, in its order: a list or array of ``length`` values (or
    something else with ``tolist``), or one value that all rows share.
    """

    kind: type[Row]
    length: int
    values: tuple[Any, ...]

    @classmethod
    def of(cls, kind: type[Row], rows: Sequence[Row]) -> Columns[Row]:
        """Rows as columns; a column but the first whose values are all the same plain number or text is that one."""
        columns: list[list[Any]] = [list(column) for column in zip(*rows, strict=True)]
        shared: list[Any] = [column[0] if _same(column) else column for column in columns[1:]]
        return cls(kind, len(rows), (*columns[:1], *shared))

    def part(self, rows: slice) -> Columns[Row]:
        """Some of the rows."""
        values = (value[rows] if _varies(value) else value for value in self.values)
        return Columns(self.kind, len(range(*rows.indices(self.length))), tuple(values))

    def lists(self) -> list[Any]:
        """The values with plain lists in place of arrays."""
        return [value.tolist() if hasattr(value, "tolist") else value for value in self.values]

    def rows(self) -> list[Row]:
        """The same as objects."""
        columns = (value if isinstance(value, list) else repeat(value, self.length) for value in self.lists())
        return [self.kind._make(row) for row in zip(*columns, strict=False)]


def _same(column: list[Any]) -> bool:
    """Whether a column is one value throughout that can be written as a whole number or a text, or none at all."""
    first = column[0]
    if isinstance(first, float) and not (first.is_integer() and abs(first) < _LARGEST_EXACT):
        return False
    return not isinstance(first, tuple) and column.count(first) == len(column)


def _varies(value: Any) -> bool:
    return isinstance(value, list) or hasattr(value, "tolist")
