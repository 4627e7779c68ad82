"""Counts by position, and all figures of a window, in one column each.

Of counts the first byte is the struct code of what follows, little-endian: ``B``, ``H``, ``I`` or ``Q`` for whole
counts, whichever holds the largest, ``d`` for anything else.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from operator import attrgetter
from typing import Any, Final

from collector.domain.windows import Origin, PrefillWindow, Window

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


def pack_rows(counts: Any) -> list[bytes | None]:
    """As :func:`pack_counts` for each row of an array of shape (n, depth); NaN is none, and one that is NaN throughout ``None``."""
    import numpy as np

    there = ~np.isnan(counts)
    depths = there.sum(axis=1)
    known = np.where(there, counts, 0)
    whole = ((known == np.floor(known)) & (known >= 0)).all(axis=1)
    kinds = np.where(
        whole, np.searchsorted([limit for _, limit in _CODES], known.max(axis=1, initial=0), "right"), len(_CODES)
    )
    packed = np.full(len(counts), None)
    for depth, kind in set(zip(depths.tolist(), kinds.tolist(), strict=True)):
        code = _CODES[kind][0] if kind < len(_CODES) else "d"
        rows = (depths == depth) & (kinds == kind)
        if depth:
            found = np.empty(np.count_nonzero(rows), [("code", "S1"), ("counts", f"<{code}", (depth,))])
            found["code"], found["counts"] = code.encode(), known[rows, :depth]
            packed[rows] = found.view(f"V{found.itemsize}").tolist()
    return packed.tolist()


# ---- the figures of a window in one column
#
# Most figures of a scraped window are unknown, whole numbers, or short decimals. In columns of their own they would take
# a third more. A head of three bytes says which are there; then they follow in their order, each exactly as it was.

_NUMBERS: Final = (
    "seconds",
    "running_requests",
    "waiting_requests",
    "verify_steps",
    "accepted_tokens",
    "drafted_tokens",
    "generated_tokens",
    "generation_throughput",
    "printed_length",
    "printed_rate",
    "tokens_in_use",
    "kv_cache_usage",
)
_NUMBERS_OF: Final = attrgetter(*_NUMBERS)
_SPEED: Final = _NUMBERS.index("generation_throughput")
_PROMPTS: Final = len(_NUMBERS)
_ACCEPTED: Final = _PROMPTS + 1
_COUNTED: Final = _PROMPTS + 2
_NO_WINDOW: Final = _PROMPTS + 3
_GRAPH: Final = _PROMPTS + 4
_ORIGIN: Final = _PROMPTS + 6
_HEAD_BYTES: Final = 3

_WHOLE: Final = 0
_DECIMAL: Final = 1
_DOUBLE: Final = 2
_BINARY: Final = 3
"""How a number is written: whole, in ten-thousandths, as a double, in 2**-22 (differences of two clock readings)."""
_TEN_THOUSANDTHS: Final = 1e4
_BINARY_PLACES: Final = 2.0**22
_SCALES: Final = {_WHOLE: 1.0, _DECIMAL: _TEN_THOUSANDTHS, _BINARY: _BINARY_PLACES}
_LARGEST: Final = 2.0**50

ORIGIN_CODES: Final = {
    origin: code for code, origin in enumerate((Origin.REQUESTS, Origin.COUNTERS, Origin.LOG, Origin.GAUGES))
}
"""How the origin of a window is stored."""
ORIGINS: Final = tuple(ORIGIN_CODES)


def pack_figures(window: Window | None, prefill: PrefillWindow | None) -> bytes:
    """The figures of a window and of the prefill batch that was seen with it; where and when are not among them.

    A throughput that follows from tokens and time is not written.
    """
    head = 0
    body = bytearray()
    if window is None:
        head |= 1 << _NO_WINDOW
    else:
        numbers = _NUMBERS_OF(window)
        follows = _throughput(window.generated_tokens, window.seconds)
        for bit, value in enumerate(numbers):
            if value is not None and not (bit == _SPEED and value == follows):
                head |= 1 << bit
                _write(body, value)
        if window.prefills:
            head |= 1 << _PROMPTS
            _write(body, window.prefills)
        head |= (0 if window.graph is None else 2 | window.graph) << _GRAPH
        head |= ORIGIN_CODES[window.origin] << _ORIGIN
    if prefill is not None:
        head |= 1 << _COUNTED
        _write(body, prefill.new_tokens)
        _write(body, prefill.cached_tokens)
    if window is not None and window.accepted_at is not None:
        head |= 1 << _ACCEPTED
        for count in window.accepted_at:
            _write(body, count)
    return head.to_bytes(_HEAD_BYTES, "little") + body


def unpack_figures(packed: bytes, position: int, at: float, unit: str) -> tuple[Window | None, PrefillWindow | None]:
    """The inverse of :func:`pack_figures`."""
    head = int.from_bytes(packed[:_HEAD_BYTES], "little")
    numbers = list(_read(packed))
    numbers.reverse()
    figures: dict[str, Any] = {name: numbers.pop() if head >> bit & 1 else None for bit, name in enumerate(_NUMBERS)}
    prompts = int(numbers.pop()) if head >> _PROMPTS & 1 else 0
    prefill = None
    if head >> _COUNTED & 1:
        prefill = PrefillWindow(position, 0, at, unit, numbers.pop(), numbers.pop())
    if head >> _NO_WINDOW & 1:
        return None, prefill
    if figures["generation_throughput"] is None:
        figures["generation_throughput"] = _throughput(figures["generated_tokens"], figures["seconds"])
    graph = head >> _GRAPH & 3
    window = Window(
        position,
        0,
        at,
        unit,
        **figures,
        graph=bool(graph & 1) if graph else None,
        prefills=prompts,
        accepted_at=tuple(reversed(numbers)) if head >> _ACCEPTED & 1 else None,
        origin=ORIGINS[head >> _ORIGIN & 3],
    )
    return window, prefill


def _throughput(tokens: float | None, seconds: float | None) -> float | None:
    return tokens / seconds if tokens is not None and seconds else None


def _write(body: bytearray, value: float) -> None:
    """Append a number: seven bits a byte, the lowest first; the lowest two of all say how it is meant."""
    if 0 <= value < _LARGEST and (whole := int(value)) == value:  # most are
        number = whole << 2 | _WHOLE
    elif 0 <= (scaled := value * _TEN_THOUSANDTHS) < _LARGEST and (whole := round(scaled)) / _TEN_THOUSANDTHS == value:
        number = whole << 2 | _DECIMAL
    elif 0 <= (scaled := value * _BINARY_PLACES) < _LARGEST and (whole := int(scaled)) == scaled:
        number = whole << 2 | _BINARY
    else:
        body.append(_DOUBLE)
        body += struct.pack("<d", value)
        return
    while number > 0x7F:
        body.append(number & 0x7F | 0x80)
        number >>= 7
    body.append(number)


def _read(packed: bytes) -> Iterator[float]:
    place, end = _HEAD_BYTES, len(packed)
    while place < end:
        number = shift = 0
        while True:
            byte = packed[place]
            place += 1
            number |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                break
        kind = number & 3
        if kind == _DOUBLE:
            yield struct.unpack_from("<d", packed, place)[0]
            place += 8
        else:
            yield (number >> 2) / _SCALES[kind]


def pack_doubles(values: Sequence[float]) -> bytes:
    """Numbers, 8 bytes each."""
    return struct.pack(f"<{len(values)}d", *values)


def unpack_doubles(packed: bytes) -> tuple[float, ...]:
    """The numbers that :func:`pack_doubles` packed."""
    return struct.unpack(f"<{len(packed) // 8}d", packed)
