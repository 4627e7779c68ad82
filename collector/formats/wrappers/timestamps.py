"""A time that the carrier put in front: ``docker logs --timestamps``, ``kubectl logs --timestamps``, CI systems."""

from __future__ import annotations

import re
from typing import Final

from collector.formats.wrappers.base import Peeled, WrappedSample, Wrapper

_PREFIX: Final = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d)(?: |$)")


def peel(line: bytes) -> Peeled | None:
    """A line that begins with a time as RFC 3339 writes it."""
    match = _PREFIX.match(line)
    return None if match is None else Peeled(line[match.end() :])


WRAPPER: Final = Wrapper(
    "timestamps",
    "a time in front of each line",
    peel,
    (
        WrappedSample("2026-01-01T00:00:01.123456789Z [2026-01-01 00:00:01] a", Peeled(b"[2026-01-01 00:00:01] a")),
        WrappedSample("2026-01-01T00:00:01+02:00 a", Peeled(b"a")),
    ),
)
