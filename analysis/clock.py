"""The acceptance length that throughput and clock imply: a check on the printed one.

Between two lines of one unit the engine makes throughput x time tokens in interval x running
steps, whatever length it prints. A printed length that leaves out the target's own token, or
counts it twice, is off by 1.0 against it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from collector.domain.windows import Origin

WINDOWS_NEEDED = 12
"""Neighbouring windows at one load that the check takes; instants are whole seconds, so few would not do. Count."""


@dataclass(frozen=True, slots=True)
class ClockCheck:
    """Length by the clock, beside the printed one over the same windows."""

    by_clock: float
    printed: float
    windows: int

    @property
    def apart(self) -> float:
        """By the clock less printed, tokens per step."""
        return self.by_clock - self.printed


def clock_check(frame: pd.DataFrame) -> ClockCheck | None:
    """Compare over windows whose neighbour before ran as many requests; ``None`` with fewer than needed."""
    tokens = steps = printed = 0.0
    windows = 0
    printed_lines = frame[frame["printed_length"].notna() & (frame["origin"] == Origin.LOG)]
    for _, rows in printed_lines.groupby("unit", sort=False):
        running = rows["running_requests"].to_numpy(dtype=float)
        elapsed = np.diff(rows["at"].to_numpy(dtype=float))
        alike = (running[1:] == running[:-1]) & rows["counted"].to_numpy(dtype=bool)[1:] & (running[1:] > 0)
        after = rows.iloc[1:]
        tokens += float((after["generation_throughput"].to_numpy(dtype=float) * elapsed)[alike].sum())
        step = after["verify_steps"].to_numpy(dtype=float)
        steps += float(step[alike].sum())
        printed += float((after["printed_length"].to_numpy(dtype=float) * step)[alike].sum())
        windows += int(alike.sum())
    if windows < WINDOWS_NEEDED or not steps > 0 or not np.isfinite(tokens):
        return None
    return ClockCheck(tokens / steps, printed / steps, windows)
