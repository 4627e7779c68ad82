"""Takes out what terminals and crashes leave in logs: colours, carriage returns, NUL bytes, a byte order mark.

A progress bar rewrites its line with carriage returns, so that the text behind the last of them is
what a reader saw; what was printed before them and is no progress stays a line of its own.
"""

from __future__ import annotations

import re
from typing import Final

from collector.formats.blocks import Block, Places

_ESCAPES: Final = re.compile(
    rb"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]"  # colours and cursor movements
    rb"|\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)"  # titles and links
    rb"|[()][A-Z0-2]|[=>78cMDEHNO])"
)
_PROGRESS: Final = (b"%|", b"% Completed", b"it/s", b"s/it")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
UNTIDY: Final = (b"\x1b", b"\r", b"\x00")
"""A line with one of these is changed."""


def tidied(block: Block, *, wrapped: bool = False) -> Block:
    """A block without these; the same block where it has none.

    What is ``wrapped`` keeps carriage returns: each line is to be peeled as a whole.
    """
    if not (starts_with_mark(block) or any(map(block.holds, UNTIDY))):
        return block
    texts: list[bytes] = []
    offsets: list[int] = []
    numbers: list[int] = []
    for offset, number, line in block.lines():
        for place, text in tidied_parts(offset, line, wrapped=wrapped):
            texts.append(text)
            offsets.append(place)
            numbers.append(number)
    return Block(block.offset, block.first_line, b"\n".join(texts) + b"\n", Places(offsets, numbers))


def starts_with_mark(block: Block) -> bool:
    """Whether a source begins with this block and with a byte order mark."""
    return block.offset == 0 and block.text.startswith(_BYTE_ORDER_MARK)


def tidied_parts(offset: int, line: bytes, *, wrapped: bool = False) -> list[tuple[int, bytes]]:
    """The lines that one line is without these, each with its place."""
    if offset == 0:
        line = line.removeprefix(_BYTE_ORDER_MARK)
    line = without_escapes(line)
    if b"\x00" in line:
        line = line.strip(b"\x00")
    if wrapped:
        return [(offset, line)]
    line = line.rstrip(b"\r")
    if b"\r" not in line:
        return [(offset, line)]
    return [(offset + start, part) for start, part in seen_parts(line)]


def without_escapes(line: bytes) -> bytes:
    """A line without what steers a terminal."""
    return _ESCAPES.sub(b"", line) if b"\x1b" in line else line


def seen_parts(text: bytes) -> list[tuple[int, bytes]]:
    """What stands between carriage returns, with its place: whatever is no progress, and the last."""
    *before, last = text.split(b"\r")
    parts: list[tuple[int, bytes]] = []
    start = 0
    for part in before:
        if part and not any(mark in part[:2_000] for mark in _PROGRESS):
            parts.append((start, part))
        start += len(part) + 1
    return [*parts, (start, last)]
