"""Samples by column: the series of a page once, their values at every scrape.

A page has the same series for hours while their values move. What follows from the series alone (which
of them are counters, which belong to a unit) is worked out once and kept beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from operator import itemgetter
from typing import Any, TypeAlias, TypeVar, overload

from collector.metrics.exposition import Sample, Series

T = TypeVar("T")

Places: TypeAlias = Sequence[int] | None
"""Positions of series in a table; ``None`` where the name is not there at all."""
SeriesKey: TypeAlias = tuple[str, tuple[tuple[str, str], ...]]
"""What makes a series: its name and its labels in order."""


def series_key(series: Series | Sample) -> SeriesKey:
    """What makes this series."""
    return series.name, tuple(sorted(series.labels.items()))


class SeriesTable:
    """The series of a page in their order, and what was worked out from them."""

    def __init__(self, series: Iterable[Series]) -> None:
        """Nothing is worked out yet."""
        self.series = tuple(series)
        self._derived: dict[Any, Any] = {}

    @cached_property
    def keys(self) -> tuple[SeriesKey, ...]:
        """What makes each series."""
        return tuple(map(series_key, self.series))

    @cached_property
    def by_name(self) -> dict[str, list[int]]:
        """Positions of the series of each name."""
        found: dict[str, list[int]] = {}
        for position, series in enumerate(self.series):
            found.setdefault(series.name, []).append(position)
        return found

    def derived(self, work: Callable[[SeriesTable], T]) -> T:
        """What a function makes of this table; it is called once."""
        found: T | None = self._derived.get(work)
        if found is None:
            found = self._derived[work] = work(self)
        return found

    def among(self, names: frozenset[str]) -> tuple[int, ...]:
        """Positions of the series with one of these names."""
        found: tuple[int, ...] | None = self._derived.get(names)
        if found is None:
            found = self._derived[names] = tuple(i for i, series in enumerate(self.series) if series.name in names)
        return found

    def renamed(self, prefix: str, by: str) -> SeriesTable:
        """This table with another beginning of names; the same one where no name begins so."""
        if not any(name.startswith(prefix) for name in self.by_name):
            return self
        return SeriesTable(
            series._replace(name=by + series.name.removeprefix(prefix)) if series.name.startswith(prefix) else series
            for series in self.series
        )

    def followed_by(self, more: Iterable[Sample]) -> SeriesTable:
        """This table with further series behind it: the same one for the same series."""
        series = [Series(sample.name, sample.labels) for sample in more]
        keys = tuple(map(series_key, series))
        if keys not in self._derived:
            self._derived[keys] = SeriesTable((*self.series, *series))
        found: SeriesTable = self._derived[keys]
        return found


class Samples(Sequence[Sample]):
    """The samples of one scrape: a table of series, and a value for each."""

    __slots__ = ("table", "values")

    def __init__(self, table: SeriesTable, values: Sequence[float]) -> None:
        """Of one length."""
        self.table = table
        self.values = values

    @classmethod
    def of(cls, samples: Iterable[Sample]) -> Samples:
        """Samples one by one as columns; what is in columns stays as it is."""
        if isinstance(samples, cls):
            return samples
        listed = list(samples)
        series = (Series(sample.name, sample.labels) for sample in listed)
        return cls(SeriesTable(series), tuple(sample.value for sample in listed))

    def plus(self, more: Sequence[Sample]) -> Samples:
        """These samples and others behind them."""
        if not more:
            return self
        return Samples(self.table.followed_by(more), (*self.values, *(sample.value for sample in more)))

    def first(self, name: str) -> float | None:
        """The value of the first sample of a name."""
        found = self.table.by_name.get(name)
        return self.values[found[0]] if found else None

    def named(self, name: str) -> Iterator[Sample]:
        """The samples of a name."""
        for position in self.table.by_name.get(name, ()):
            yield self[position]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Samples):
            return NotImplemented
        return self.table.series == other.table.series and tuple(self.values) == tuple(other.values)

    def __hash__(self) -> int:
        return hash((self.table.keys, tuple(self.values)))

    def __len__(self) -> int:
        return len(self.values)

    def __iter__(self) -> Iterator[Sample]:
        for (name, labels), value in zip(self.table.series, self.values, strict=True):
            yield Sample(name, labels, value)

    @overload
    def __getitem__(self, index: int) -> Sample: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[Sample]: ...
    def __getitem__(self, index: int | slice) -> Sample | Sequence[Sample]:
        if isinstance(index, slice):
            return list(self)[index]
        series = self.table.series[index]
        return Sample(series.name, series.labels, self.values[index])


def all_of(positions: Sequence[int]) -> Callable[[Sequence[T]], Sequence[T]]:
    """Takes what stands at these positions."""
    if len(positions) > 1:
        return itemgetter(*positions)
    return lambda given: [given[position] for position in positions]


def added(values: Sequence[float], places: Places) -> float | None:
    """The sum of what stands at some places; ``None`` where there are none to look at, 0 where none fits."""
    if places is None:
        return None
    return values[places[0]] if len(places) == 1 else sum([values[place] for place in places], 0.0)


class UnitSeries:
    """Where the series of one unit stand in a table, and their values added up."""

    def __init__(self, table: SeriesTable, positions: Iterable[int]) -> None:
        """``positions`` of the unit's series."""
        self._table = table
        self._by_name: dict[str, list[int]] = {}
        for position in positions:
            self._by_name.setdefault(table.series[position].name, []).append(position)
        self._chosen: dict[tuple[str, str, str], tuple[int, ...]] = {}

    @classmethod
    def whole(cls, table: SeriesTable) -> UnitSeries:
        """All series of a page, which is of one unit."""
        return cls(table, range(len(table.series)))

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def of(self, name: str) -> list[tuple[int, Series]]:
        """Positions and series of a name."""
        return [(position, self._table.series[position]) for position in self._by_name.get(name, ())]

    def chosen(self, name: str, label: str, beginning: str) -> tuple[int, ...]:
        """Positions of a name's series whose ``label`` begins so."""
        key = name, label, beginning
        if key not in self._chosen:
            self._chosen[key] = tuple(
                position for position, series in self.of(name) if series.labels.get(label, "").startswith(beginning)
            )
        return self._chosen[key]

    def overall(self, name: str, label: str) -> Places:
        """Positions of a gauge's series: of several the one without the ``label``, else all."""
        every = self.of(name)
        plain = [position for position, series in every if not series.labels.get(label)][:1]
        return (plain if len(every) > 1 and plain else [position for position, _ in every]) or None

    def total(self, values: Sequence[float], name: str, label: str = "", beginning: str = "") -> float | None:
        """The sum over a name's series whose ``label`` begins so; ``None`` where the name is not there, 0 where no label fits."""
        return added(values, self.places(name, label, beginning))

    def places(self, name: str, label: str = "", beginning: str = "") -> Places:
        """Positions of a name's series, of those whose ``label`` begins so."""
        found = self._by_name.get(name)
        return found if found is None or not label else self.chosen(name, label, beginning)

    def positions(self, values: Sequence[float], name: str, label: str) -> tuple[float, ...] | None:
        """A counter of each draft position, from 0; ``None`` where it is not there, 0 for positions in between that are not."""
        found = {
            index: values[position]
            for position, series in self.of(name)
            if (index := small_number(series.labels.get(label))) is not None
        }
        return tuple(found.get(i, 0.0) for i in range(max(found) + 1)) if found else None


def small_number(text: str | None) -> int | None:
    """The number of a rank or a draft position that a label states; ``None`` for all else, numbers above 999 included."""
    return int(text) if text is not None and text.isascii() and text.isdecimal() and len(text) <= 3 else None


def process_ids(table: SeriesTable) -> frozenset[str]:
    """The processes that the labels of a page name."""
    return frozenset(series.labels["pid"] for series in table.series if "pid" in series.labels)
