"""What a command that reads gigabytes asks of its own process."""

from __future__ import annotations

import ctypes
import os
from typing import Final

KEPT_BYTES: Final = 64 << 20
_TRIM_THRESHOLD: Final = -1
_MMAP_THRESHOLD: Final = -3
"""Options of ``mallopt`` (``malloc.h``)."""


def prepare_for_bulk() -> None:
    """Keep memory that is freed, and do without threads for matrices.

    Blocks come and go by the thousand. Handed back to the system each time, they cost an eighth of
    the whole work; it is the system's C library that decides, and others have no such option.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        option = ctypes.CDLL(None).mallopt
    except (AttributeError, OSError, TypeError):
        return
    for name in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
        option(name, KEPT_BYTES)
