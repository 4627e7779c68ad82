"""Reads a log as its bytes come: finds out whose it is, then lets that engine's session read it."""

from __future__ import annotations

from typing import Final

from collector.domain.runs import Reading
from collector.formats import format_of
from collector.formats.base import LogFormat, ReadOptions, RunPart, Session
from collector.formats.blocks import BlockCutter
from collector.formats.sniff import recognise_log

HEAD_BYTES: Final = 1 << 20
"""How much of a log is looked at to find out whose it is."""


class LogReader:
    """One reading of one log, fed with bytes in pieces of any size.

    Call :meth:`take` between pieces to bound the memory. What comes out does not depend on how
    the bytes were cut.
    """

    def __init__(self, options: ReadOptions, engine: str | None = None) -> None:
        self.options = options
        self._cutter = BlockCutter()
        self._head: list[bytes] = []
        self._head_bytes = 0
        self._bytes = 0
        self._session: Session | None = None
        self.format: LogFormat | None = None
        if engine is not None:
            self._start(format_of(engine))

    @property
    def bytes_read(self) -> int:
        """How many bytes were fed."""
        return self._bytes

    def feed(self, data: bytes) -> None:
        """Read further bytes.

        Raises:
            UnreadableInput: the first bytes are no log that is read here.
        """
        self._bytes += len(data)
        if self._session is None:
            self._head.append(data)
            self._head_bytes += len(data)
            if self._head_bytes >= HEAD_BYTES:
                self._recognise()
            return
        for block in self._cutter.feed(data):
            self._session.block(block)

    def finish(self) -> None:
        """The log has ended.

        Raises:
            UnreadableInput: it was no log that is read here.
        """
        if self._session is None:
            self._recognise()
        assert self._session is not None
        for block in self._cutter.finish():
            self._session.block(block)
        self._session.finish()

    def take(self) -> list[RunPart]:
        """What was read since the last call, run by run."""
        return self._session.take() if self._session is not None else []

    def summary(self) -> Reading:
        """What was made of the log so far."""
        reading = self._session.summary() if self._session is not None else Reading(self.options.source)
        reading.lines = self._cutter.lines
        reading.oversize_lines = self._cutter.oversize
        return reading

    def _recognise(self) -> None:
        head = b"".join(self._head)
        self._head = []
        self._start(recognise_log(head[:HEAD_BYTES], self.options.source))
        self._bytes -= len(head)
        self.feed(head)

    def _start(self, log_format: LogFormat) -> None:
        self.format = log_format
        self._session = log_format.session(self.options)
