"""What Ray's driver prints for its workers: name and process in parentheses.

Source: Ray, ``ray/_private/worker.py: print_to_stdstream``, ``ray_logging: LogDeduplicator``.
"""

from __future__ import annotations

import re
from typing import Final

from collector.formats.wrappers.base import Peeled, WrappedSample, Wrapper

_PREFIX: Final = re.compile(rb"\(((?:[\w.:<>-]{1,100}(?: [\w.:<>-]{1,100})* )?pid=\d+(?:, ip=[\w.:]+)?)\)(?: |$)")
_REPEATED: Final = re.compile(rb" ?\[repeated \d+x across cluster\].*$", re.DOTALL)


def peel(line: bytes) -> Peeled | None:
    """A line that begins with ``(NAME pid=1, ip=…)``."""
    match = _PREFIX.match(line)
    if match is None:
        return None
    text = line[match.end() :]
    if b"x across cluster]" in text:
        text = _REPEATED.sub(b"", text)
    return Peeled(text, b"", match[1])


WRAPPER: Final = Wrapper(
    "ray",
    "Ray worker prefixes",
    peel,
    (
        WrappedSample(
            "(RayWorkerWrapper pid=812, ip=10.0.0.7) INFO 11-29 18:20:00 [a.py:1] b",
            Peeled(b"INFO 11-29 18:20:00 [a.py:1] b", b"", b"RayWorkerWrapper pid=812, ip=10.0.0.7"),
        ),
        WrappedSample("(pid=812) a", Peeled(b"a", b"", b"pid=812")),
        WrappedSample(
            "(Worker pid=812) a [repeated 3x across cluster] (Ray deduplicates logs by default.)",
            Peeled(b"a", b"", b"Worker pid=812"),
        ),
    ),
    loose=True,
)
