"""Figures are written one way."""

import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dashboard.pages import figures

FINITE = st.floats(1e-6, 1e8)


@pytest.mark.parametrize(
    ("key", "estimate", "text"),
    [
        ("acceptance_length", {"value": 1.8, "low": 1.623, "high": 1.977}, "1.80 [1.62, 1.98] tokens"),
        ("conditional_acceptance_rate", {"value": 0.449, "low": 0.3859, "high": 0.5023}, "0.449 [0.386, 0.502]"),
        ("draft_acceptance_rate", {"value": 0.16, "low": 0.12459, "high": 0.1954}, "16.0% [12.5, 19.5]"),
        ("speedup", {"value": 0.60907}, "×0.609"),
        ("speedup", {"value": 1.429, "low": 1.31, "high": 1.55}, "×1.43 [1.31, 1.55]"),
        ("step_cost_ratio", {"value": 2.9553}, "2.96 plain steps"),
        ("generation_throughput", {"value": 54.7857}, "54.8 tok/s"),
        ("generation_throughput", {"value": 4312.2, "low": 4268.0, "high": 4356.0}, "4,310 [4,270, 4,360] tok/s"),
        ("step_seconds", {"value": 0.03286, "low": 0.0327, "high": 0.033}, "32.9 [32.7, 33.0] ms"),
        ("request_latency_seconds", {"value": 4.2}, "4.20 s"),
        ("verify_steps", {"value": 9999.0}, "9,999 steps"),
        ("verify_steps", {"value": 12_400.0}, "12.4 k steps"),
        ("running_requests", {"value": 1.0}, "1 request"),
        ("running_requests", {"value": 7.62}, "7.6 requests"),
        ("draft_depth", {"value": 5}, "5 tokens"),
        ("validation_accuracy", {"value": 0.747, "assumed": True}, "0.747 assumed"),
        ("validation_accuracy_at", {"value": [0.7, 0.65]}, "0.700, 0.650"),
        ("printed_rate_definition", {"value": "length/width"}, "length/width"),
        ("draft_acceptance_rate", {"value": None, "raw": "nan"}, "nan impossible"),
    ],
)
def test_each_kind_of_figure(key, estimate, text):
    assert str(figures.figure(key, estimate)) == text


def test_unknown_is_no_figure():
    assert figures.figure("speedup", None) is None
    assert figures.figure("speedup", {"value": None}) is None


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (9.996, "10.0"),
        (0.9996, "1.00"),
        (99.95, "100"),
        (0, "0.00"),
        (1234.5, "1,230"),
        (-0.1234, "-0.123"),
        (1e-4, "0.000100"),
    ],
)
def test_three_significant_digits_after_rounding(number, text):
    assert figures.significant(number) == text


@given(FINITE)
def test_what_is_written_is_the_number_to_three_digits(number):
    written = figures.significant(number)
    assert math.isclose(float(written.replace(",", "")), number, rel_tol=0.00501)
    leading = re.sub(r"[.,]", "", written).lstrip("0")
    digits = leading if "." in written else leading.rstrip("0")
    assert len(digits) <= 3


@given(FINITE, FINITE, FINITE)
def test_interval_has_the_decimals_of_its_value(value, low, high):
    shown = figures.figure("generation_throughput", {"value": value, "low": low, "high": high})
    decimals = {len(text.partition(".")[2]) for text in (shown.value, shown.low, shown.high)}
    assert len(decimals) == 1


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0.0328, "32.8 ms"), (1.0, "1.00 s"), (119.9, "120 s"), (360, "6.00 min"), (9000, "2.50 h")],
)
def test_durations(seconds, text):
    assert figures.seconds(seconds) == text


def test_times_are_those_of_the_server():
    assert figures.clock(1775743389.0) == "14:03:09"
    assert figures.instant(1775743330.0) == "9 April 2026, 14:02"
    assert figures.plural(1, "window") == "1 window"
    assert figures.plural(18, "window") == "18 windows"
