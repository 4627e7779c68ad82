"""Ends of an interval: not beyond what is possible, unless the figure itself is."""

from __future__ import annotations

import math

import pytest

from analysis.drafting import Drafting
from analysis.figures import Pooled, acceptance_quantities, pooled_requests
from analysis.theory.intervals import Interval
from collector.domain.requests import RequestResult
from collector.domain.windows import Origin


def pooled(accepted: float, half: float, most: float) -> Pooled:
    interval = Interval(accepted, half, half / 2, "conservative", 3, math.inf)
    return Pooled(100, 100 * accepted, interval, Origin.COUNTERS, 3, tainted=False, drafted_tokens=400, most=most)


@pytest.mark.parametrize(
    ("accepted", "half", "most", "ends", "share_ends"),
    [
        (3.2, 1.1, 4, (3.1, 5.0), (0.525, 1.0)),
        (3.2, 0.4, 4, (3.8, 4.6), (0.7, 0.9)),
        (0.3, 0.5, 4, (1.0, 1.8), (0.0, 0.2)),
        (3.2, 1.1, math.inf, (3.1, 5.3), (0.525, 1.0)),
        (4.4, 0.2, 4, (5.2, 5.6), (1.05, 1.15)),
        (3.2, math.inf, 4, (1.0, math.inf), (0.0, math.inf)),
    ],
)
def test_an_interval_ends_where_a_step_ends(
    accepted: float, half: float, most: float, ends: tuple[float, float], share_ends: tuple[float, float]
) -> None:
    one = pooled(accepted, half, most)
    assert one.length_ends == pytest.approx(ends)
    figures = acceptance_quantities(one, Drafting("eagle3"))
    assert (figures["acceptance_length"].low, figures["acceptance_length"].high) == pytest.approx(ends)
    rate = figures["draft_acceptance_rate"]
    assert (rate.low, rate.high) == pytest.approx(share_ends)


def test_only_a_depth_that_is_known_bounds_an_interval() -> None:
    results = [RequestResult("sglang", str(count), verify_steps=10, accepted_tokens=count) for count in (20, 38)]
    known, assumed = (
        pooled_requests(results, Drafting("eagle3", depth=4, width=5, assumed=which)) for which in (False, True)
    )
    assert known is not None
    assert assumed is not None
    assert known.most == 4
    assert known.ends[1] == 4 < assumed.ends[1]
