"""``mpirun --tag-output``: job and rank, and the channel."""

from __future__ import annotations

import re
from typing import Final

from collector.formats.wrappers.base import Peeled, WrappedSample, Wrapper

# Open MPI up to 4 writes the text right behind the colon, later ones behind a blank.
_PREFIX: Final = re.compile(
    rb"\[(?:(\d+,\d+)\]<std(?:out|err|diag)>:|([\w.@-]{1,100},\d+)\]<std(?:out|err|diag)>:(?: |$))"
)


def peel(line: bytes) -> Peeled | None:
    """A line tagged with a rank."""
    match = _PREFIX.match(line)
    return None if match is None else Peeled(line[match.end() :], b"", match[1] or match[2])


WRAPPER: Final = Wrapper(
    "mpi",
    "MPI rank prefixes",
    peel,
    (
        WrappedSample("[1,0]<stdout>:[2026-01-01 00:00:01] a", Peeled(b"[2026-01-01 00:00:01] a", b"", b"1,0")),
        WrappedSample("[1,12]<stderr>:  File x", Peeled(b"  File x", b"", b"1,12")),
        WrappedSample("[prterun-gpu-7-812@1,3]<stdout>: a", Peeled(b"a", b"", b"prterun-gpu-7-812@1,3")),
    ),
)
