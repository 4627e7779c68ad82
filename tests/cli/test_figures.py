"""Quantities as reports in the terminal tell them."""

from __future__ import annotations

import pytest

from collector.domain.quantities import Estimate
from dashboard.report.diagnosis import figure


@pytest.mark.parametrize(
    ("key", "estimate", "told"),
    [
        ("generation_throughput", Estimate(1758.3, 1671.2, 1849.0), "1,760 tok/s [1,670, 1,850]"),
        ("generation_throughput", Estimate(54.78, 49.3, 60.3), "54.8 tok/s [49.3, 60.3]"),
        ("acceptance_length", Estimate(1.8, 1.622, 1.978), "1.80 [1.62, 1.98]"),
        ("draft_acceptance_rate", Estimate(0.16, 0.12459, 0.1954), "16.0% [12.5, 19.5]"),
        ("draft_acceptance_rate", Estimate(0.79, 0.744, 0.851), "79% [74, 85]"),
        ("conditional_acceptance_rate", Estimate(0.449, 0.386, 0.5021), "0.449 [0.386, 0.502]"),
        ("step_seconds", Estimate(0.0329, 0.03281, 0.03292), "32.9 ms [32.8, 32.9]"),
        ("step_seconds", Estimate(150.0, 135.0, 165.0), "2.50 min [2.25, 2.75]"),
        ("step_cost_ratio", Estimate(2.0, assumed=True), "2.00 (assumed)"),
    ],
)
def test_an_interval_has_the_form_of_its_value(key: str, estimate: Estimate, told: str) -> None:
    assert figure(key, estimate) == told
