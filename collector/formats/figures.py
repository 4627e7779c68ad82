"""Patterns of the numbers that engines print. A damaged one (``2..5``, a thousand digits) has none of these forms."""

from __future__ import annotations

from typing import Final

WHOLE: Final = rb"\d{1,15}"
DECIMAL: Final = rb"\d{1,15}(?:\.\d{1,24})?"
FIGURE: Final = rb"-?" + DECIMAL + rb"|-?nan|-?inf"
"""What C prints of a floating-point number."""
DECIMALS: Final = rb"(?:" + DECIMAL + rb"(?:, *" + DECIMAL + rb")*)?"
"""Decimals with commas in between, or none."""
LONGEST_FIGURE: Final = 32
"""Characters of the longest number that is taken for one."""
