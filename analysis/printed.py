"""What the accept rate that an engine prints means in this run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.drafting import Drafting
from analysis.theory.rates import RateDefinition, infer_rate_definition


@dataclass(frozen=True, slots=True)
class PrintedRate:
    """The definition that fits all printed pairs, and the pairs it was judged by.

    ``definition`` is ``None`` where none fits or depth and width are not known; ``ties`` are
    definitions that fit equally (for a chain some agree always). ``row`` is the frame's row of
    an example window.
    """

    definition: RateDefinition | None
    ties: tuple[RateDefinition, ...]
    rate: float
    length: float
    row: int


def printed_rate(frame: pd.DataFrame, drafting: Drafting) -> PrintedRate | None:
    """Judge the printed pairs of a run; ``None`` where no rate is printed."""
    pairs = frame[frame["printed_rate"].notna() & frame["printed_length"].notna()]
    if pairs.empty:
        return None
    counted = pairs[pairs["counted"]]
    row = (counted if not counted.empty else pairs).index[-1]
    rate, length = float(pairs["printed_rate"][row]), float(pairs["printed_length"][row])
    if drafting.depth is None or drafting.width is None or drafting.width < 2 or drafting.depth < 1:
        return PrintedRate(None, (), rate, length, row)
    lengths = pairs["printed_length"].to_numpy(dtype=float)
    rates = pairs["printed_rate"].to_numpy(dtype=float)
    finite = np.isfinite(lengths) & np.isfinite(rates)
    found = infer_rate_definition(lengths[finite], rates[finite], drafting.depth, drafting.width)
    return PrintedRate(found.definition, found.ties, rate, length, row)
