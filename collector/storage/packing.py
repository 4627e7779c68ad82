"""Counts by position in one column.

The first byte is the struct code of what follows, little-endian: ``B``, ``H``, ``I`` or ``Q`` for whole
counts, whichever holds the largest, ``d`` for anything else.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Final

_CODES: Final = (("B", 1 << 8), ("H", 1 << 16), ("I", 1 << 32), ("Q", 1 << 53))
"""Codes for whole counts below a limit; above 2**53 a float is no longer exact."""


def pack_counts(counts: Sequence[float] | None) -> bytes | None:
    """Pack counts; ``None`` (the source does not say) stays ``None``, an empty sequence does not."""
    if counts is None:
        return None
    whole = _whole(counts)
    if whole is not None:
        largest = max(whole, default=0)
        for code, limit in _CODES:
            if largest < limit:
                return struct.pack(f"<c{len(whole)}{code}", code.encode(), *whole)
    return struct.pack(f"<c{len(counts)}d", b"d", *counts)


def _whole(counts: Sequence[float]) -> list[int] | None:
    """The counts as integers, ``None`` where one of them is none or is negative."""
    try:
        whole = list(map(int, counts))
    except (ValueError, OverflowError):  # NaN, infinity
        return None
    return whole if whole == list(counts) and min(whole, default=0) >= 0 else None


def unpack_counts(packed: bytes | None) -> tuple[float, ...] | None:
    """The inverse of :func:`pack_counts`."""
    if packed is None:
        return None
    code = packed[:1].decode()
    number = (len(packed) - 1) // struct.calcsize(f"<{code}")
    return tuple(map(float, struct.unpack_from(f"<{number}{code}", packed, 1)))
