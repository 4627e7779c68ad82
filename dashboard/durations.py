"""Lengths of time as people write them."""

from __future__ import annotations

import re
from typing import Final

from collector.domain.errors import InputError

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h|d)")


def duration(text: str, option: str) -> float:
    """Seconds of a duration: ``15s``, ``1m``, ``1m30s``, ``500ms``, or a number of seconds.

    Raises:
        InputError: it is none, or not above 0.
    """
    stripped = text.strip().lower()
    seconds: float | None = None
    if re.fullmatch(r"[0-9]+(?:\.[0-9]+)?", stripped):
        seconds = float(stripped)
    elif stripped and "".join(match[0] for match in _PART.finditer(stripped)) == stripped:
        seconds = sum(float(match[1]) * _UNITS[match[2]] for match in _PART.finditer(stripped))
    if not seconds:
        raise InputError(f"{option} {text!r} is not a duration", hint="for instance 15s, 1m or 1m30s")
    return seconds
