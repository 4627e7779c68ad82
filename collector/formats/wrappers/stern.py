"""``stern``: pod and container, each followed by a blank."""

from __future__ import annotations

import re
from typing import Final

from collector.formats.wrappers.base import Peeled, WrappedSample, Wrapper

_PREFIX: Final = re.compile(rb"([a-z0-9][a-z0-9.-]{0,252}) ([a-z0-9][a-z0-9-]{0,62})(?: |$)")


def peel(line: bytes) -> Peeled | None:
    """A line that begins with two names."""
    match = _PREFIX.match(line)
    return None if match is None else Peeled(line[match.end() :], match[1] + b"/" + match[2])


WRAPPER: Final = Wrapper(
    "stern",
    "pod prefixes (stern)",
    peel,
    (
        WrappedSample(
            "llm-7d9f-x2x server [2026-01-01 00:00:01] a", Peeled(b"[2026-01-01 00:00:01] a", b"llm-7d9f-x2x/server")
        ),
    ),
    loose=True,
)
