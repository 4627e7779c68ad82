"""``srun --label``: the task's number, right-aligned, and a colon."""

from __future__ import annotations

import re
from typing import Final

from collector.formats.wrappers.base import Peeled, WrappedSample, Wrapper

_PREFIX: Final = re.compile(rb" {0,5}(\d{1,6}):(?: |$)")


def peel(line: bytes) -> Peeled | None:
    """A line that begins with a number and a colon."""
    match = _PREFIX.match(line)
    return None if match is None else Peeled(line[match.end() :], b"", match[1])


WRAPPER: Final = Wrapper(
    "slurm",
    "Slurm task prefixes",
    peel,
    (
        WrappedSample(" 3: [2026-01-01 00:00:01] a", Peeled(b"[2026-01-01 00:00:01] a", b"", b"3")),
        WrappedSample("12:   File x", Peeled(b"  File x", b"", b"12")),
    ),
    loose=True,
)
