"""A llama.cpp router: the lines of each server it started bear that server's port, its own lines nothing.

Source: llama.cpp ``tools/server/server-models.cpp``, since router mode (end of 2025).
"""

from __future__ import annotations

import re
from typing import Final

from collector.formats.wrappers.base import Peeled, WrappedSample, Wrapper

_PORT: Final = re.compile(rb"\[ {0,4}(\d{2,5})\](?: |$)")
_OWN: Final = re.compile(rb"\d{1,7}\.\d\d\.\d{3}\.\d{3} |(?:srv|que|cmn|main) ")
"""How the router's own lines begin: with its own uptime, which is not that of its servers."""


def peel(line: bytes) -> Peeled | None:
    """A line of a server with its port, or one of the router itself."""
    match = _PORT.match(line)
    if match is not None:
        return Peeled(line[match.end() :], match[1])
    return Peeled(line, b"router") if _OWN.match(line) else None


WRAPPER: Final = Wrapper(
    "llama-router",
    "ports of a llama.cpp router",
    peel,
    (
        WrappedSample("[53409] 0.01.002.003 I srv  a: b", Peeled(b"0.01.002.003 I srv  a: b", b"53409")),
        WrappedSample("[53409]        eval time = 1.00 ms", Peeled(b"       eval time = 1.00 ms", b"53409")),
        WrappedSample("[ 8081] a", Peeled(b"a", b"8081")),
        WrappedSample("[53409]", Peeled(b"", b"53409")),
        WrappedSample("0.09.000.000 I srv  a: b", Peeled(b"0.09.000.000 I srv  a: b", b"router")),
    ),
    loose=True,
)
