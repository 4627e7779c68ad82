"""Reads a log as its bytes come: unwraps it, finds out whose it is, lets that engine's session read it."""

from __future__ import annotations

from dataclasses import replace

from collector.domain.errors import UnreadableInput
from collector.domain.runs import Reading
from collector.formats.base import LogFormat, ReadOptions, RunPart
from collector.formats.blocks import LINE_CAP, BlockCutter
from collector.formats.streams import HEAD_BYTES, Knowledge, Stream, holds_log, together


class LogReader:
    """One reading of one source, fed with bytes in pieces of any size.

    Call :meth:`take` between pieces to bound the memory. What comes out does not depend on how
    the bytes were cut.
    """

    def __init__(self, options: ReadOptions, engine: str | None = None) -> None:
        self.options = options
        self._cutter = BlockCutter()
        self._found = Knowledge(options, engine)
        self._root = Stream(self._found, head_bytes=HEAD_BYTES)
        self._bytes = 0

    @property
    def bytes_read(self) -> int:
        """How many bytes were fed."""
        return self._bytes

    @property
    def format(self) -> LogFormat | None:
        """The format of the first log that was recognised."""
        return self._found.formats[0] if self._found.formats else None

    @property
    def lines(self) -> int:
        """How many lines were complete."""
        return self._cutter.lines

    def runs_begun(self) -> dict[int, int]:
        """How many runs each stream has begun, by the stream's number."""
        return dict(self._root.runs_begun())

    def feed(self, data: bytes) -> None:
        """Read further bytes.

        Raises:
            UnreadableInput: the first bytes are no log that is read here.
        """
        self._bytes += len(data)
        for block in self._cutter.feed(data):
            self._root.block(block)
        self._raise_if_strange()

    def settle(self) -> None:
        """Decide from what has come so far whose log it is, as nothing more may come for a while.

        Raises:
            UnreadableInput: it is no log that is read here.
        """
        self._root.settle()
        self._raise_if_strange()

    def settle_if_known(self) -> bool:
        """Decide whose log it is if what has come so far tells; whether it is decided."""
        if not self._root.settled and self._found.engine is None and not holds_log(self._root.head):
            return False
        self._root.settle()
        return True

    def finish(self) -> None:
        """The log has ended.

        Raises:
            UnreadableInput: it was no log that is read here.
        """
        for block in self._cutter.finish():
            self._root.block(block)
        self._root.finish()
        self._raise_if_strange()
        if not self._found.formats and self._found.error is not None:
            raise self._strange(self._found.error)

    def take(self, *, columns: bool = False) -> list[RunPart]:
        """What was read since the last call, run by run; with ``columns`` as :meth:`Session.take` says."""
        return list(self._root.take(columns=columns))

    def summary(self) -> Reading:
        """What was made of the log so far."""
        reading = together(list(self._root.readings()), self.options.source)
        kind = f"{reading.kind} in {', '.join(self._found.titles)}" if self._found.titles else reading.kind
        return replace(
            reading,
            kind=kind,
            lines=self._cutter.lines,
            oversize_lines=self._cutter.oversize + self._root.oversize,
            notes=(*reading.notes, *self._root.notes()),
        )

    def _raise_if_strange(self) -> None:
        """A source that is not wrapped and not recognised need not be read to its end."""
        if self._found.error is not None and not self._found.titles:
            raise self._strange(self._found.error)

    def _strange(self, error: UnreadableInput) -> UnreadableInput:
        """Why it is no log; lines that were too long to be looked at leave nothing, which is not the same as empty."""
        if not self._cutter.oversize or self._cutter.oversize < self._cutter.lines:
            return error
        return UnreadableInput(
            "every line of this input is too long for a log",
            why=f"{self._cutter.oversize} of more than {LINE_CAP >> 20} MiB",
            where=error.where,
            hint="give the log as the engine writes it, one message a line",
        )
