"""Syslog and journald as text: time, host, program, text.

Source: RFC 3164, RFC 5424, ``journalctl --output`` (``short``, ``short-precise``, ``short-iso``,
``short-full``, ``short-unix``), rsyslog's escapes for control characters (``#033`` and the like).
"""

from __future__ import annotations

import re
from typing import Final

from collector.formats.wrappers.base import Peeled, WrappedSample, Wrapper

_PREFIX: Final = re.compile(
    rb"(?:<\d{1,3}>)?"
    rb"(?:[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d{1,6})?"
    rb"|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)"
    rb"|[A-Z][a-z]{2} \d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})? [A-Z+][\w+:-]{1,8}"
    rb"|\d{9,11}\.\d{6})"
    rb" ([A-Za-z0-9][\w.:-]{0,254}) ([A-Za-z0-9/_][\w./@+:-]{0,127}?)(?:\[\d{1,10}\])?:(?: |$)"
)
_NEW_PREFIX: Final = re.compile(
    rb"<\d{1,3}>1 \S{1,40} (\S{1,255}) (\S{1,48}) \S{1,128} \S{1,32} "
    rb"(?:-|(?:\[(?:[^\]\\]|\\.){0,4000}\])+)(?: (?:\xef\xbb\xbf)?|$)"
)
_ESCAPED: Final = re.compile(rb"#(011|012|015|033(?=$|\[[0-9;:?]*(?:$|[@-~])|[()](?:$|[A-Z0-2])|[=>78cMDEHNO]))")
"""What steers a terminal is told only if it goes on as such: it may have been cut, and put into quotes, before it came here."""


def peel(line: bytes) -> Peeled | None:
    """A line that syslog or journald wrote."""
    match = _PREFIX.match(line) or _NEW_PREFIX.match(line)
    if match is None:
        return None
    text = line[match.end() :]
    if b"#0" in text:
        text = _ESCAPED.sub(lambda escaped: bytes([int(escaped[1], 8)]), text)
    return Peeled(text, match[1] + b" " + match[2])


WRAPPER: Final = Wrapper(
    "syslog",
    "syslog or journald lines",
    peel,
    (
        WrappedSample(
            "Nov 29 18:20:00 gpu-7 sglang[812]: [2026-11-29 18:20:00] a",
            Peeled(b"[2026-11-29 18:20:00] a", b"gpu-7 sglang"),
        ),
        WrappedSample("Jan  3 08:00:00.123456 gpu-7 docker/llm[9]:   File x", Peeled(b"  File x", b"gpu-7 docker/llm")),
        WrappedSample("2026-11-29T18:20:00+0000 gpu-7 llm[812]: a", Peeled(b"a", b"gpu-7 llm")),
        WrappedSample("2026-11-29T18:20:00.123456+00:00 gpu-7 llm[812]: a", Peeled(b"a", b"gpu-7 llm")),
        WrappedSample("Sun 2026-11-29 18:20:00 UTC gpu-7 llm.service[812]: a", Peeled(b"a", b"gpu-7 llm.service")),
        WrappedSample("1764440400.123456 gpu-7 llm[812]: a", Peeled(b"a", b"gpu-7 llm")),
        WrappedSample(
            "<30>Nov 29 18:20:00 gpu-7 llm[812]: #033[32ma#033[0m", Peeled(b"\x1b[32ma\x1b[0m", b"gpu-7 llm")
        ),
        WrappedSample("Nov 29 18:20:00 gpu-7 llm[812]: a#033[3", Peeled(b"a\x1b[3", b"gpu-7 llm")),
        WrappedSample('Nov 29 18:20:00 gpu-7 llm[812]: "a#033[3"', Peeled(b'"a#033[3"', b"gpu-7 llm")),
        WrappedSample("<165>1 2026-11-29T18:20:00.003Z gpu-7 llm 812 ID47 - a", Peeled(b"a", b"gpu-7 llm")),
        WrappedSample('<165>1 2026-11-29T18:20:00.003Z gpu-7 llm 812 - [x@1 y="[z\\]"] a', Peeled(b"a", b"gpu-7 llm")),
    ),
)
