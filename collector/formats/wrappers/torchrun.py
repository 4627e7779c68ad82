"""``torchrun --tee``: role and rank in brackets."""

from __future__ import annotations

import re
from typing import Final

from collector.formats.wrappers.base import Peeled, WrappedSample, Wrapper

_PREFIX: Final = re.compile(rb"\[([A-Za-z][\w-]{0,60}?\d+)\]:")


def peel(line: bytes) -> Peeled | None:
    """A line that begins with ``[ROLE0]:``."""
    match = _PREFIX.match(line)
    return None if match is None else Peeled(line[match.end() :], b"", match[1])


WRAPPER: Final = Wrapper(
    "torchrun",
    "torchrun rank prefixes",
    peel,
    (
        WrappedSample("[default0]:[2026-01-01 00:00:01] a", Peeled(b"[2026-01-01 00:00:01] a", b"", b"default0")),
        WrappedSample("[worker12]:  File x", Peeled(b"  File x", b"", b"worker12")),
    ),
)
