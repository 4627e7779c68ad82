"""Intervals, the divergence test and replicas."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.theory import intervals
from analysis.theory.divergence import (
    divergence_test,
    healthy_factor,
    margin,
    realistic_length,
    temperature_factor,
)
from analysis.theory.intervals import Interval
from analysis.theory.replicas import ReplicaFigures, benjamini_hochberg, compare_replicas
from analysis.theory.settings import Settings
from collector.domain.errors import ImpossibleFigure, InputError
from tests.unit.theory.repeated import checks

figures = st.lists(st.floats(0, 5), min_size=12, max_size=60)
weights = st.floats(1, 500)


@checks
@given(figures, st.randoms(use_true_random=False))
def test_estimates_are_pooled_by_steps(values, random):
    steps = [random.randint(1, 400) for _ in values]
    interval = intervals.ewc_interval(values, steps)
    assert interval.accepted_per_step == pytest.approx(np.average(values, weights=steps))
    assert interval.length == 1 + interval.accepted_per_step
    assert interval.half >= 0.005
    assert interval.low <= interval.accepted_per_step <= interval.high
    assert interval.length_low >= 1


@checks
@given(figures, weights)
def test_the_scale_of_steps_does_not_matter(values, weight):
    one = intervals.ewc_interval(values, np.ones(len(values)))
    other = intervals.ewc_interval(values, np.full(len(values), weight))
    assert other.half == pytest.approx(one.half)


@checks
@given(figures)
def test_windows_without_steps_are_left_out(values):
    steps = [40.0] * len(values)
    whole = intervals.ewc_interval([*values, 99.0], [*steps, 0.0])
    assert whole == intervals.ewc_interval(values, steps)


def test_equal_windows_are_known_to_printed_rounding_only():
    assert intervals.ewc_interval([0.8] * 20, [40] * 20).half == 0.005


def test_few_windows_get_the_conservative_interval_and_twelve_the_cosines():
    eleven = intervals.window_interval([0.8] * 11, [40] * 11, 5, 1)
    twelve = intervals.window_interval([0.8] * 12, [40] * 12, 5, 1)
    assert (eleven.method, twelve.method) == (intervals.CONSERVATIVE, intervals.EWC)
    share = 0.8 / 5
    assert eleven.half == pytest.approx(2 * math.sqrt(0.25 + 25 * 5 * share * (1 - share) / 440))
    assert (eleven.count, twelve.count) == (11, 12)
    assert "fewer than 12 windows" in eleven.approximate
    assert math.isinf(eleven.degrees_of_freedom)
    assert eleven.quantile == pytest.approx(1.959964, abs=1e-6)


def test_more_requests_narrow_the_conservative_interval():
    one, eight = (intervals.conservative_interval(32, 200, 40, 5, running).half for running in (1, 8))
    assert eight < one
    assert intervals.conservative_interval(32, 200, 40, 5, None).half == one


def test_the_conservative_interval_needs_neither_depth_nor_drafted():
    unknown = intervals.conservative_interval(320, None, 400, None, 8)
    assert unknown.half >= intervals.conservative_interval(320, None, 400, 5, 8).half
    assert intervals.conservative_interval(0, 0, 400, 0, 8).accepted_per_step == 0


def test_more_accepted_than_drafted_is_reported():
    with pytest.raises(ImpossibleFigure, match="300 drafts accepted of 200"):
        intervals.conservative_interval(300, None, 40, 5, 1)


@pytest.mark.parametrize("values", [[-0.1] * 12, [math.nan] * 12, [math.inf] * 12])
def test_what_is_no_count_is_reported(values):
    with pytest.raises(ImpossibleFigure, match="must be numbers"):
        intervals.window_interval(values, [40] * 12, 5, 1)


def test_nothing_to_estimate_from_is_an_error_with_a_hint():
    with pytest.raises(InputError, match="no verify steps"):
        intervals.window_interval([], [], 5, 1)
    with pytest.raises(InputError, match="one window"):
        intervals.ewc_interval([0.8], [40])
    with pytest.raises(InputError, match="2 counts"):
        intervals.request_interval([1, 2], [1])
    with pytest.raises(InputError, match="no windows"):
        intervals.mean_interval([])


def test_windows_that_resemble_later_ones_are_called_approximate():
    drifting = 0.8 + 0.3 * np.sin(np.arange(40) / 6)
    alternating = 0.8 + 0.3 * (np.arange(40) % 2)
    steps = np.full(40, 40)
    assert "resemble later ones" in intervals.ewc_interval(drifting, steps).approximate
    assert intervals.ewc_interval(alternating, steps).approximate == ""
    assert intervals.ewc_interval([0.8] * 40, steps).approximate == ""
    # Known lifetimes speak for themselves; few windows cannot tell.
    assert intervals.ewc_interval(drifting, steps, request_lifetime_windows=1).approximate == ""
    assert intervals.ewc_interval(alternating, steps, request_lifetime_windows=8).approximate
    assert "too few to tell" in intervals.ewc_interval(alternating[:20], steps[:20]).approximate


def test_requests_that_outlast_windows_widen_the_interval():
    values, steps = 0.8 + 0.05 * (np.arange(24) % 2), np.full(24, 320)
    short = intervals.window_interval(values, steps, 5, 8, request_lifetime_windows=1)
    long = intervals.window_interval(values, steps, 5, 8, request_lifetime_windows=9)
    longest = intervals.window_interval(values, steps, 5, 8, request_lifetime_windows=90)
    assert short.half < long.half < longest.half
    # No more is assumed than that eight requests were seen.
    assert longest.half <= 1.96 * 0.3 * long.accepted_per_step / math.sqrt(8)


def test_a_lifetime_follows_from_how_many_requests_began():
    assert intervals.lifetime_in_windows(60, 8, 50) == pytest.approx(9.6)
    assert intervals.lifetime_in_windows(60, 8, 0) == 0


def test_requests_are_pooled_and_few_are_called_approximate():
    accepted, steps = [52.0, 60.0, 31.0, 88.0], [40.0, 41.0, 35.0, 50.0]
    interval = intervals.request_interval(accepted, steps)
    assert interval.accepted_per_step == pytest.approx(sum(accepted) / sum(steps))
    assert "only 4 requests" in interval.approximate
    assert intervals.request_interval(accepted * 3, steps * 3).approximate == ""


def test_one_request_says_nothing_about_others():
    interval = intervals.request_interval([52.0], [40.0])
    assert math.isinf(interval.half)
    assert interval.low == 0
    test = divergence_test(interval, 2.3, 0.75)
    assert (test.verdict, test.p_value, test.windows_needed) == ("inconclusive", 0.5, None)


def test_a_giant_request_leaves_a_wide_interval():
    accepted, steps = [10.0] * 11 + [9_000.0], [10.0] * 11 + [10_000.0]
    interval = intervals.request_interval(accepted, steps)
    assert interval.degrees_of_freedom == 1
    assert interval.half > 5 * interval.error


@checks
@given(figures)
def test_any_figure_of_windows_has_a_mean_and_a_half_width(values):
    mean, half = intervals.mean_interval(values)
    assert mean == pytest.approx(np.mean(values))
    assert half >= intervals.t_quantile(len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values)) - 1e-9
    assert intervals.mean_interval(values[:1]) == (values[0], math.inf)


@pytest.mark.parametrize(
    ("depth", "factor", "extrapolated"),
    [
        (0, 1.0, False),
        (1, 0.96, False),
        (5, 0.82, False),
        (7, 0.78, False),
        (8, 0.78, True),
        (15, 0.78, True),
        (None, 0.82, True),
        (2.5, 0.895, False),
        (0.5, 0.98, False),
    ],
)
def test_healthy_factor(depth, factor, extrapolated):
    assert healthy_factor(depth) == (pytest.approx(factor), extrapolated)


@pytest.mark.parametrize(
    ("temperature", "factor"),
    [(None, 1.0), (0.0, 1.0), (0.3, 0.9), (0.7, 0.9), (0.85, 0.865), (1.0, 0.83), (1.5, 0.83)],
)
def test_temperature_factor(temperature, factor):
    assert temperature_factor(temperature) == pytest.approx(factor)


def test_margin_and_realistic_length():
    assert margin(5, 0) == pytest.approx(0.738)
    assert margin(5, 1.0) == pytest.approx(0.738 * 0.83)
    assert margin(5, None, replayed=True) == 0.9
    assert realistic_length(3.2658, 5, None) == pytest.approx(2.858, abs=5e-4)
    assert realistic_length(3.2658, 5, 0, replayed=True) == pytest.approx(3.2658)
    strict = Settings(healthy_factors=(1.0,) * 7, tolerance=1.0)
    assert margin(5, 0, settings=strict) == 1.0


@checks
@given(st.floats(0, 4), st.floats(0.005, 1), st.floats(0.2, 4), st.floats(0.3, 0.95), st.floats(0, 0.3))
def test_verdict_p_value_and_interval_agree(value, half, expected, limit, expected_error):
    interval = Interval(value, half, half / 3, "ewc", 24, 3)
    test = divergence_test(interval, expected, limit, expected_error)
    assert (test.p_value < 0.025) == (test.high < limit) or test.high == pytest.approx(limit)
    assert test.verdict == ("divergent" if test.high < limit else "consistent" if test.low >= limit else "inconclusive")
    assert (test.windows_needed is None) == (test.verdict != "inconclusive" or test.retained_share == limit)
    if test.windows_needed is not None:
        assert test.windows_needed > 24
    wider = divergence_test(interval, expected, limit, expected_error + 0.1)
    assert wider.low <= test.low
    assert wider.high >= test.high


def test_the_number_of_windows_still_needed_follows_the_square_root_law():
    interval = Interval(1.5, 0.2, 0.1, "ewc", 24, 3)
    assert divergence_test(interval, 2.0, 0.70).windows_needed == math.ceil(24 * (0.1 / 0.05) ** 2)
    few = Interval(1.5, 0.9, 0.4, "conservative", 3, math.inf)
    assert divergence_test(few, 2.0, 0.70).windows_needed == 12
    assert divergence_test(interval, 2.0, 0.75).windows_needed is None


def test_a_validation_that_promises_nothing_is_reported():
    with pytest.raises(ImpossibleFigure, match="expected 0 accepted"):
        divergence_test(Interval(0.8, 0.1, 0.05, "ewc", 24, 3), 0.0, 0.75)


@checks
@given(st.lists(st.floats(0, 1), max_size=30), st.floats(0.01, 0.5))
def test_benjamini_hochberg_rejects_the_smallest(p_values, rate):
    rejected = benjamini_hochberg(p_values, rate)
    assert list(rejected) == sorted(rejected)
    if rejected:
        largest = max(p_values[index] for index in rejected)
        assert largest <= rate * len(rejected) / len(p_values)
        assert all(p <= largest for p in p_values if p < largest)
        assert {index for index, p in enumerate(p_values) if p <= largest} == set(rejected)


def _replicas(values, half=0.05):
    return {
        f"DP{index} TP0": ReplicaFigures(Interval(value, half, half / 3, "ewc", 60, 3), 1000.0)
        for index, value in enumerate(values)
    }


def test_a_replica_that_falls_behind_is_named_and_load_is_not():
    verdicts = compare_replicas(_replicas([1.7, 1.72, 1.1, 1.69]))
    assert [verdict.outlier for verdict in verdicts] == [False, False, True, False]
    worst = verdicts[2]
    assert (worst.unit, worst.siblings) == ("DP2 TP0", 1.7)
    assert worst.share == pytest.approx(1.1 / worst.siblings)


def test_a_better_replica_is_no_outlier_and_makes_none_of_the_others():
    verdicts = compare_replicas(_replicas([1.7, 1.7, 1.7, 2.6]))
    assert not any(verdict.outlier for verdict in verdicts)
    assert [verdict.siblings for verdict in verdicts] == pytest.approx([1.7] * 4)


def test_replicas_that_cannot_be_compared_get_no_verdict():
    assert compare_replicas(_replicas([1.7])) == ()
    assert compare_replicas({}) == ()
    assert [verdict.unit for verdict in compare_replicas(_replicas([0.0, 1.7]))] == ["DP0 TP0"]
