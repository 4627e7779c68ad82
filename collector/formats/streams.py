"""The logs inside a source: one as a rule, several where containers or units write into one file.

Each is unwrapped, recognised and read by itself. What comes out does not depend on how the bytes
were cut: decisions are made on a beginning of fixed length.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from collector.domain.errors import UnreadableInput
from collector.domain.evidence import Evidence
from collector.domain.runs import Reading, UnreadShape
from collector.formats import format_of
from collector.formats.base import LogFormat, ReadOptions, RunPart, Session, decode
from collector.formats.blocks import Block
from collector.formats.shapes import SHAPES_SHOWN
from collector.formats.sniff import alike, recognise_log
from collector.formats.tidy import tidied
from collector.formats.wrappers import recognise_wrapper
from collector.formats.wrappers.unwrap import Unwrapper

HEAD_BYTES: Final = 1 << 20
"""How much of a source is looked at to find out whose it is."""
STREAM_HEAD_BYTES: Final = 1 << 17
"""How much of one stream among several is looked at."""
STREAMS_READ: Final = 255
"""Streams of one wrapping that are told apart; what further ones say is left out, and counted."""
LEVELS_TOLD_APART: Final = 2
"""Wrappings that name a stream, one inside the other."""
RUNS_OF_A_STREAM: Final = 4_096
"""A run's number is its own stream's, plus a multiple of this for streams that have a name."""


class Knowledge:
    """What all logs of a source share: what was known before, and what was found.

    ``engine`` is the format that was named. ``formats`` are those in use, ``titles`` the wrappings; ``error`` says of the first log that was
    not recognised what it is.
    """

    def __init__(self, options: ReadOptions, engine: str | None) -> None:
        self.options = options
        self.formats: list[LogFormat] = []
        self.titles: list[str] = []
        self.error: UnreadableInput | None = None
        self.engine = None if engine is None else format_of(engine)

    def add_title(self, title: str) -> None:
        """Note a wrapping; each once."""
        if title not in self.titles:
            self.titles.append(title)

    def format_of(self, head: bytes) -> LogFormat | None:
        """The format of a log that begins like this: what the user named, else what the content tells."""
        try:
            found = self.engine or recognise_log(head, self.options.source)
        except UnreadableInput as error:
            self.error = self.error or error
            return None
        if found not in self.formats:
            self.formats.append(found)
        return found


class Stream:
    """One log: held back until it is clear whose it is, then read by that engine's session.

    ``depth`` counts the wrappings around it, ``place`` numbers it among its siblings, and its
    parents among theirs; ``name`` says whose it is.
    """

    def __init__(
        self, shared: Knowledge, *, head_bytes: int, depth: int = 0, place: tuple[int, ...] = (), name: str = ""
    ) -> None:
        self._shared = shared
        self._head_bytes = head_bytes
        self._depth = depth
        self._place = place
        self._name = name
        self._waiting: list[Block] = []
        self._waiting_bytes = 0
        self._settled = False
        self._session: Session | None = None
        self._unwrapper: Unwrapper | None = None
        self._streams: dict[bytes, Stream] = {}
        self._lines = 0
        self._left_out = 0

    @property
    def settled(self) -> bool:
        """Whether it is decided whose log it is."""
        return self._settled

    @property
    def head(self) -> bytes:
        """What is held back."""
        return b"".join(block.data for block in self._waiting)

    def block(self, block: Block) -> None:
        """Read a block of whole lines."""
        if self._settled:
            self._read(block)
            return
        self._waiting.append(block)
        self._waiting_bytes += block.size
        if self._waiting_bytes >= self._head_bytes:
            self._settle()

    def settle(self) -> None:
        """Decide from what has come so far, here and in all streams inside, and read what was held back."""
        self._settle()
        for stream in list(self._streams.values()):
            stream.settle()

    def finish(self) -> None:
        """The source has ended."""
        self._settle()
        if self._unwrapper is not None:
            for name, block in self._unwrapper.finish():
                self._give(name, block)
        for stream in list(self._streams.values()):
            stream.finish()
        if self._session is not None:
            self._session.finish()

    def take(self, *, columns: bool) -> Iterator[RunPart]:
        """What was read since the last call, run by run."""
        if self._session is not None:
            for part in self._session.take(columns=columns):
                part.number += RUNS_OF_A_STREAM * self._index
                if self._name:
                    part.run.labels = {**part.run.labels, "stream": self._name}
                yield part
        for stream in self._streams.values():
            yield from stream.take(columns=columns)

    def runs_begun(self) -> Iterator[tuple[int, int]]:
        """How many runs each stream has begun, by the stream's number."""
        if self._session is not None:
            yield self._index, self._session.runs
        for stream in self._streams.values():
            yield from stream.runs_begun()

    def readings(self) -> Iterator[Reading]:
        """What was made of each log."""
        if self._session is not None:
            yield self._session.summary()
        for stream in self._streams.values():
            yield from stream.readings()

    @property
    def oversize(self) -> int:
        """Lines that were joined and dropped as too long."""
        own = self._unwrapper.oversize if self._unwrapper is not None else 0
        return own + sum(stream.oversize for stream in self._streams.values())

    def notes(self) -> Iterator[str]:
        """What is to be known about streams that are not read."""
        if self._lines and self._name:
            yield f"stream {self._name}: its {self._lines} lines are no log that draftscope reads"
        if self._left_out:
            yield f"{self._left_out} lines of further streams are left out: {STREAMS_READ} are told apart"
        for stream in self._streams.values():
            yield from stream.notes()

    @property
    def _index(self) -> int:
        """The stream's number in the source; 0 where nothing names a stream."""
        index = 0
        for place in self._place:
            index = index * (STREAMS_READ + 1) + place
        return index

    def _settle(self) -> None:
        if self._settled:
            return
        self._settled = True
        head = self.head
        waiting, self._waiting = self._waiting, []
        self._decide(head[: self._head_bytes])
        for block in waiting:
            self._read(block)

    def _decide(self, head: bytes) -> None:
        wrapper = recognise_wrapper(head, likeness, self._depth)
        if wrapper is not None:
            self._unwrapper = Unwrapper(wrapper)
            self._shared.add_title(wrapper.title)
            return
        log_format = self._shared.format_of(head)
        if log_format is not None:
            self._session = log_format.session(self._shared.options)

    def _read(self, block: Block) -> None:
        if self._unwrapper is not None:
            for name, inner in self._unwrapper.block(tidied(block, wrapped=True)):
                self._give(name, inner)
        elif self._session is not None:
            self._session.block(block)
        else:
            self._lines += block.text.count(b"\n", 0, block.size)

    def _give(self, name: bytes, block: Block) -> None:
        if len(self._place) >= LEVELS_TOLD_APART:
            name = b""
        stream = self._streams.get(name)
        if stream is None:
            if len(self._streams) >= STREAMS_READ:
                self._left_out += block.text.count(b"\n", 0, block.size)
                return
            stream = self._streams[name] = self._child(name)
        stream.block(block)

    def _child(self, name: bytes) -> Stream:
        if not name:
            place, head_bytes, full_name = self._place, self._head_bytes, self._name
        else:
            place, head_bytes = (*self._place, sum(map(bool, self._streams)) + 1), STREAM_HEAD_BYTES
            full_name = f"{self._name}/{decode(name)}" if self._name else decode(name)
        return Stream(self._shared, head_bytes=head_bytes, depth=self._depth + 1, place=place, name=full_name)


def likeness(head: bytes) -> int:
    """How much a text looks like a log of any engine."""
    ranked = alike(head)
    return ranked[0][0] if ranked else 0


def holds_log(head: bytes, depth: int = 0) -> bool:
    """Whether an engine's log, ``depth`` times unwrapped, begins like this."""
    wrapper = recognise_wrapper(head, likeness, depth)
    if wrapper is None:
        return likeness(head) > 0
    unwrapper = Unwrapper(wrapper)
    streams: dict[bytes, list[bytes]] = {}
    for name, block in (*unwrapper.block(tidied(Block(0, 1, head), wrapped=True)), *unwrapper.finish()):
        streams.setdefault(name, []).append(block.data)
    return any(holds_log(b"".join(parts), depth + 1) for parts in streams.values())


def together(readings: Sequence[Reading], source: str) -> Reading:
    """One reading of all logs in a source."""
    if len(readings) == 1:
        return readings[0]
    total = Reading(source, kind=", ".join(dict.fromkeys(reading.kind for reading in readings)))
    counts: dict[str, int] = {}
    first: dict[str, Evidence] = {}
    for reading in readings:
        total.engine_lines += reading.engine_lines
        total.understood += reading.understood
        total.unread += reading.unread
        total.torn_samples += reading.torn_samples
        for unread in reading.unread_shapes:
            counts[unread.shape] = counts.get(unread.shape, 0) + unread.count
            first.setdefault(unread.shape, unread.example)
    ranked = sorted(counts.items(), key=lambda item: (-item[1], item[0]))[:SHAPES_SHOWN]
    total.unread_shapes = tuple(UnreadShape(shape, count, first[shape]) for shape, count in ranked)
    total.notes = tuple(dict.fromkeys(note for reading in readings for note in reading.notes))
    return total
