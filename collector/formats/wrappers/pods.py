"""``kubectl logs --prefix``: pod and container in brackets."""

from __future__ import annotations

import re
from typing import Final

from collector.formats.wrappers.base import Peeled, WrappedSample, Wrapper

_PREFIX: Final = re.compile(rb"\[pod/([a-z0-9][a-z0-9.-]{0,252}/[a-z0-9][a-z0-9-]{0,62})\](?: |$)")


def peel(line: bytes) -> Peeled | None:
    """A line that begins with ``[pod/NAME/CONTAINER]``."""
    match = _PREFIX.match(line)
    return None if match is None else Peeled(line[match.end() :], match[1])


WRAPPER: Final = Wrapper(
    "pods",
    "pod prefixes",
    peel,
    (
        WrappedSample(
            "[pod/llm-0/server] [2026-01-01 00:00:01] a", Peeled(b"[2026-01-01 00:00:01] a", b"llm-0/server")
        ),
        WrappedSample("[pod/llm-7d9f-x2x/server]", Peeled(b"", b"llm-7d9f-x2x/server")),
    ),
)
