"""Lines that begin with the instant at which they were written, as Docker and Kubernetes give them."""

from __future__ import annotations

import re
from datetime import datetime
from typing import Final

from collector.sources.entries import Entry

_STAMP: Final = re.compile(rb"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z|[+-]\d\d:\d\d)")
_SECOND: Final = 1_000_000_000


def entries_of(text: bytes) -> list[Entry]:
    """The lines of a text; what stands behind its last line end is left for the next time."""
    found: list[Entry] = []
    for line in text.split(b"\n")[:-1]:
        stamp, _, rest = line.partition(b" ")
        at = _instant(stamp)
        if at is not None:
            found.append(Entry(at, rest.removesuffix(b"\r")))
        elif found:  # a line end within what was written at once
            found.append(Entry(found[-1].at, line))
    return found


def _instant(stamp: bytes) -> int | None:
    """Nanoseconds since 1970 of ``2026-11-30T05:00:00.123456789Z``."""
    match = _STAMP.fullmatch(stamp)
    if match is None:
        return None
    whole, fraction, zone = (part.decode() for part in match.groups(b""))
    at = datetime.fromisoformat(whole + zone.replace("Z", "+00:00"))
    return round(at.timestamp()) * _SECOND + int(fraction.ljust(9, "0"))
