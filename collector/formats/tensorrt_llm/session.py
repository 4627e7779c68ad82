"""Reads a TensorRT-LLM log line by line: runs, windows of iterations, and events."""

from __future__ import annotations

import re
from calendar import timegm
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from collector.domain.arguments import Value
from collector.domain.evidence import LONGEST_TEXT
from collector.domain.redaction import redact_text
from collector.domain.runs import Event, RunRecord
from collector.domain.versions import Release
from collector.formats.base import Dispatch, Life, Line, ReadOptions, Session, decode
from collector.formats.base import Place as LinePlace
from collector.formats.tensorrt_llm.iterations import Gathered, Iteration, Place, read_objects, read_words
from collector.formats.tensorrt_llm.lines import LINES
from collector.formats.tracebacks import BEGIN, Tracebacks

_HEAD: Final = re.compile(
    rb"(?:\[(\d\d)/(\d\d)/(\d{4})-(\d\d):(\d\d):(\d\d)\] )?\[(?:TRT-LLM|TensorRT-LLM)\]"
    rb"(?: ?\[(?:RANK \d+|[A-Z]{1,8}|_\w+)\])* ?"
)
_ANSI: Final = re.compile(rb"\x1b\[[0-9;]*[A-Za-z]")
_BARE_NOISE: Final = re.compile(
    rb"\s*$|.*\.py:\d+: \w*Warning: |\s+warnings\.warn\(|.{0,400}?\d+%\||.{0,200}\[\d\d:\d\d[<,]"
)
_OPTIONS: Final = {
    "max_draft_len": "speculative_config.max_draft_len",
    "max_total_draft_tokens": "speculative_config.max_total_draft_tokens",
}


class Parts(NamedTuple):
    """A line taken apart: its instant (``None`` where it has none), the message, and whether it has the engine's mark."""

    at: float | None
    message: bytes
    marked: bool


def read_line(line: bytes) -> Parts:
    """Take apart a line without colours."""
    head = _HEAD.match(line) if line[:1] == b"[" else None
    if head is None:
        return Parts(None, line, marked=False)
    at: float | None = None
    if head[1] is not None:
        month, day, year, hour, minute, second = (int(head[group]) for group in range(1, 7))
        if 1 <= month <= 12 and 1 <= day <= 31 and year >= 1970:
            at = float(timegm((year, month, day, hour, minute, second)))
    return Parts(at, line[head.end() :], marked=True)


def split(line: bytes) -> tuple[LinePlace, bytes]:
    """Whether a line bears the engine's mark, and its message."""
    parts = read_line(_without_colour(line))
    return LinePlace.ENGINE if parts.marked else LinePlace.BARE, parts.message


def _without_colour(line: bytes) -> bytes:
    return _ANSI.sub(b"", line) if b"\x1b" in line else line


@dataclass
class _Facts:
    """What the session keeps of the run it is in, beside the record itself."""

    life: Life
    units: dict[str, Gathered] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    """The last iteration of each unit."""
    clock: float = 0.0
    served: bool = False
    stopping: bool = False


class TensorrtLlmSession(Session):
    """One reading of one log, or of iterations saved from the metrics endpoint.

    The line with the release, or iterations that begin anew, open the next run.
    """

    def __init__(self, options: ReadOptions) -> None:
        super().__init__(options)
        self.reading.kind = "TensorRT-LLM log"
        self._engine_lines = Dispatch(LINES, LinePlace.ENGINE)
        self._bare_lines = Dispatch(LINES, LinePlace.BARE)
        self._tracebacks = Tracebacks()
        self._run: _Facts | None = None
        self._now: float | None = None

    # ---- lines

    def line(self, position: int, number: int, line: bytes) -> None:
        """Read one line."""
        if line.endswith(b"\r"):
            line = line.rstrip(b"\r")
        line = _without_colour(line)
        parts = read_line(line)
        place = Place(position, number)
        if parts.marked:
            self.reading.engine_lines += 1
            self._now = parts.at if parts.at is not None else self._now
            if self._tracebacks.active and self._tracebacks.reached:
                self._end_traceback()
            self._engine(place, parts, line)
        elif line[:1] in (b"{", b"[") and b'"iter"' in line:
            self.reading.engine_lines += 1
            read = read_objects(line.rstrip(b", "))
            if read is None:
                self.reading.torn_samples += 1
                return
            self.reading.understood += 1
            for index, iteration in enumerate(read):
                self._iteration(Place(position + index, number), iteration)
        else:
            self._bare(number, line)

    def _engine(self, place: Place, parts: Parts, line: bytes) -> None:
        message = parts.message
        if message.startswith(b"iter = "):
            iteration = read_words(message)
            if iteration is None:
                self.reading.torn_samples += 1
                return
            self.reading.understood += 1
            self._iteration(place, iteration)
            return
        found = self._engine_lines.find(message)
        if found is None:
            self.unread.add(place.line, message)
            return
        self.reading.understood += 1
        if found[0].kind:
            self._event(found[0], found[1], place.line, line)

    def _bare(self, number: int, line: bytes) -> None:
        if self._tracebacks.active:
            if self._tracebacks.take(number, line):
                self.reading.understood += 1
                return
            self._end_traceback()
        if line.startswith(BEGIN):
            self.reading.understood += 1
            self._tracebacks.begin()
            return
        found = self._bare_lines.find(line)
        if found is not None:
            self.reading.understood += 1
            if found[0].kind:
                self._event(found[0], found[1], number, line)
        elif _BARE_NOISE.match(line):
            self.reading.understood += 1

    # ---- runs

    def _current(self) -> _Facts:
        return self._run if self._run is not None else self._open()

    def _open(self) -> _Facts:
        self._close()
        record = RunRecord(
            "tensorrt-llm", self.options.source, self.options.engine_version, started_at=self._now, ended_at=self._now
        )
        self._run = _Facts(self.begin(record))
        return self._run

    def _close(self) -> None:
        facts = self._run
        if facts is None:
            return
        if self._tracebacks.active:
            self._end_traceback()
        for gathered in facts.units.values():
            facts.life.record.windows += gathered.finish()
        self.end(facts.life)
        self._run = None

    def finish(self) -> None:
        """The log has ended: what was gathered is a window."""
        if self._run is None and self.reading.engine_lines:
            self._open()  # an engine's log that states nothing about a run is still one run
        self._close()

    # ---- facts

    def _event(self, line: Line, values: Mapping[str, Value], number: int, text: bytes) -> None:
        evidence = self.evidence(number, text)
        facts = self._run
        if line.kind == "version":
            if facts is None or facts.served or facts.stopping:
                facts = self._open()
            self._state_release(facts, str(values["release"]))
        facts = self._current()
        facts.served = facts.served or line.kind == "ready"
        facts.stopping = facts.stopping or line.kind == "shutdown"
        named = {_OPTIONS.get(name, name): value for name, value in values.items()}
        facts.life.add(Event(line.kind, evidence, self._now, named))
        settled = {name: value for name, value in named.items() if "." in name or name == "disable_overlap_scheduler"}
        if settled:
            record = facts.life.record
            record.arguments = record.arguments.with_effective(settled, evidence)

    def _state_release(self, facts: _Facts, text: str) -> None:
        try:
            release = Release.parse(text)
        except ValueError:
            return
        if self.options.engine_version is None:
            facts.life.record.engine_version = release

    def _end_traceback(self) -> None:
        """A traceback is over: before the server was ready it refused to start, later a request failed."""
        raised = self._tracebacks.end()
        if raised is None:
            return
        facts = self._current()
        if facts.stopping:
            return
        name, _, text = decode(raised.line[:LONGEST_TEXT]).partition(":")
        values: dict[str, Value] = {"exception": name.strip(), "message": redact_text(text.strip())}
        kind = "exception" if facts.served else "refused"
        facts.life.add(Event(kind, self.evidence(raised.number, raised.line), self._now, values))

    # ---- iterations

    def _iteration(self, place: Place, iteration: Iteration) -> None:
        facts = self._current()
        last = facts.numbers.get(iteration.unit)
        if last is not None and iteration.number < last // 2 and iteration.number < last - 10:
            facts = self._open()  # iterations are counted from the start of the process
        facts.served = True
        if len(facts.numbers) < 10_000:
            facts.numbers[iteration.unit] = iteration.number
        at = iteration.at if iteration.at is not None else self._now
        facts.clock += iteration.seconds or 0.0
        if at is not None:
            facts.life.record.ended_at = at
            facts.life.record.started_at = facts.life.record.started_at or at
        gathered = facts.units.get(iteration.unit)
        if gathered is None:
            gathered = facts.units[iteration.unit] = Gathered(iteration.unit)
        facts.life.record.windows += gathered.add(place, at if at is not None else facts.clock, iteration)
        facts.life.changed = True
