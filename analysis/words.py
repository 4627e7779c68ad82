"""Figures in the form people read them; the same form in the terminal, on pages and in alerts."""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final

from collector.domain.runs import Reading

MINUTES_FROM: Final = 120.0
"""Seconds from which a time is told in minutes."""


def significant(value: float, digits: int = 3) -> str:
    """Three significant digits, trailing zeros kept, thousands with a comma: 54.8, 2.96, 4,310."""
    if not math.isfinite(value):
        return str(value)
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits}g}")
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(rounded))))
    return f"{rounded:,.{decimals}f}"


def signed(value: float) -> str:
    """A change: +54.8, -4,310."""
    return f"{'-' if value < 0 else '+'}{significant(abs(value))}"


def length(value: float) -> str:
    """An acceptance length: 1.80."""
    return f"{value:.2f}"


def rate(value: float) -> str:
    """A conditional acceptance: 0.449, never in percent."""
    return f"{value:.3f}"


def percent(value: float) -> str:
    """A share of counts: 16.0%, 35%."""
    share = 100 * value
    return f"{share:.1f}%" if abs(share) < 20 else f"{share:.0f}%"


def factor(value: float) -> str:
    """A speed-up: x0.609, x1.43."""
    return f"x{significant(value)}"


def speed(value: float) -> str:
    """A throughput: 54.8 tok/s."""
    return f"{significant(value)} tok/s"


def duration(seconds: float) -> str:
    """A time: 32.8 ms under a second, then s, then min."""
    if seconds < 1:
        return f"{significant(1000 * seconds)} ms"
    return f"{significant(seconds)} s" if seconds < MINUTES_FROM else f"{significant(seconds / 60)} min"


def instant(at: float) -> str:
    """An instant in seconds since 1970: 2026-04-01 09:30 UTC."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M UTC")


def count(value: float) -> str:
    """A count: exact to 9,999, then 12.4 k."""
    return f"{value:,.0f}" if value < 10_000 else f"{significant(value / 1000)} k"


def interval(low: float | None, high: float | None, form: Callable[[float], str] = length) -> str:
    """An interval in square brackets, "" where there is none."""
    if low is None or high is None or not math.isfinite(low) or not math.isfinite(high):
        return ""
    return f"[{form(low)}, {form(high)}]"


def plural(number: float, noun: str) -> str:
    """``1 window``, ``18 windows``."""
    return f"{count(number)} {noun}" if number == 1 else f"{count(number)} {noun}s"


def respect(by: str) -> str:
    """What requests are told apart by, in the plural: ``temperatures``, ``prompt lengths``."""
    return {"prompt_tokens": "prompt lengths", "output_tokens": "output lengths"}.get(by, f"{by}s")


def listing(items: list[str], most: int = 6) -> str:
    """``a, b and c``; what exceeds ``most`` is counted."""
    shown = items[:most] + ([f"{len(items) - most} more"] if len(items) > most else [])
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}" if shown else ""


def flag(name: str) -> str:
    """An argument's name as a command-line option (``--speculative-num-steps``); variables (``VLLM_USE_V1``) stay."""
    if name.isupper():
        return name
    return "--" + name.replace("_", "-")


def value(given: object) -> str:
    """A flag's value as people write it; long lists are cut."""
    text = "nothing" if given is None else ("on" if given is True else "off" if given is False else str(given))
    return text if len(text) <= 60 else text[:57] + "..."


def lines_read(reading: Reading) -> str:
    """How much of a source was read, understood and dropped: ``read 812 lines, understood 640``."""
    text = f"read {plural(reading.lines, 'line')}, understood {count(reading.understood)}"
    if reading.oversize_lines:
        text += f", dropped {plural(reading.oversize_lines, 'line')} over the size cap"
    return text
