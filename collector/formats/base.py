"""What a log format is: declared lines, samples that prove them, and a session that reads.

A format parses bytes. Each :class:`Line` begins with a literal, which is tested first, and has a
pattern or a ``key: value`` tail where it carries values. Each sample is claimed by exactly one
line; :func:`self_check` says where that does not hold.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from typing import Final

from collector.domain.arguments import Arguments, LaunchCommand, Value
from collector.domain.evidence import LONGEST_TEXT, Evidence
from collector.domain.redaction import redact_text
from collector.domain.runs import Event, Reading, RunRecord
from collector.domain.versions import Release
from collector.domain.windows import Columns, PrefillWindow, Window
from collector.formats.blocks import Block
from collector.formats.pairs import PairTail
from collector.formats.shapes import ShapeCounter
from collector.formats.tidy import tidied

EVENTS_OF_A_KIND: Final = 200
"""Events of one kind that a run keeps; further ones are counted in a note."""


class Place(StrEnum):
    """Where a line's literal stands."""

    ENGINE = "after the engine's own prefix"
    BARE = "at the start of a line without prefix"
    EITHER = "either"


@dataclass(frozen=True)
class Line:
    """One kind of line of an engine's log.

    Attributes:
        name: unique within the format.
        starts: the literal that the message begins with.
        pattern: a regular expression for the whole message; its groups carry our names.
        items: for a ``key: value, …`` tail, the engine's keys and our names for them.
        required: keys without which such a line is torn.
        kind: the kind of event it becomes; "" for lines that are understood and not kept.
        states: values that the wording itself states.
        versions: releases that print it.
        place: where the literal stands.
    """

    name: str
    starts: bytes
    pattern: bytes | None = None
    items: Mapping[bytes, str] | None = None
    required: tuple[bytes, ...] = ()
    kind: str = ""
    states: Mapping[str, Value] = field(default_factory=dict)
    versions: str = "*"
    place: Place = Place.ENGINE

    @cached_property
    def _compiled(self) -> re.Pattern[bytes] | None:
        return re.compile(self.pattern, re.DOTALL) if self.pattern is not None else None

    @property
    def names(self) -> tuple[str, ...]:
        """Our names for the values that such a line may state."""
        if self.items is not None:
            return tuple(dict.fromkeys(self.items.values()))
        groups = self._compiled.groupindex if self._compiled is not None else ()
        return tuple(dict.fromkeys((*self.states, *groups)))

    @cached_property
    def tail(self) -> PairTail | None:
        """The reader of the ``key: value`` tail, if the line has one."""
        return PairTail(self.items, self.required) if self.items is not None else None

    def match(self, message: bytes) -> re.Match[bytes] | None:
        """Where in a message the values of the pattern stand, ``None`` if it is another or a torn line."""
        if self._compiled is None or not message.startswith(self.starts):
            return None
        return self._compiled.fullmatch(message.rstrip())

    def begins(self, message: bytes) -> bool:
        """Whether the message begins like this line."""
        return message.startswith(self.starts)

    def read(self, message: bytes) -> Mapping[str, Value] | None:
        """The values a message states under our names, ``None`` if it is another or a torn line."""
        if not message.startswith(self.starts):
            return None
        if self.tail is not None:
            pairs = self.tail.read(message[len(self.starts) :])
            return pairs.values if pairs is not None else None
        if self._compiled is None:
            return self.states
        match = self.match(message)
        if match is None:
            return None
        stated = {name: typed(text) for name, text in match.groupdict().items() if text is not None}
        return {**self.states, **stated}


@dataclass(frozen=True, slots=True)
class Sample:
    """One line exactly as an engine printed it, the line that must claim it and the values it states."""

    text: str
    line: str
    values: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What is known before a log is read.

    ``source`` names it in evidence, ``engine_version`` is a stated release, ``launch`` a launch
    command whose settings stand in where the log does not state them. ``carried`` are the arguments
    of a run that began in a file before this one, which is gone.
    """

    source: str
    engine_version: Release | None = None
    launch: LaunchCommand | None = None
    carried: Arguments | None = None


@dataclass(slots=True)
class RunPart:
    """What was read of one run since the last :meth:`Session.take`.

    ``number`` counts the runs of this source from 0. ``run`` has the facts known so far; its
    lists hold only what is new. ``ended`` says that no more will come. ``windows`` and ``prefills``
    are further samples as columns, where these were asked for.
    """

    number: int
    run: RunRecord
    ended: bool
    windows: list[Columns[Window]] = field(default_factory=list)
    prefills: list[Columns[PrefillWindow]] = field(default_factory=list)


class Life:
    """A run while it is read: its record, and how many events of each kind it has."""

    def __init__(self, number: int, record: RunRecord) -> None:
        self.number = number
        self.record = record
        self.ended = False
        self.changed = True
        self.windows: list[Columns[Window]] = []
        self.prefills: list[Columns[PrefillWindow]] = []
        self._kinds: dict[str, int] = {}

    def add(self, event: Event) -> None:
        """Keep an event, up to the cap of its kind."""
        count = self._kinds[event.kind] = self._kinds.get(event.kind, 0) + 1
        if count <= EVENTS_OF_A_KIND:
            self.record.events.append(event)
            self.changed = True

    def passed_over(self, kind: str) -> bool:
        """Whether an event of this kind would not be kept; it is counted then, and need not be made."""
        if self._kinds.get(kind, 0) < EVENTS_OF_A_KIND:
            return False
        self._kinds[kind] += 1
        return True

    @property
    def overflow(self) -> dict[str, int]:
        """Events that were read and not kept, by kind."""
        return {kind: count - EVENTS_OF_A_KIND for kind, count in self._kinds.items() if count > EVENTS_OF_A_KIND}

    def part(self, *, columns: bool) -> RunPart:
        """What is new, leaving the lists empty for what follows; without ``columns`` all samples are rows."""
        record = self.record
        part = RunPart(self.number, record, self.ended, self.windows, self.prefills)
        self.windows, self.prefills = [], []
        windows, prefills = record.windows, record.prefills
        if not columns:
            for chunk in part.windows:
                windows += chunk.rows()
            for prefill_chunk in part.prefills:
                prefills += prefill_chunk.rows()
            part.windows, part.prefills = [], []
        part.run = replace(record, events=record.events, windows=sorted(windows), prefills=sorted(prefills))
        record.events, record.windows, record.prefills = [], [], []
        self.changed = False
        return part


class Session(ABC):
    """One reading of one log: takes blocks of whole lines in order, gives parts of runs.

    A subclass overrides :meth:`line`; one that locates its lines inside the block overrides
    :meth:`block`. Memory is bounded as long as :meth:`take` is called between blocks.
    """

    def __init__(self, options: ReadOptions) -> None:
        self.options = options
        self.reading = Reading(options.source, kind="log")
        self.unread = ShapeCounter(options.source)
        self.lives: list[Life] = []
        self.runs = 0
        self._notes: dict[str, None] = {}

    @abstractmethod
    def line(self, position: int, number: int, line: bytes) -> None:
        """Read one line without its newline: its byte offset, its number from 1, its bytes."""

    def block(self, block: Block) -> None:
        """Read a block of whole lines."""
        read = self.line
        for position, number, line in tidied(block).lines():
            read(position, number, line)

    @abstractmethod
    def finish(self) -> None:
        """The source has ended: everything held back is decided now."""

    def take(self, *, columns: bool = False) -> list[RunPart]:
        """What was read since the last call, run by run; runs that ended are let go.

        With ``columns``, samples that were read as columns are given so, which is cheaper.
        """
        parts = [life.part(columns=columns) for life in self.lives if life.changed or life.ended]
        self.lives = [life for life in self.lives if not life.ended]
        return parts

    def summary(self) -> Reading:
        """What was made of the source so far."""
        self.reading.unread = self.unread.total
        self.reading.unread_shapes = self.unread.shapes()
        self.reading.notes = tuple(self._notes)
        return self.reading

    def note(self, text: str) -> None:
        """Remember something the reader of the result must know; each text once."""
        self._notes[text] = None

    def begin(self, record: RunRecord) -> Life:
        """Open the next run of this source."""
        life = Life(self.runs, record)
        self.runs += 1
        self.lives.append(life)
        return life

    def end(self, life: Life) -> None:
        """Close a run: nothing more is said about it."""
        for kind, count in life.overflow.items():
            self.note(f"{count} further events of kind {kind} were read and not kept")
        life.ended = True

    def evidence(self, number: int, text: bytes) -> Evidence:
        """A line as evidence: cut to a readable length, redacted."""
        return Evidence(self.options.source, number, redact_text(decode(text[: 2 * LONGEST_TEXT])))


@dataclass(frozen=True)
class LogFormat:
    """The log of one engine.

    Attributes:
        engine: the engine's word (``sglang``), as everywhere.
        title: the engine's name as people write it.
        versions: releases whose lines were read in full.
        signs: patterns, each of which marks a log as this engine's.
        lines, samples: see :class:`Line` and :class:`Sample`.
        split: whether a line bears the engine's prefix, and what follows it.
        session: opens a reading.
    """

    engine: str
    title: str
    versions: str
    signs: tuple[re.Pattern[bytes], ...]
    lines: tuple[Line, ...]
    samples: tuple[Sample, ...]
    split: Callable[[bytes], tuple[Place, bytes]]
    session: Callable[[ReadOptions], Session]

    def likeness(self, head: bytes) -> int:
        """How many of the format's signs the beginning of a file shows."""
        return sum(1 for sign in self.signs if sign.search(head))

    def claims(self, text: bytes) -> dict[str, Mapping[str, Value]]:
        """Every line that claims a text, with the values it reads from it."""
        place, message = self.split(text)
        claimed: dict[str, Mapping[str, Value]] = {}
        for line in self.lines:
            values = line.read(message) if line.place in (place, Place.EITHER) else None
            if values is not None:
                claimed[line.name] = values
        return claimed


def self_check(log_format: LogFormat) -> list[str]:
    """What is wrong with a format: lines without sample, samples that none or two lines claim, other values."""
    problems: list[str] = []
    names = [line.name for line in log_format.lines]
    problems += [f"two lines are named {name}" for name in sorted({name for name in names if names.count(name) > 1})]
    proven = {sample.line for sample in log_format.samples}
    problems += [f"line {name} has no sample" for name in names if name not in proven]
    for sample in log_format.samples:
        claimed = log_format.claims(sample.text.encode())
        if list(claimed) != [sample.line]:
            problems.append(f"sample of {sample.line} is claimed by {', '.join(claimed) or 'no line'}: {sample.text}")
            continue
        place, message = log_format.split(sample.text.encode())
        found = Dispatch(log_format.lines, place).find(message)
        if found is None or found[0].name != sample.line:
            problems.append(f"sample of {sample.line} is not found by its beginning: {sample.text}")
        stated = claimed[sample.line]
        problems += [
            f"sample of {sample.line} reads {name} as {stated.get(name)!r}, not {value!r}: {sample.text}"
            for name, value in sample.values.items()
            if stated.get(name) != value
        ]
    return problems


class Dispatch:
    """Finds the lines that a message may be, by its first bytes."""

    WIDTH: Final = 4

    def __init__(self, lines: tuple[Line, ...], place: Place) -> None:
        here = [line for line in lines if line.place in (place, Place.EITHER)]
        self._anywhere = [line for line in here if len(line.starts) < self.WIDTH]
        self._table: dict[bytes, list[Line]] = {}
        for line in here:
            if len(line.starts) >= self.WIDTH:
                self._table.setdefault(line.starts[: self.WIDTH], []).append(line)

    def find(self, message: bytes) -> tuple[Line, Mapping[str, Value]] | None:
        """The line that a message is, and what it states."""
        for candidates in (self._table.get(message[: self.WIDTH], _NONE), self._anywhere):
            for line in candidates:
                values = line.read(message)
                if values is not None:
                    return line, values
        return None


_NONE: list[Line] = []


def decode(text: bytes) -> str:
    """Bytes of a log as text; what is no UTF-8 shows as the replacement character."""
    return text.decode("utf-8", "replace").rstrip("\r\n")


def typed(text: bytes) -> Value:
    """A value as an engine prints it: a number, a truth value, nothing, or text."""
    word = decode(text)
    if word in _WORDS:
        return _WORDS[word]
    if not word or word[0] not in "+-.0123456789":
        return word
    try:
        return int(word)
    except ValueError:
        pass
    try:
        return float(word)
    except ValueError:
        return word


_WORDS: dict[str, Value] = {"True": True, "False": False, "None": None}
