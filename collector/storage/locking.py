"""Files that one process at a time holds."""

from __future__ import annotations

from collections.abc import Callable
from typing import IO


def lock_for_this_process(file: IO[bytes]) -> None:
    """Lock a file for this process alone, until it is closed or the process ends.

    Raises:
        BlockingIOError: another one holds it.
    """
    lock: Callable[[int, int], None]
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock
    except ImportError:  # Windows
        import msvcrt

        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        return
    lock = flock
    lock(file.fileno(), LOCK_EX | LOCK_NB)
