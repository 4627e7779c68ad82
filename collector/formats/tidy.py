"""Takes out what terminals and crashes leave in logs: colours, carriage returns, NUL bytes, a byte order mark.

A progress bar rewrites its line with carriage returns, so that the text behind the last of them is
what a reader saw; what was printed before them and is no progress stays a line of its own.
"""

from __future__ import annotations

import re
from typing import Final

from collector.formats.base import Block, Places

_ESCAPES: Final = re.compile(
    rb"\x1b(?:\[[0-9;:?]*[ -/]*[@-~]"  # colours and cursor movements
    rb"|\][^\x07\x1b]{0,2000}(?:\x07|\x1b\\)"  # titles and links
    rb"|[()][A-Z0-2]|[=>78cMDEHNO])"
)
_PROGRESS: Final = (b"%|", b"% Completed", b"it/s", b"s/it")
_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"


def tidied(block: Block, *, wrapped: bool = False) -> Block:
    """A block without these; the same block where it has none.

    What is ``wrapped`` keeps carriage returns inside its lines: each line is to be peeled as a whole.
    """
    data = block.data
    marked = block.offset == 0 and data.startswith(_BYTE_ORDER_MARK)
    if not marked and b"\x1b" not in data and b"\r" not in data and b"\x00" not in data:
        return block
    texts: list[bytes] = []
    offsets: list[int] = []
    numbers: list[int] = []
    for offset, number, line in block.lines():
        text = line.removeprefix(_BYTE_ORDER_MARK) if marked and offset == 0 else line
        text = without_escapes(text)
        if b"\x00" in text:
            text = text.strip(b"\x00")
        text = text.rstrip(b"\r")
        if b"\r" in text and not wrapped:
            for start, part in seen_parts(text):
                texts.append(part)
                offsets.append(offset + start)
                numbers.append(number)
        else:
            texts.append(text)
            offsets.append(offset)
            numbers.append(number)
    return Block(block.offset, block.first_line, b"\n".join(texts) + b"\n", Places(offsets, numbers))


def tidied_line(line: bytes) -> bytes:
    """One line without these, cut to what a terminal would show last."""
    return without_escapes(line).strip(b"\x00\r").rpartition(b"\r")[2]


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
