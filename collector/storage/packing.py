"""Counts by position in one column.

One tag byte, then the counts: tag 1, whole numbers as base-128 varints (a byte each below 128);
tag 2, anything else as little-endian doubles.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

_WHOLE = 1
_DOUBLES = 2
_LARGEST_WHOLE = 2.0**53


def pack_counts(counts: Sequence[float] | None) -> bytes | None:
    """Pack counts; ``None`` (the source does not say) stays ``None``, an empty sequence does not."""
    if counts is None:
        return None
    if not all(0 <= count <= _LARGEST_WHOLE and count == int(count) for count in counts):
        return bytes([_DOUBLES]) + struct.pack(f"<{len(counts)}d", *counts)
    packed = bytearray([_WHOLE])
    for count in counts:
        rest = int(count)
        while rest > 0x7F:
            packed.append(rest & 0x7F | 0x80)
            rest >>= 7
        packed.append(rest)
    return bytes(packed)


def unpack_counts(packed: bytes | None) -> tuple[float, ...] | None:
    """The inverse of :func:`pack_counts`."""
    if packed is None:
        return None
    if packed[0] == _DOUBLES:
        return struct.unpack(f"<{(len(packed) - 1) // 8}d", packed[1:])
    counts: list[float] = []
    value = shift = 0
    for byte in packed[1:]:
        value |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            counts.append(float(value))
            value = shift = 0
    return tuple(counts)
