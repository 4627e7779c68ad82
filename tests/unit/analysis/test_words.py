from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis import words


@pytest.mark.parametrize(
    ("value", "text"),
    [(54.78, "54.8"), (2.955, "2.96"), (0.44899, "0.449"), (4310.0, "4,310"), (90.0, "90.0"), (128.6, "129"), (0, "0"),
     (999.7, "1,000"), (0.0999, "0.0999"), (-0.1234, "-0.123")],
)  # fmt: skip
def test_three_significant_digits(value: float, text: str) -> None:
    assert words.significant(value) == text


@given(st.floats(min_value=1e-6, max_value=1e9))
def test_the_text_is_the_value_to_three_digits(value: float) -> None:
    assert math.isclose(float(words.significant(value).replace(",", "")), value, rel_tol=0.0051)


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0328, "32.8 ms"), (1.5, "1.50 s"), (119.0, "119 s"), (300.0, "5.00 min")]
)
def test_durations(seconds: float, text: str) -> None:
    assert words.duration(seconds) == text


def test_counts_and_plurals() -> None:
    assert words.count(9_999) == "9,999"
    assert words.count(12_400) == "12.4 k"
    assert words.plural(1, "window") == "1 window"
    assert words.plural(18, "window") == "18 windows"


def test_listings_are_cut() -> None:
    assert words.listing([]) == ""
    assert words.listing(["a"]) == "a"
    assert words.listing(["a", "b", "c"]) == "a, b and c"
    assert words.listing(list("abcdefgh"), most=3) == "a, b, c and 5 more"


@pytest.mark.parametrize("bound", [None, math.inf, math.nan])
def test_an_interval_without_bounds_is_not_shown(bound: float | None) -> None:
    assert words.interval(bound, 2.0) == ""
