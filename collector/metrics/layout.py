"""Reads pages of metrics whose series are known: by place, without looking at what is not wanted.

The first page of an engine is read strictly (:func:`parse_exposition`), line by line. What follows
differs in its values alone, so where the wanted families begin is looked for from one to the next, where values may have
moved it, and each of their lines has to begin with the text it began with. Anything else, and now and then a page without
any reason, is read strictly again: a figure is never taken from a line whose series is not certain.

Engines of one fleet write the same page but for the values, so layouts are shared among them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Container, Iterable, Sequence
from itertools import groupby
from operator import itemgetter
from threading import Lock
from typing import Final, NamedTuple

import numpy as np

from collector.metrics.exposition import SeriesCache, parse_exposition
from collector.metrics.samples import Samples, SeriesTable, all_of

STRICTLY_EVERY: Final = 500
"""A page of a known layout is read strictly so often."""
MOST_LAYOUTS: Final = 256
_OF_A_VALUE: Final = b"0123456789.+-eEinfatyINFATY"
_END_OF_LINE: Final = 10
_SOUGHT: Final = 64
"""Bytes of a comment that are looked for."""
_LONGEST_VALUE: Final = 40
"""Bytes of a value that is found by place."""
_ANYWHERE: Final = 1 << 40


class _Stretch(NamedTuple):
    """How many bytes lie between two places of a page, whatever its values are."""

    least: int
    most: int

    @classmethod
    def of(cls, lines: Iterable[bytes]) -> _Stretch:
        """Of whole lines, with the end of one line each."""
        least = most = 0
        for line in lines:
            if line[:1] == b"#" or not line:
                shortest = longest = len(line)
            elif line.count(b" ") == 1:
                shortest = len(_beginning(line)) + 1
                longest = shortest + _LONGEST_VALUE
            else:  # what follows a value comes and goes
                shortest, longest = len(_name(line)), _ANYWHERE
            least, most = least + shortest + 1, most + longest + 1
        return cls(least, most)


class _Run(NamedTuple):
    """Wanted lines one below the other.

    What stands before them is ``head``, ``skipped`` bytes of which come before the first line; ``tail`` is how the line
    below begins, "" where there is none, and ``tail_sought`` the first bytes of that. Both are looked for only where they
    can be: the head ``head_from`` to ``head_to`` bytes behind the run before, the tail ``tail_from`` to ``tail_to`` behind
    the beginning of the head.
    """

    head: bytes
    skipped: int
    head_from: int
    head_to: int
    tail: bytes
    tail_sought: bytes
    tail_from: int
    tail_to: int

    @classmethod
    def of(cls, above: bytes, first: bytes, tail: bytes, gap: _Stretch, inside: _Stretch) -> _Run:
        """What is above the ``first`` line of a run, where that is blank with how the line begins: comments name one family.

        ``gap`` lies between the run before and the head, ``inside`` between the beginning of the first value and the tail.
        """
        head = above if above.strip() else above + first
        tail_sought = tail[:_SOUGHT] if tail.startswith(b"\n#") else tail
        before_value = len(above) + len(first)
        tail_from, tail_to = before_value + inside.least, before_value + inside.most + len(tail_sought)
        return cls(head, len(above), gap.least, gap.most + len(head), tail, tail_sought, tail_from, tail_to)


class Layout:
    """A page without its values: how many lines it has, and the text of the wanted ones up to their values."""

    def __init__(self, table: SeriesTable, lines: int, runs: Iterable[_Run], beginnings: Iterable[bytes]) -> None:
        """``table`` has the series of the wanted lines, ``beginnings`` their texts up to the value."""
        self.table = table
        self._lines = lines
        self._runs = tuple(runs)
        words, value_at = list[bytes](), list[int]()
        for beginning in beginnings:
            words += beginning.split(b" ")[:-1]
            value_at.append(len(words))
            words.append(b"")
        self._words = len(words)
        self._texts: Callable[[Sequence[bytes]], Sequence[bytes]]
        self._values: Callable[[Sequence[bytes]], Sequence[bytes]]
        if value_at == list(range(1, len(words), 2)):  # no label holds a blank
            self._texts, self._values = itemgetter(slice(0, None, 2)), itemgetter(slice(1, None, 2))
        else:
            text_at = sorted(set(range(len(words))) - set(value_at))
            self._texts, self._values = all_of(text_at), all_of(value_at)
        self._expected = self._texts(words)

    def values(self, body: bytes) -> tuple[float, ...] | None:
        """The values of a page of this layout; ``None`` where it is another, or there is any doubt."""
        if int(np.count_nonzero(np.frombuffer(body, np.uint8) == _END_OF_LINE)) != self._lines or body[-1:] != b"\n":
            return None
        parts: list[bytes] = []
        position = 0
        for head, skipped, head_from, head_to, tail, tail_sought, tail_from, tail_to in self._runs:
            start = body.find(head, position + head_from, position + head_to)
            position = body.find(tail_sought, start + tail_from, start + tail_to) if tail else len(body) - 1
            if start < 0 or position < 0 or not body.startswith(tail, position):
                return None
            parts.append(body[start + skipped : position])
        words = b"\n".join(parts).replace(b"\n", b" ").split(b" ")
        if len(words) != self._words or self._texts(words) != self._expected:
            return None
        texts = self._values(words)
        if b"".join(texts).translate(None, _OF_A_VALUE):
            return None  # no number
        try:
            return tuple(map(float, texts))
        except ValueError:
            return None


def learn(body: bytes, samples: Samples, wanted: Container[str]) -> Layout | None:
    """The layout of a page that was read strictly; ``None`` where it cannot be read by place: more follows a value."""
    lines = body.split(b"\n")[:-1]
    runs: list[_Run] = []
    beginnings: list[bytes] = []
    end = 0  # of the run before
    for is_wanted, run in groupby(range(len(lines)), lambda number: _is_wanted(lines[number], wanted)):
        if is_wanted:
            numbers = list(run)
            first, below = numbers[0], numbers[-1] + 1
            texts = [_beginning(lines[number]) for number in numbers]
            beginnings += texts
            above = lines[first - 1] + b"\n" if first and lines[first - 1][:1] == b"#" else b""
            before = b"\n" if first > bool(above) else b""
            tail = b"\n" + _beginning(lines[below]) if below < len(lines) else b""
            gap = _Stretch.of(lines[end : first - bool(above)])
            if not end and gap.least:  # nothing ends before the first line
                gap = _Stretch(gap.least - 1, gap.most)
            inside = _Stretch.of(lines[first:below])
            before_value = len(texts[0]) + 1  # the end of the last line belongs to the tail
            inside = _Stretch(max(0, inside.least - before_value), inside.most)
            runs.append(_Run.of(before + above, texts[0], tail, gap, inside))
            end = below
    if not beginnings:
        return None
    layout = Layout(samples.table, len(lines), runs, beginnings)
    found = layout.values(body)
    return layout if found is not None and len(found) == len(samples) and _same(found, samples.values) else None


def _is_wanted(line: bytes, wanted: Container[str]) -> bool:
    return line[:1] != b"#" and _name(line).decode("utf-8", "replace") in wanted


def _name(line: bytes) -> bytes:
    return line.partition(b"{")[0].partition(b" ")[0]


def _beginning(line: bytes) -> bytes:
    """A line up to its value; a comment as it is."""
    return line if line[:1] == b"#" else line[: line.rfind(b" ") + 1]


def _same(one: Sequence[float], other: Sequence[float]) -> bool:
    return all(a == b or (a != a and b != b) for a, b in zip(one, other, strict=True))  # noqa: PLR0124 - NaN


class Layouts:
    """Layouts of one engine's pages, those used last; one choice of names."""

    def __init__(self, wanted: Container[str], most: int = MOST_LAYOUTS) -> None:
        """Keep at most ``most`` layouts."""
        self._wanted = wanted
        self._most = most
        self._known: OrderedDict[int, Layout] = OrderedDict()
        self._series = SeriesCache()
        self._lock = Lock()

    def read_strictly(self, body: bytes, source: str) -> tuple[Samples, Layout | None]:
        """Read every line of a page, and find or learn its layout.

        Raises:
            MalformedInput: the page is none.
        """
        with self._lock:
            samples = Samples.of(parse_exposition(body, wanted=self._wanted, cache=self._series, source=source))
            key = hash(samples.table.keys)
            layout = self._known.get(key)
            values = layout.values(body) if layout is not None else None
            if layout is None or values is None or layout.table.keys != samples.table.keys:
                layout = learn(body, samples, self._wanted)
            else:
                samples = Samples(layout.table, samples.values)
            if layout is not None:
                self._known[key] = layout
                self._known.move_to_end(key)
                while len(self._known) > self._most:
                    self._known.popitem(last=False)
            return samples, layout


class PageReader:
    """Reads the pages of one target, again and again."""

    def __init__(self, layouts: Layouts) -> None:
        """Nothing is known of the target's pages yet."""
        self._layouts = layouts
        self._layout: Layout | None = None
        self._by_place = 0

    def read(self, body: bytes, source: str) -> Samples:
        """The wanted samples of a page.

        Raises:
            MalformedInput: the page cannot be read as a whole.
        """
        if self._layout is not None and self._by_place < STRICTLY_EVERY:
            values = self._layout.values(body)
            if values is not None:
                self._by_place += 1
                return Samples(self._layout.table, values)
        self._by_place = 0
        samples, self._layout = self._layouts.read_strictly(body, source)
        return samples
