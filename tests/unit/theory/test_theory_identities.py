"""The identities between lengths, rates and positions hold for all figures."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from analysis.theory import chain, conversions, heterogeneity, positions, rates, sampling, training, trees
from collector.domain.drafts import Measure
from collector.domain.errors import ImpossibleFigure, InputError
from tests.unit.theory.repeated import checks

share = st.floats(0, 1)
depths = st.integers(1, 16)
conditionals = st.lists(st.floats(0.01, 1), min_size=1, max_size=12)
prefixes = st.lists(share, min_size=1, max_size=12).map(lambda values: sorted(values, reverse=True))


@checks
@given(share, depths)
def test_length_is_one_plus_the_sum_of_powers(rate, depth):
    length = chain.expected_length(rate, depth)
    assert length == pytest.approx(1 + sum(rate**i for i in range(1, depth + 1)))
    assert 1 <= length <= depth + 1


@checks
@given(st.floats(0, 0.99), depths)
def test_length_agrees_with_the_closed_form_away_from_one(rate, depth):
    assert chain.expected_length(rate, depth) == pytest.approx((1 - rate ** (depth + 1)) / (1 - rate))


@checks
@given(share, depths)
def test_implied_rate_inverts_the_length(rate, depth):
    length = chain.expected_length(rate, depth)
    implied = chain.implied_rate(length, depth)
    assert chain.expected_length(implied, depth) == pytest.approx(length, abs=1e-9)


@checks
@given(st.lists(st.floats(0.5, 8), min_size=1, max_size=20), depths)
def test_many_lengths_at_once_give_what_one_by_one_gives(lengths, depth):
    for length, rate in zip(lengths, chain.implied_rates(lengths, depth), strict=True):
        try:
            assert rate == pytest.approx(chain.implied_rate(length, depth), abs=1e-12)
        except ImpossibleFigure:
            assert math.isnan(rate)


@checks
@given(share, share, depths)
def test_length_grows_with_the_rate_at_the_stated_slope(one, other, depth):
    low, high = sorted((one, other))
    assume(high - low > 1e-6)
    growth = chain.expected_length(high, depth) - chain.expected_length(low, depth)
    # Convex: the chord lies between the slopes at its ends.
    assert chain.length_slope(low, depth) <= growth / (high - low) * (1 + 1e-6)
    assert growth / (high - low) <= chain.length_slope(high, depth) * (1 + 1e-6)


@checks
@given(share, st.integers(0, 12), st.floats(0, 1))
def test_a_fractional_depth_is_a_mixture_of_its_neighbours(rate, depth, part):
    low, high = chain.expected_length(rate, depth), chain.expected_length(rate, depth + 1)
    assert chain.expected_length(rate, depth + part) == pytest.approx(low + part * (high - low))


@checks
@given(share, depths)
def test_variance_of_a_truncated_geometric(rate, depth):
    probabilities = [rate**i * (1 - rate) for i in range(depth)] + [rate**depth]
    mean = sum(i * p for i, p in enumerate(probabilities))
    variance = sum((i - mean) ** 2 * p for i, p in enumerate(probabilities))
    assert chain.accepted_variance(rate, depth) == pytest.approx(variance, abs=1e-9)
    assert chain.binomial_variance(rate, depth) <= variance + 1e-9


@checks
@given(st.floats(1.0001, 16))
def test_bounds_without_a_depth_hold_at_every_depth(length):
    low, high = chain.implied_rate_bounds(length)
    for depth in range(max(1, math.ceil(length - 1)), 40):
        assert low - 1e-9 <= chain.implied_rate(length, depth) <= high + 1e-9


@pytest.mark.parametrize("length", [0.99, 6.01, -1.0, math.nan, math.inf])
def test_an_impossible_length_is_reported(length):
    with pytest.raises(ImpossibleFigure, match="not possible at depth 5") as caught:
        chain.implied_rate(length, 5)
    assert caught.value.hint


@pytest.mark.parametrize(("length", "rate"), [(0.996, 0.0), (1.0, 0.0), (6.0, 1.0), (6.004, 1.0)])
def test_printed_rounding_at_the_edges_is_no_error(length, rate):
    assert chain.implied_rate(length, 5) == rate


def test_nothing_follows_from_a_length_at_depth_zero():
    assert chain.expected_length(0.7, 0) == 1
    with pytest.raises(ImpossibleFigure, match="depth 0"):
        chain.implied_rate(1.0, 0)
    assert np.isnan(chain.implied_rates([1.0], 0)).all()


@pytest.mark.parametrize("rate", [-0.01, 1.01, 74.7, math.nan])
def test_a_rate_beyond_its_range_is_reported(rate):
    with pytest.raises(ImpossibleFigure, match="not between 0 and 1"):
        chain.expected_length(rate, 3)


@pytest.mark.parametrize("depth", [-1, math.nan, math.inf])
def test_an_impossible_depth_is_reported(depth):
    with pytest.raises(ImpossibleFigure, match="draft depth"):
        chain.expected_length(0.5, depth)


@checks
@given(conditionals)
def test_conditional_and_prefix_are_each_other_s_inverse(conditional):
    prefix = positions.prefix_from_conditional(conditional)
    assert positions.conditional_from_prefix(prefix) == pytest.approx(conditional)
    positions.check_prefix(prefix)


@checks
@given(conditionals)
def test_length_is_one_plus_the_sum_of_prefixes(conditional):
    prefix = positions.prefix_from_conditional(conditional)
    nested = 1.0
    for rate in reversed(conditional):
        nested = 1 + rate * nested
    assert positions.length_from_prefix(prefix) == pytest.approx(nested)


@checks
@given(prefixes)
def test_a_sweep_over_depths_yields_the_prefixes(prefix):
    lengths = [positions.length_from_prefix(prefix, depth) for depth in range(1, len(prefix) + 1)]
    assert positions.prefix_from_sweep(lengths) == pytest.approx(prefix)


@checks
@given(share, st.integers(2, 10), st.integers(1, 10))
def test_the_tail_of_a_constant_chain_continues_it(rate, known, missing):
    prefix = [rate**i for i in range(1, known + 1)]
    whole = positions.extend_prefix(prefix, known + missing)
    assert whole == pytest.approx([rate**i for i in range(1, known + missing + 1)])
    assert positions.extend_prefix(whole, known) == pytest.approx(prefix)


def test_nothing_continues_from_no_position():
    with pytest.raises(ImpossibleFigure, match="no position"):
        positions.extend_prefix([], 2)


@pytest.mark.parametrize("prefix", [(0.5, 0.6), (1.2,), (-0.1,)])
def test_impossible_positions_are_reported(prefix):
    with pytest.raises(ImpossibleFigure, match="acceptance at position"):
        positions.conditional_from_prefix(prefix)


@checks
@given(st.lists(st.floats(0.05, 0.95), min_size=2, max_size=8))
def test_the_length_tells_what_a_list_holds(conditional):
    prefix = positions.prefix_from_conditional(conditional)
    length = round(positions.length_from_prefix(prefix), 2)
    shown_prefix = [round(value, 3) for value in prefix]
    shown_conditional = [round(value, 3) for value in conditional]
    assert Measure.PREFIX in positions.list_convention(shown_prefix, length)
    assert Measure.CONDITIONAL in positions.list_convention(shown_conditional, length)


def test_a_card_that_names_its_list_wrongly_is_seen_through():
    assert positions.list_convention([0.633, 0.404, 0.264], 2.30) == (Measure.PREFIX,)
    assert positions.list_convention([0.633, 0.404, 0.264], 1.956) == (Measure.CONDITIONAL,)
    assert positions.list_convention([0.633, 0.404, 0.264], 2.1) == ()
    assert positions.list_convention([0.7], 1.7) == (Measure.PREFIX, Measure.CONDITIONAL)


@checks
@given(st.floats(1, 8), st.integers(1, 12), st.integers(2, 32), st.sampled_from(list(rates.RateDefinition)))
def test_every_rate_leads_back_to_its_length(length, depth, width, definition):
    rate = rates.rate_from_length(length, definition, depth, width)
    assert rates.length_from_rate(rate, definition, depth, width) == pytest.approx(length)


@checks
@given(
    st.lists(st.floats(1.05, 5.9), min_size=12, max_size=30),
    st.integers(3, 7),
    st.sampled_from([d for d in rates.RateDefinition if d is not rates.RateDefinition.LENGTH_DEPTH]),
)
def test_printed_rates_name_their_definition(lengths, depth, definition):
    printed = [round(length, 2) for length in lengths]
    shown = [round(rates.rate_from_length(length, definition, depth, 2 * depth + 3), 2) for length in lengths]
    match = rates.infer_rate_definition(printed, shown, depth, 2 * depth + 3)
    assert definition in match.ties
    # The two-decimal rates of wide trees are too coarse to tell neighbouring denominators apart at times.
    assert match.definition == match.ties[0]


@pytest.mark.parametrize("length", [1.2, 2.3, 3.4])
def test_a_chain_s_definitions_pair_up_in_a_fixed_order(length):
    match = rates.infer_rate_definition(length, round(length / 6, 2), 5, 6)
    assert match.definition is rates.RateDefinition.LENGTH_WIDTH
    assert match.ties == (rates.RateDefinition.LENGTH_WIDTH, rates.RateDefinition.LENGTH_MAX_LENGTH)


def test_one_window_that_disagrees_spoils_a_definition():
    lengths, shown = [1.8, 1.9, 2.4], [0.30, 0.32, 0.28]
    assert rates.infer_rate_definition(lengths, shown, 5, 6).definition is None


def test_windows_without_figures_are_left_out_and_unknown_sizes_form_nothing():
    match = rates.infer_rate_definition([1.8, math.nan], [0.3, 0.3], None, 6)
    assert match.definition is rates.RateDefinition.LENGTH_WIDTH
    assert set(match.candidates) == {rates.RateDefinition.LENGTH_WIDTH, rates.RateDefinition.ACCEPTED_DRAFTED}
    assert rates.infer_rate_definition([math.nan], [0.3], 5, 6).candidates == {}
    with pytest.raises(ImpossibleFigure, match="cannot be formed"):
        rates.length_from_rate(0.3, rates.RateDefinition.LENGTH_WIDTH, 5)


def test_the_rate_of_thirty_percent_is_neither_acceptance_nor_comparable():
    """0.30 of 6 counts the bonus token; strictly 16% of drafts are accepted, and 45% would be a perfect 0.747."""
    length = rates.length_from_rate(0.30, rates.RateDefinition.LENGTH_WIDTH, 5, 6)
    assert length == pytest.approx(1.8)
    assert rates.rate_from_length(length, rates.RateDefinition.ACCEPTED_DRAFTED, 5, 6) == pytest.approx(0.16)
    promised = chain.expected_length(0.747, 5)
    assert rates.rate_from_length(promised, rates.RateDefinition.ACCEPTED_DEPTH, 5) == pytest.approx(0.453, abs=5e-4)


counts = st.integers(0, 10_000)


@checks
@given(st.lists(counts, min_size=2, max_size=9).filter(lambda histogram: sum(histogram) > 0))
def test_a_histogram_gives_steps_accepted_and_positions(histogram):
    found = conversions.from_histogram(histogram, len(histogram) - 1)
    assert found.steps == sum(histogram)
    assert found.accepted == sum(i * count for i, count in enumerate(histogram))
    assert found.length == pytest.approx(positions.length_from_prefix(found.prefix))
    assert found.drafted == found.steps * (len(histogram) - 1)


@checks
@given(
    st.lists(counts, min_size=4, max_size=4).filter(lambda histogram: sum(histogram) > 0),
    st.lists(counts, min_size=4, max_size=4).filter(lambda histogram: sum(histogram) > 0),
)
def test_counts_add_up_like_one_long_window(one, other):
    both = conversions.from_histogram(one, 3) + conversions.from_histogram(other, 3)
    assert both == conversions.from_histogram([a + b for a, b in zip(one, other, strict=True)], 3)


def test_what_only_one_part_knows_is_unknown_of_the_sum():
    both = conversions.from_histogram([1, 2, 3], 2) + conversions.from_length(1.8, 40)
    assert both.drafted is None
    assert both.accepted_at == ()
    assert both.accepted == pytest.approx(8 + 32)


@checks
@given(st.floats(1.001, 5.9), st.integers(1, 500), st.booleans())
def test_every_source_of_one_truth_gives_the_same_counts(length, steps, bonus):
    accepted, drafted = (length - 1) * steps, 5.0 * steps
    expected = pytest.approx(length)
    assert conversions.from_length(length, steps, 5).length == expected
    assert conversions.from_counters(steps, drafted, accepted).length == expected
    assert conversions.from_drafted(accepted, drafted, 5).length == expected
    assert conversions.length_from_system_efficiency(length / 6, 5) == expected
    mean = length if bonus else length - 1
    assert conversions.from_printed_mean(mean, accepted, drafted, depth=5, bonus_included=bonus).length == expected
    assert conversions.from_printed_mean(mean, accepted, drafted, bonus_included=bonus).steps == pytest.approx(steps)
    generated = steps + accepted + 1
    assert conversions.from_generated(generated, accepted).steps == pytest.approx(steps)


def test_llama_server_s_line():
    """167 accepted of 261, mean length 2.92, by position .805 .632 .483: 87 steps."""
    found = conversions.from_printed_mean(2.92, 167, 261, prefix=(0.805, 0.632, 0.483))
    assert found.steps == pytest.approx(87, abs=0.1)
    assert positions.length_from_prefix(found.prefix) == pytest.approx(found.length, abs=0.005)
    assert conversions.from_generated(256, 167).steps == 88


@pytest.mark.parametrize(
    "impossible",
    [
        lambda: conversions.from_length(0.8, 40),
        lambda: conversions.from_length(6.2, 40, 5),
        lambda: conversions.from_histogram([3, -1]),
        lambda: conversions.from_counters(-1, 5, 1),
        lambda: conversions.from_counters(10, 50, 60),
        lambda: conversions.from_counters(10, 50, 12, (5, 7)),
        lambda: conversions.from_printed_mean(2.0, 60, 50),
        lambda: conversions.from_printed_mean(1.0, 0, 50),
        lambda: conversions.from_drafted(60, 50, 5),
        lambda: conversions.from_drafted(10, 50, 0),
        lambda: conversions.from_generated(10, 20),
        lambda: conversions.length_from_system_efficiency(1.1, 4),
    ],
)
def test_impossible_counts_are_reported(impossible):
    with pytest.raises(ImpossibleFigure):
        impossible()


def test_no_steps_give_no_length():
    with pytest.raises(InputError, match="without verify steps"):
        _ = conversions.Counts(0, 0).length
    assert conversions.Counts(0, 0, accepted_at=(0.0,)).prefix == ()


ranks = st.lists(st.floats(0.01, 0.3), min_size=1, max_size=3)


@checks
@given(ranks, st.integers(1, 20), st.integers(1, 6))
def test_the_best_tree_beats_the_chain_and_respects_the_bounds(rank_probabilities, budget, depth):
    length, nodes = trees.best_tree(rank_probabilities, budget, depth)
    assert trees.tree_length(rank_probabilities, nodes) == pytest.approx(length)
    chain_length = chain.expected_length(rank_probabilities[0], min(budget, depth))
    assert length >= chain_length - 1e-9
    width = len(nodes) + 1
    assert length <= trees.tree_upper_bound(sum(rank_probabilities), depth, width) + 1e-9
    if trees.contains_full_chain(nodes, depth):
        assert length >= trees.tree_lower_bound(rank_probabilities[0], depth, width) - 1e-9


def test_a_chain_is_a_tree():
    nodes = [(0,) * level for level in range(1, 6)]
    assert trees.tree_length([0.7], nodes) == pytest.approx(chain.expected_length(0.7, 5))
    assert trees.contains_full_chain(nodes, 5)
    assert not trees.contains_full_chain(nodes, 6)
    assert trees.tree_lower_bound(0.7, 5, 4) is None
    assert trees.tree_length([0.7], [(3,)]) == 1


def test_depth_efficiency_and_the_worth_of_a_node():
    assert trees.depth_efficiency(2.5, 3) == 0.5
    with pytest.raises(ImpossibleFigure, match="depth 0"):
        trees.depth_efficiency(1, 0)
    assert trees.worth_adding(0.2, 2.0, 0.05)
    assert not trees.worth_adding(0.05, 2.0, 0.05)


@pytest.mark.parametrize("nodes", [[(0, 0)], [(0,), (0,)], [()]])
def test_what_is_no_tree_is_refused(nodes):
    with pytest.raises(InputError):
        trees.tree_length([0.5], nodes)


def test_ranks_that_sum_to_more_than_one_are_reported():
    with pytest.raises(ImpossibleFigure, match="rank probabilities"):
        trees.best_tree([0.8, 0.3], 4, 4)


@checks
@given(st.integers(0, 2**32 - 1), st.integers(2, 40), st.floats(0.05, 5))
def test_overlap_stays_within_what_the_first_choices_allow(seed, tokens, concentration):
    random = np.random.default_rng(seed)
    target, draft = random.dirichlet(np.full(tokens, concentration), size=(2, 50))
    both = sampling.overlap(target, draft)
    low, high = sampling.overlap_bounds(target, draft)
    assert (low <= both + 1e-12).all()
    assert (both <= high + 1e-12).all()
    assert both == pytest.approx(1 - np.abs(target - draft).sum(axis=1) / 2)
    greedy = sampling.greedy_draft_acceptance(target, draft)
    assert ((greedy == target.max(axis=1)) == sampling.agreement(target, draft)).all()


@pytest.mark.parametrize(
    ("target", "draft"), [([0.5, 0.5], [1.0]), ([0.5, 0.6], [0.5, 0.5]), ([1.5, -0.5], [0.5, 0.5])]
)
def test_what_is_no_distribution_is_reported(target, draft):
    with pytest.raises(ImpossibleFigure):
        sampling.overlap(target, draft)


@checks
@given(st.floats(0.05, 0.95), st.floats(0.5, 200), st.integers(1, 10))
def test_heterogeneity_errs_in_the_known_directions(mean, concentration, depth):
    mixture = heterogeneity.beta_mixture(mean, concentration, depth)
    assert mixture.equal_steps >= mixture.at_mean - 1e-9
    assert mixture.equal_tokens <= mixture.equal_steps + 1e-9
    assert mixture.first_position <= mean + 1e-9


def test_a_mixture_of_equals_is_the_chain():
    mixture = heterogeneity.beta_mixture(0.7, 1e7, 5)
    assert mixture.equal_tokens == pytest.approx(chain.expected_length(0.7, 5), abs=1e-4)
    with pytest.raises(ImpossibleFigure, match="Beta"):
        heterogeneity.beta_mixture(1.0, 10, 5)


@checks
@given(share, share)
def test_draft_vocabulary_bounds_hold_the_metric(metric, coverage):
    low, high = training.draft_vocabulary_bounds(metric, coverage)
    assert 0 <= low <= high + 1e-12 <= 1 + 1e-12
    assert high <= coverage


@checks
@given(conditionals, st.integers(1, 12))
def test_prefix_and_conditional_figures_promise_the_same(conditional, depth):
    prefix = positions.prefix_from_conditional(conditional)
    one = training.promised_length(conditional[0], conditional, Measure.CONDITIONAL, depth)
    other = training.promised_length(prefix[0], prefix, Measure.PREFIX, depth)
    assert one.length == pytest.approx(other.length)
    assert one.prefix == pytest.approx(other.prefix)
    assert (len(conditional) < depth) == bool(one.note)


def test_one_accuracy_promises_a_constant_chain_and_says_so():
    promise = training.promised_length(0.747, (), Measure.UNKNOWN, 5)
    assert promise.length == pytest.approx(3.2658, abs=1e-4)
    assert (promise.length_low, promise.length_high) == (promise.length, promise.length)
    assert "every position" in promise.note


def test_figures_of_unknown_meaning_are_left_aside_and_marginals_are_multiplied():
    unknown = training.promised_length(0.7, (0.7, 0.6, 0.5), Measure.UNKNOWN, 3)
    assert unknown.length == pytest.approx(chain.expected_length(0.7, 3))
    assert "left aside" in unknown.note
    marginal = training.promised_length(0.7, (0.7, 0.6, 0.5), Measure.MARGINAL, 3)
    assert marginal.length == pytest.approx(1 + 0.7 + 0.42 + 0.21)
    assert "independent" in marginal.note


def test_a_small_draft_vocabulary_gives_bounds():
    promise = training.promised_length(0.78, (), Measure.UNKNOWN, 5, coverage=0.95)
    assert promise.length_low == pytest.approx(chain.expected_length(0.73, 5))
    assert promise.length_high == pytest.approx(chain.expected_length(0.78, 5))
    assert "95%" in promise.note
    with pytest.raises(ImpossibleFigure):
        training.draft_vocabulary_bounds(0.5, 1.5)


def test_the_formulas_need_no_scientific_packages():
    """The command line starts with them, so they must not drag numpy, scipy or pandas along."""
    code = (
        "import sys, analysis.theory.chain, analysis.theory.rates, analysis.theory.payoff, analysis.theory.depth;"
        "sys.exit(', '.join({'numpy', 'scipy', 'pandas'} & set(sys.modules)) or 0)"
    )
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (finished.returncode, finished.stderr) == (0, "")
