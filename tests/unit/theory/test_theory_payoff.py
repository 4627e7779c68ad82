"""Pay-off, depth, load and step time."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.theory import depth, load, payoff, steps
from analysis.theory.chain import expected_length
from analysis.theory.divergence import realistic_length
from collector.domain.errors import ImpossibleFigure, InputError
from tests.unit.theory.repeated import checks

positive = st.floats(1, 5000)
lengths = st.floats(1, 6)


def kimi():
    """The example that must always work: 54.8 against 90 tok/s at length 1.8 of 6, validation 0.747."""
    return payoff.pay_off(
        length=1.8,
        throughput=54.8,
        baseline_throughput=90.0,
        depth=5,
        realistic_length=realistic_length(expected_length(0.747, 5), 5, None),
        usual_step_cost=payoff.usual_step_cost(5, True),
        running=1,
    )


def test_neither_repair_pays_alone():
    result = kimi()
    assert result.step_cost_ratio == pytest.approx(2.956, abs=5e-4)
    assert result.speedup == pytest.approx(0.609, abs=5e-4)
    assert result.step_seconds == pytest.approx(0.03285, abs=5e-6)
    assert result.break_even_length == result.step_cost_ratio
    assert result.break_even_rate == pytest.approx(0.702, abs=5e-4)
    assert {repair.name: round(repair.throughput, 1) for repair in result.repairs} == {
        "as_it_is": 54.8,
        "acceptance_repaired": 87.0,
        "step_cost_repaired": 81.0,
        "both_repaired": 128.6,
    }
    assert [repair.assumed for repair in result.repairs] == [False, False, True, True]
    assert round(result.loss_share_acceptance, 2) == 0.54
    assert round(result.loss_share_step_cost, 2) == 0.46


def test_the_document_is_plain():
    document = kimi().document()
    assert json.loads(json.dumps(document)) == document
    assert document["repairs"][3]["name"] == "both_repaired"


@checks
@given(lengths, positive, positive, st.floats(1, 6), st.floats(1, 4))
def test_losses_add_up_on_the_log_scale(length, throughput, baseline, realistic, usual):
    result = payoff.pay_off(
        length=length,
        throughput=throughput,
        baseline_throughput=baseline,
        depth=5,
        realistic_length=realistic,
        usual_step_cost=usual,
    )
    assert result.speedup == pytest.approx(result.length / result.step_cost_ratio)
    best = result.repairs[-1]
    total = math.log(best.speedup / result.speedup)
    if result.loss_share_acceptance is None:
        assert len(result.repairs) == 1
    else:
        assert result.loss_share_acceptance + result.loss_share_step_cost == pytest.approx(1)
        assert result.loss_share_acceptance * total == pytest.approx(max(0, math.log(realistic / length)), abs=1e-9)
    assert all(repair.throughput >= throughput * (1 - 1e-9) for repair in result.repairs)


def test_what_is_better_than_its_reference_loses_nothing():
    result = payoff.pay_off(
        length=3.0, throughput=60, baseline_throughput=90, depth=5, realistic_length=2.8, usual_step_cost=2.0
    )
    assert [repair.name for repair in result.repairs] == ["as_it_is", "step_cost_repaired"]
    assert (result.loss_share_acceptance, result.loss_share_step_cost) == (0.0, 1.0)


def test_without_references_only_what_was_measured_is_said():
    result = payoff.pay_off(length=1.8, throughput=54.8, baseline_throughput=90, depth=None)
    assert [repair.name for repair in result.repairs] == ["as_it_is"]
    assert result.break_even_rate is None
    assert result.loss_share_acceptance is None
    assert result.step_seconds is None
    assert result.speedup_low is None


def test_a_step_cheaper_than_a_plain_one_means_another_load():
    result = payoff.pay_off(length=1.9, throughput=200, baseline_throughput=90, depth=5)
    assert not result.baseline_comparable
    assert result.break_even_rate is None
    assert kimi().baseline_comparable


def test_a_cost_beyond_the_longest_step_breaks_even_nowhere():
    assert payoff.break_even_rate(6.01, 5) is None
    assert payoff.break_even_rate(6.0, 5) == 1.0
    assert payoff.break_even_rate(1.5, 0) is None


def test_the_interval_of_the_speedup():
    exact = {"length": 1.8, "throughput": 100.0, "baseline_throughput": 90.0, "depth": 5}
    result = payoff.pay_off(**exact, throughput_half=5, baseline_half=3)
    assert result.speedup_low < result.speedup < result.speedup_high
    relative = math.hypot(5 / 100, 3 / 90)
    assert math.log(result.speedup_high / result.speedup) == pytest.approx(relative)


def test_time_per_token_speeds_up_by_the_times():
    result = payoff.pay_off(
        length=1.8,
        throughput=54.8,
        baseline_throughput=90,
        depth=5,
        time_per_output_token=0.018,
        baseline_time_per_output_token=0.011,
    )
    assert result.speedup_time == pytest.approx(11 / 18)


@pytest.mark.parametrize(
    "given_", [{"throughput": 0}, {"baseline_throughput": math.nan}, {"length": 0.9}, {"throughput": -1.0}]
)
def test_impossible_inputs_are_reported(given_):
    whole = {"length": 1.8, "throughput": 54.8, "baseline_throughput": 90.0, "depth": 5} | given_
    with pytest.raises(ImpossibleFigure):
        payoff.pay_off(**whole)


def test_the_usual_cost_lies_amid_the_published_cases_of_its_class():
    for experts in (False, True):
        for k in (3, 5, 7):
            ratios = [
                case.ratio for case in payoff.PUBLISHED_COSTS if case.mixture_of_experts == experts and case.depth == k
            ]
            assert min(ratios) <= payoff.usual_step_cost(k, experts) <= max(ratios)
    assert payoff.usual_step_cost(5, False) == pytest.approx(1.5)
    assert payoff.usual_step_cost(5, True) == pytest.approx(2.0)
    assert payoff.usual_step_cost(20, True) == payoff.usual_step_cost(8, True)


def test_the_nearest_published_cost():
    assert payoff.nearest_published_cost(5, True) == ("Kimi-K2", 5, 8, 2.31)
    assert payoff.nearest_published_cost(30, False)[1] == 7


def test_costs_at_several_depths_split_into_verify_and_draft():
    for model, slope, intercept in (("Llama-3.1-8B", 0.144, 1.18), ("Kimi-K2", 0.155, 1.51)):
        cases = [case for case in payoff.PUBLISHED_COSTS if case.model == model]
        verify, draft = payoff.fit_step_cost([case.depth for case in cases], [case.ratio for case in cases])
        assert (verify, draft) == (pytest.approx(intercept, abs=0.02), pytest.approx(slope, abs=0.002))
    with pytest.raises(InputError, match="two depths"):
        payoff.fit_step_cost([5, 5], [1.9, 2.0])


@checks
@given(st.floats(1, 2), st.floats(0.01, 0.4), st.lists(st.integers(1, 12), min_size=2, max_size=6, unique=True))
def test_a_line_is_found_again(verify, draft, depths):
    ratios = [payoff.step_cost(verify, k, draft) for k in depths]
    assert payoff.fit_step_cost(depths, ratios) == (pytest.approx(verify), pytest.approx(draft))


shares = st.lists(st.floats(0.0, 1), min_size=1, max_size=8).map(lambda values: sorted(values, reverse=True))


@checks
@given(shares, st.floats(0.01, 0.4), st.floats(1, 1.6))
def test_the_speedup_has_one_peak_and_the_marginal_rule_finds_it(prefix, draft_cost, verify_cost):
    speedups = depth.speedup_by_depth(prefix, draft_cost, verify_cost)
    best = depth.best_depth(prefix, draft_cost, verify_cost)
    assert speedups[best.fastest] == max(speedups)
    assert best.speedups == speedups
    for k in range(1, len(prefix)):
        pays, threshold = depth.worth_another_position(prefix[k], speedups[k], draft_cost)
        if abs(prefix[k] - threshold) > 1e-9:
            assert pays == (speedups[k + 1] > speedups[k])


@checks
@given(shares, st.floats(0.01, 0.4), st.floats(1, 1.6))
def test_the_smallest_depth_within_three_percent_is_recommended(prefix, draft_cost, verify_cost):
    best = depth.best_depth(prefix, draft_cost, verify_cost)
    floor = 0.97 * best.speedups[best.fastest]
    assert best.depth <= best.fastest
    assert best.speedups[best.depth] >= floor
    assert all(speedup < floor for speedup in best.speedups[: best.depth])
    assert best.turn_off == (best.depth == 0)


def test_a_dear_draft_is_turned_off():
    best = depth.best_depth([0.445, 0.198, 0.0881, 0.0392, 0.01745], 0.371, 1.1, current=5, errors=[0.01] * 5)
    assert best.turn_off
    assert best.gain == pytest.approx(1 / 0.605, abs=0.01)
    assert best.certain


def test_noise_makes_a_recommendation_uncertain():
    prefix = [0.72, 0.5, 0.33, 0.22, 0.14, 0.09, 0.06]
    sharp = depth.best_depth(prefix, 0.06, 1.05, current=7, errors=[0.002] * 7)
    blurred = depth.best_depth(prefix, 0.06, 1.05, current=7, errors=[0.05] * 7)
    assert sharp.depth == blurred.depth == 4
    assert sharp.gain == blurred.gain > 1
    assert sharp.certain
    assert not blurred.certain
    assert blurred.gain_low < 1 < blurred.gain_high
    assert blurred.errors[7] == pytest.approx(0.35 / (1.05 + 0.42))
    assert depth.best_depth(prefix, 0.06, 1.05, current=4, errors=[0.05] * 7).certain


def test_at_most_two_positions_are_extrapolated():
    best = depth.best_depth([0.9, 0.82, 0.75], 0.02, 1.0, longest=12)
    assert len(best.speedups) == 6
    assert (best.measured, best.fastest) == (3, 5)
    assert depth.best_depth([], 0.1, 1.1).turn_off
    assert len(depth.best_depth([0.9, 0.82, 0.75], 0.02, 1.0, longest=2).speedups) == 3


def test_costs_per_depth_must_fit():
    with pytest.raises(InputError, match="2 verify costs for 3 depths"):
        depth.speedup_by_depth([0.7, 0.5, 0.3], 0.1, [1.1, 1.1])
    with pytest.raises(ImpossibleFigure, match="costs nothing"):
        depth.speedup_by_depth([0.7], 0.0, 0.0)


@checks
@given(st.floats(1, 4), st.integers(1, 8), st.floats(0, 0.5))
def test_a_step_cost_splits_into_parts_that_add_up(ratio, k, slope):
    verify, draft = depth.split_step_cost(ratio, k, slope)
    assert verify + k * draft == pytest.approx(ratio)
    assert verify >= 1 - 1e-9
    assert draft >= 0


@pytest.mark.parametrize(
    ("k", "speedups"),
    [
        (1, {1: 1.27, 8: 1.26, 32: 1.24, 64: 1.21, 128: 1.18, 256: 1.14}),
        (3, {1: 1.81, 8: 1.74, 32: 1.58, 64: 1.44, 128: 1.28, 256: 1.15}),
        (5, {1: 2.03, 8: 1.90, 32: 1.61, 64: 1.39, 128: 1.17, 256: 1.00}),
    ],
)
def test_the_published_fit_by_batch(k, speedups):
    for batch, speedup in speedups.items():
        # The fit's coefficients are published to three digits.
        assert load.PUBLISHED_STEP_TIME.speedup(0.655, k, batch, 500) == pytest.approx(speedup, abs=0.02)


def test_the_best_depth_falls_with_the_batch_unless_the_context_is_long():
    best = [load.PUBLISHED_STEP_TIME.best_depth(0.655, batch, 500, 5) for batch in (1, 64, 256)]
    assert best[0] == 5
    assert best == sorted(best, reverse=True)
    assert best[-1] < 5
    assert load.PUBLISHED_STEP_TIME.speedup(0.655, 3, 256, 4000) == pytest.approx(1.75, abs=0.05)
    assert load.PUBLISHED_STEP_TIME.speedup(0.655, 0, 8, 500) == 1


@pytest.mark.parametrize(("batch", "growth"), [(1, 3.64), (8, 2.17), (32, 1.14), (64, 1.02)])
def test_experts_are_read_anew_at_small_batch(batch, growth):
    assert load.expert_growth(128, 8, batch, 4) == pytest.approx(growth, abs=0.006)


def test_step_time_is_the_median_over_steady_windows():
    found = steps.step_time([8, 8, 8], [2.64, 2.64, 2.64], [1488.4, 1500.0, 700.0])
    assert found.seconds == pytest.approx(8 * 2.64 / 1488.4)
    assert (found.windows, found.half > 0) == (3, True)
    with pytest.raises(InputError):
        steps.step_time([], [], [])
    with pytest.raises(ImpossibleFigure):
        steps.step_time([8], [2.6], [0.0])


def test_the_clock_of_the_lines_gives_the_same_step_time():
    at = np.floor(np.arange(400) * 1.3)
    steady = np.ones(400, dtype=bool)
    assert steps.clock_step_seconds(at, steady, 40) == pytest.approx(1.3 / 40, rel=0.005)
    steady[200] = False
    at[200:] += 30
    assert steps.clock_step_seconds(at, steady, 40) == pytest.approx(1.3 / 40, rel=0.005)
    assert steps.clock_step_seconds([1.0], [True], 40) is None
