"""``docker compose logs`` and ``docker service logs``: the service's name, a bar, the text."""

from __future__ import annotations

import re
from typing import Final

from collector.formats.wrappers.base import Peeled, WrappedSample, Wrapper

_PREFIX: Final = re.compile(rb"([A-Za-z0-9][\w.@/-]{0,200}) *\|(?: |$)")


def peel(line: bytes) -> Peeled | None:
    """A line that begins with a name and a bar."""
    match = _PREFIX.match(line)
    return None if match is None else Peeled(line[match.end() :], match[1])


WRAPPER: Final = Wrapper(
    "compose",
    "compose prefixes",
    peel,
    (
        WrappedSample("sglang-1  | [2026-01-01 00:00:01] a", Peeled(b"[2026-01-01 00:00:01] a", b"sglang-1")),
        WrappedSample("sglang_1       |   File x", Peeled(b"  File x", b"sglang_1")),
        WrappedSample("llm.1.abc123@node-7    | a", Peeled(b"a", b"llm.1.abc123@node-7")),
        WrappedSample("sglang-1  |", Peeled(b"", b"sglang-1")),
    ),
    loose=True,
)
