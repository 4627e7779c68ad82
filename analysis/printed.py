"""What the accept rate that an engine prints means in this run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from analysis.drafting import Drafting
from analysis.theory.rates import RateDefinition, infer_rate_definition
from collector.domain.versions import Release, ReleaseRange


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


_SGLANG = (
    ("0.5.3.post2-0.5.4", RateDefinition.LENGTH_MAX_LENGTH),
    ("0.5.5-0.5.10", RateDefinition.LENGTH_WIDTH),
    ("0.5.11-", RateDefinition.ACCEPTED_DRAFTED),
)
"""Source: SGLang's scheduler metrics, read in each release."""


def usual_definition(engine: str, release: Release | None) -> RateDefinition | None:
    """The formula that a release is known to print; ``None`` where that is not known."""
    if engine != "sglang" or release is None:
        return None
    return next((definition for span, definition in _SGLANG if release in ReleaseRange.parse(span)), None)


def printed_rate(frame: pd.DataFrame, drafting: Drafting) -> PrintedRate | None:
    """Judge the printed pairs of a run; ``None`` where no rate is printed."""
    pairs = frame[frame["printed_rate"].notna() & frame["printed_length"].notna()]
    if pairs.empty:
        return None
    counted = pairs[pairs["counted"]]
    shown = counted if not counted.empty else pairs
    # the most typical window serves as the example
    lengths = shown["printed_length"].to_numpy(dtype=float)
    row = shown.index[int(np.abs(lengths - lengths.mean()).argmin())]
    rate, length = float(pairs["printed_rate"][row]), float(pairs["printed_length"][row])
    if drafting.depth is None or drafting.width is None or drafting.width < 2 or drafting.depth < 1:
        return PrintedRate(None, (), rate, length, row)
    lengths = pairs["printed_length"].to_numpy(dtype=float)
    rates = pairs["printed_rate"].to_numpy(dtype=float)
    finite = np.isfinite(lengths) & np.isfinite(rates)
    found = infer_rate_definition(lengths[finite], rates[finite], drafting.depth, drafting.width)
    return PrintedRate(found.definition, found.ties, rate, length, row)
