"""How long samples of watched engines are kept: what can be set."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Retention:
    """``[retention]``: how long each tier of watched engines is kept; ``minute_days`` is at least as long as ``raw_hours``."""

    raw_hours: float = 48.0
    minute_days: float = 14.0
    hour_days: float = 730.0
