"""logfmt: ``time=… level=… msg="…"`` and labels, as programs in Go write what they carry.

Source: Docker Model Runner (``component=llama.cpp``), logrus and ``log/slog`` with their text handlers.
"""

from __future__ import annotations

import re
import sys
from typing import Final

from collector.formats.wrappers.base import Peeled, WrappedSample, Wrapper

_LINE: Final = re.compile(
    rb'(?:time|ts)=(?:"[^"]{1,60}"|[^\s"]{1,60}) level=\w{1,10} (?:source=\S{1,200} )?msg=(?:"((?:[^"\\]|\\.)*)"|([^\s"]*))'
    rb"((?: .*)?)$"
)
_LABEL: Final = re.compile(rb' (?:component|service|container)=(?:"([^"]*)"|(\S+))')
_ESCAPE: Final = re.compile(rb"\\(?:x([0-9a-f]{2})|u([0-9a-f]{4})|U([0-9a-f]{8})|(.))")
_MEANT: Final = {b"n": b"\n", b"t": b"\t", b"r": b"\r", b"a": b"\a", b"b": b"\b", b"f": b"\f", b"v": b"\v"}
"""Go's ``strconv.Quote`` writes bytes that are no UTF-8, and what steers a terminal, as numbers."""


def peel(line: bytes) -> Peeled | None:
    """A record whose text is its message, with a label that says of what."""
    match = _LINE.match(line)
    if match is None:
        return None
    text = match[2] if match[1] is None else _ESCAPE.sub(_meant, match[1])
    label = _LABEL.search(match[3])
    return Peeled(text.removesuffix(b"\n"), b"" if label is None else label[1] or label[2] or b"")


def _meant(escape: re.Match[bytes]) -> bytes:
    """What an escape stands for."""
    byte, short, long, letter = escape.groups()
    if letter is not None:
        return _MEANT.get(letter, letter)
    if byte is not None:
        return bytes([int(byte, 16)])
    number = int(short or long, 16)
    return chr(number).encode("utf-8", "replace") if number <= sys.maxunicode else escape[0]


WRAPPER: Final = Wrapper(
    "logfmt",
    "logfmt records",
    peel,
    (
        WrappedSample(
            'time="2026-01-01T00:00:01Z" level=info msg="  a \\"b\\" = 1" component=llama.cpp',
            Peeled(b'  a "b" = 1', b"llama.cpp"),
        ),
        WrappedSample("time=2026-01-01T00:00:01.000Z level=INFO source=a.go:1 msg=b", Peeled(b"b")),
        WrappedSample(
            r'time="2026-01-01T00:00:01Z" level=info msg="\x1b[0m50%\u2028 \xff"',
            Peeled(b"\x1b[0m50%\xe2\x80\xa8 \xff", b""),
        ),
        WrappedSample('ts=2026-01-01T00:00:01Z level=info msg="a\\n" container=x', Peeled(b"a", b"x")),
    ),
)
