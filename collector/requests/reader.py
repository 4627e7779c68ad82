"""Responses in files: JSON lines, lists, documents one after another, streamed answers.

A response may lie anywhere inside a document, so that what a client or gateway kept around it does no
harm: the request, a status, a route. Lines without figures of a response, lines that are cut off, and
responses with impossible figures are counted and told, never guessed at.
"""

from __future__ import annotations

import importlib
import json
import pkgutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any, Final

from collector.domain.errors import DraftscopeError
from collector.domain.requests import RequestResult
from collector.domain.runs import Reading
from collector.requests import engines
from collector.requests.base import ResponseFormat, Surroundings

LONGEST_LINE: Final = 16 << 20
"""Bytes of one line; an answer with the probabilities of each of its tokens takes some of them."""
LARGEST_DOCUMENT: Final = 64 << 20
"""Bytes of a document over several lines, which is read whole."""
DEEPEST: Final = 12
"""Levels of a document in which responses are looked for."""
MOST_REFUSED: Final = 5
"""Responses with impossible figures that are told one by one."""
KIND: Final = "request results"

_DATA: Final = b"data:"
_OF_A_STREAM: Final = (b":", b"event:", b"id:", b"retry:")
_DONE: Final = b"[DONE]"
_PUNCTUATION: Final = (b"", b"[", b"]", b",")
"""Lines of a list that was written one entry a line."""
_BOM: Final = b"\xef\xbb\xbf"


@cache
def response_formats() -> tuple[ResponseFormat, ...]:
    """The formats of the package ``engines``."""
    names = (info.name for info in pkgutil.iter_modules(engines.__path__, f"{engines.__name__}."))
    return tuple(importlib.import_module(name).FORMAT for name in names)


@dataclass(slots=True)
class Responses:
    """What was read of one source.

    ``results`` has each response once, in the order they were read. ``repeated`` counts responses that were there before,
    ``parts`` those that a later part of the same streamed answer replaced; ``foreign`` lines hold no
    figures of a response, ``broken`` ones are no JSON (``cut_off``: the last one, without an end),
    ``oversize`` ones are too long. ``refused`` are errors of responses with impossible figures.
    """

    source: str
    results: list[RequestResult] = field(default_factory=list)
    lines: int = 0
    understood: int = 0
    repeated: int = 0
    parts: int = 0
    foreign: list[int] = field(default_factory=list)
    broken: list[int] = field(default_factory=list)
    cut_off: bool = False
    oversize: int = 0
    refused: list[DraftscopeError] = field(default_factory=list)

    def notes(self) -> tuple[str, ...]:
        """What a reader must know of these results, in sentences without a full stop."""
        found = [_responses(self.results)]
        for count, what in (
            (len(self.refused), "with figures that are not possible, left out"),
            (self.repeated, "there before, counted once"),
        ):
            if count:
                found.append(f"{_plural(count, 'response')} {what}")
        found += [f"{error.where}: {error.what}" for error in self.refused[:MOST_REFUSED]]
        for lines, what in ((self.foreign, "without figures of a response"), (self.broken, "no JSON")):
            if lines:
                found.append(f"{_plural(len(lines), 'line')} {what} (first: line {lines[0]})")
        if self.cut_off:
            found.append("the last line is cut off")
        if self.oversize:
            found.append(f"{_plural(self.oversize, 'line')} longer than {LONGEST_LINE >> 20} MiB, dropped")
        return tuple(found)

    def reading(self) -> Reading:
        """The same as readings of sources are told."""
        return Reading(
            self.source,
            kind=KIND,
            lines=self.lines,
            understood=self.understood,
            unread=len(self.foreign) + len(self.broken),
            oversize_lines=self.oversize,
            notes=self.notes(),
        )


def read_responses(blocks: Iterable[bytes], source: str) -> Responses:
    """Read the responses of a source; any bytes at all give a result, if an empty one."""
    reader = _Reader(Responses(source))
    lines = _lines(blocks, reader)
    first = next(((number, line) for number, line in lines if line.strip()), None)
    if first is None:
        return reader.told
    number, line = first
    if _parsed(_bare(line)) is None and line.lstrip().startswith((b"{", b"[")):
        whole, rest = _whole(line, lines)
        if rest is None and reader.documents(whole, number):
            return reader.finish()
        reader.lines(enumerate(whole.split(b"\n"), number))
        if rest is not None:
            reader.line(*rest)
            reader.lines(lines)
        return reader.finish()
    reader.line(number, line)
    reader.lines(lines)
    return reader.finish()


def holds_responses(head: bytes) -> bool:
    """Whether what a file begins with holds a response."""
    return bool(read_responses([head], "").results)


@dataclass(slots=True)
class _Reader:
    told: Responses
    found: dict[str, RequestResult] = field(default_factory=dict)

    def finish(self) -> Responses:
        """Everything that was read."""
        told = self.told
        told.results = list(self.found.values())
        if told.broken and told.broken[-1] == told.lines:
            told.cut_off = True
            told.broken.pop()
        return told

    def lines(self, lines: Iterable[tuple[int, bytes]]) -> None:
        """Read lines with one document each."""
        for number, line in lines:
            self.line(number, line)

    def line(self, number: int, line: bytes) -> None:
        """Read one line; those of a stream or list that hold no document count as understood."""
        text = _bare(line)
        if text in _PUNCTUATION or text == _DONE or text.startswith(_OF_A_STREAM):
            self.told.understood += 1
            return
        document = _parsed(text)
        if document is None:
            self.told.broken.append(number)
        else:
            self._document(document, number)

    def documents(self, text: bytes, number: int) -> bool:
        """Read documents one after another, or the entries of a list; whether the first could be."""
        decoder = json.JSONDecoder()
        content = text.decode("utf-8", "replace").removeprefix("\ufeff")
        at, line, seen = 0, number, 0
        listed = content.lstrip().startswith("[")
        if listed:
            at = content.index("[") + 1
        while True:
            start = at
            while at < len(content) and content[at] in " \t\r\n,":
                at += 1
            line += content.count("\n", start, at)
            if at >= len(content) or (listed and content[at] == "]"):
                return bool(seen)
            try:
                document, end = decoder.raw_decode(content, at)
            except (ValueError, RecursionError):
                if seen:
                    self.told.cut_off = True
                return bool(seen)
            self._document(document, line)
            seen += 1
            line += content.count("\n", at, end)
            at = end

    def _document(self, document: Any, line: int) -> None:
        """Take every response in a document."""
        found = False
        for form, response, around in _responses_in(document, Surroundings(line)):
            found = True
            try:
                result = form.read(response, around)
            except DraftscopeError as error:
                error.where = error.where or f"{self.told.source}, line {line}"
                self.told.refused.append(error)
                continue
            if result is not None:
                self._take(result)
        if found:
            self.told.understood += 1
        else:
            self.told.foreign.append(line)

    def _take(self, result: RequestResult) -> None:
        known = self.found.get(result.key)
        if known is not None and (known.output_tokens or 0) >= (result.output_tokens or 0):
            self.told.repeated += 1
            return
        self.told.parts += known is not None
        self.found[result.key] = result


def _responses_in(
    value: Any, around: Surroundings, level: int = 0
) -> Iterator[tuple[ResponseFormat, Mapping[str, Any], Surroundings]]:
    """The responses inside a value, with what stands around them."""
    if level > DEEPEST:
        return
    if isinstance(value, dict):
        around = around.within(value)
        for form in response_formats():
            if form.claims(value):
                yield form, value, around
                return
    elif not isinstance(value, list):
        return
    for inner in value.values() if isinstance(value, dict) else value:
        if isinstance(inner, (dict, list)):
            yield from _responses_in(inner, around, level + 1)


def _bare(line: bytes) -> bytes:
    """A line without what a stream or a list puts around its document."""
    text = line.strip().removeprefix(_BOM)
    if text.startswith(_DATA):
        text = text[len(_DATA) :].strip()
    return text[:-1].rstrip() if text.endswith(b",") and len(text) > 1 else text


def _parsed(text: bytes) -> Any:
    """A JSON object or list, ``None`` for anything else."""
    try:
        document = json.loads(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    return document if isinstance(document, (dict, list)) else None


def _lines(blocks: Iterable[bytes], reader: _Reader) -> Iterator[tuple[int, bytes]]:
    """The lines of blocks with their numbers; what is longer than the longest is counted and dropped."""
    rest, dropping = b"", False
    for block in blocks:
        *whole, rest = (rest + block).split(b"\n")
        for line in whole:
            reader.told.lines += 1
            if not dropping:
                yield reader.told.lines, line
            dropping = False
        if len(rest) > LONGEST_LINE:
            reader.told.oversize += not dropping
            rest, dropping = b"", True
    if rest or dropping:
        reader.told.lines += 1
        if not dropping:
            yield reader.told.lines, rest


def _whole(first: bytes, lines: Iterator[tuple[int, bytes]]) -> tuple[bytes, tuple[int, bytes] | None]:
    """All lines as one text; with the line it ends before where they are too many for that."""
    parts, size = [first], len(first)
    for number, line in lines:
        size += len(line)
        if size > LARGEST_DOCUMENT:
            return b"\n".join(parts), (number, line)
        parts.append(line)
    return b"\n".join(parts), None


def _responses(results: list[RequestResult]) -> str:
    counted = sum(result.counted for result in results)
    silent = sum(not result.speculated for result in results)
    parts = [_plural(len(results), "response")]
    if results and counted < len(results):
        parts.append(f"{counted} with counts of verify steps")
    if silent:
        parts.append(f"{silent} without drafts")
    return ", ".join(parts)


def _plural(count: int, word: str) -> str:
    return f"{count} {word}" if count == 1 else f"{count} {word}s"
