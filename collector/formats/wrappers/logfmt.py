"""logfmt: ``time=… level=… msg="…"`` and labels, as programs in Go write what they carry.

Source: Docker Model Runner (``component=llama.cpp``), logrus and ``log/slog`` with their text handlers.
"""

from __future__ import annotations

import re
from typing import Final

from collector.formats.wrappers.base import Peeled, WrappedSample, Wrapper

_LINE: Final = re.compile(
    rb'(?:time|ts)=(?:"[^"]{1,60}"|[^\s"]{1,60}) level=\w{1,10} (?:source=\S{1,200} )?msg=(?:"((?:[^"\\]|\\.)*)"|([^\s"]*))'
    rb"((?: .*)?)$"
)
_LABEL: Final = re.compile(rb' (?:component|service|container)=(?:"([^"]*)"|(\S+))')
_ESCAPE: Final = re.compile(rb'\\(["\\ntr])')
_MEANT: Final = {b"n": b"\n", b"t": b"\t", b"r": b"\r"}


def peel(line: bytes) -> Peeled | None:
    """A record whose text is its message, with a label that says of what."""
    match = _LINE.match(line)
    if match is None:
        return None
    text = match[2] if match[1] is None else _ESCAPE.sub(lambda found: _MEANT.get(found[1], found[1]), match[1])
    label = _LABEL.search(match[3])
    return Peeled(text.removesuffix(b"\n"), b"" if label is None else label[1] or label[2] or b"")


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
        WrappedSample('ts=2026-01-01T00:00:01Z level=info msg="a\\n" container=x', Peeled(b"a", b"x")),
    ),
)
