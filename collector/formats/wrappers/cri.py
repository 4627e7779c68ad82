"""Lines of the Kubernetes container runtime interface: time, channel, partial or full, text.

Source: Kubernetes, ``design-proposals-archive/node/kubelet-cri-logging.md``. A long line comes as
several marked ``P``, the last one ``F``.
"""

from __future__ import annotations

import re
from typing import Final

from collector.formats.wrappers.base import Peeled, WrappedSample, Wrapper

_PREFIX: Final = re.compile(
    rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?(?:Z|[+-]\d\d:\d\d) (stdout|stderr) ([FP])(?::[\w:]*)?(?: |$)"
)


def peel(line: bytes) -> Peeled | None:
    """A line of a file below ``/var/log/pods``."""
    match = _PREFIX.match(line)
    if match is None:
        return None
    return Peeled(line[match.end() :], b"", match[1], match[2] == b"F")


WRAPPER: Final = Wrapper(
    "cri",
    "container runtime lines",
    peel,
    (
        WrappedSample(
            "2026-01-01T00:00:01.123456789Z stderr F [2026-01-01 00:00:01] Load weight begin.",
            Peeled(b"[2026-01-01 00:00:01] Load weight begin.", b"", b"stderr"),
        ),
        WrappedSample(
            "2026-01-01T00:00:01.123456789+02:00 stdout P the first part ",
            Peeled(b"the first part ", b"", b"stdout", whole=False),
        ),
        WrappedSample("2026-01-01T00:00:01Z stdout F ", Peeled(b"", b"", b"stdout")),
    ),
)
