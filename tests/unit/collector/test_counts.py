"""Counts are recovered from printed figures."""

import math
import os
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from collector.formats.counts import spec_counts
from collector.formats.vllm.lifetime import LifetimeCounts

SOAK = os.environ.get("DRAFTSCOPE_SOAK") == "1"


def printed(drafts: list[tuple[int, int]], depth: int, *, bonus: bool = True):
    """What a line would print about drafts, each of a length and with a number of accepted tokens."""
    accepted = sum(taken for _, taken in drafts)
    positions = tuple(round(sum(taken > i for _, taken in drafts) / len(drafts), 3) for i in range(depth))
    length = round(bonus + accepted / len(drafts), 2)
    return accepted, sum(made for made, _ in drafts), length, positions


@st.composite
def full_drafts(draw):
    depth = draw(st.integers(1, 8))
    return depth, draw(st.lists(st.integers(0, depth).map(lambda taken: (depth, taken)), min_size=1, max_size=300))


@given(full_drafts())
@settings(max_examples=1000 if SOAK else 100)
def test_drafts_of_full_length_are_counted_exactly(drawn):
    depth, drafts = drawn
    accepted, drafted, length, positions = printed(drafts, depth)
    counts = spec_counts(accepted, drafted, length, positions)
    assert counts.verify_steps == len(drafts)
    assert counts.accepted_at == tuple(float(sum(taken > i for _, taken in drafts)) for i in range(depth))
    assert counts.bonus_in_length is not False


@given(full_drafts())
@settings(max_examples=1000 if SOAK else 100)
def test_lengths_without_the_targets_token_give_the_same_counts(drawn):
    depth, drafts = drawn
    with_bonus = spec_counts(*printed(drafts, depth))
    without = spec_counts(*printed(drafts, depth, bonus=False))
    assert without[:4] == with_bonus[:4]
    assert without.bonus_in_length is False


@pytest.mark.parametrize("seed", range(60 if SOAK else 6))
def test_short_drafts_are_counted_within_the_rounding(seed):
    rng = random.Random(seed)
    off = 0
    for _ in range(200):
        depth, rate = rng.randint(2, 6), rng.uniform(0.1, 0.9)
        drafts = []
        for _ in range(rng.choice((5, 50, 400))):
            made = rng.randint(1, depth)
            drafts.append((made, next((i for i in range(made) if rng.random() > rate), made)))
        accepted, drafted, length, positions = printed(drafts, depth)
        counts = spec_counts(accepted, drafted, length, positions)
        off += counts.verify_steps != len(drafts)
        if accepted:
            assert counts.verify_steps == pytest.approx(len(drafts), rel=0.02, abs=1)
            assert sum(counts.accepted_at) == accepted
    assert off < 40


def test_nothing_drafted_counts_nothing():
    counts = spec_counts(0, 0, math.nan, ())
    assert (counts.accepted, counts.drafted, counts.verify_steps) == (0, 0, 0.0)


def test_without_positions_the_configured_depth_tells_the_drafts():
    assert spec_counts(66, 132, None, (), depth=2).verify_steps == 66
    assert spec_counts(66, 132, None, ()).verify_steps is None


def test_nothing_accepted_still_counts_the_drafts():
    counts = spec_counts(0, 3652, 1.0, (0.0, 0.0, 0.0, 0.0))
    assert counts.verify_steps == 913
    assert counts.accepted_at == (0.0, 0.0, 0.0, 0.0)


@given(
    st.integers(0, 10**12),
    st.integers(0, 10**12),
    st.one_of(st.none(), st.floats(allow_nan=True, allow_infinity=True)),
    st.lists(st.floats(0, 9.999), max_size=6).map(tuple),
)
@settings(max_examples=1000 if SOAK else 100)
def test_figures_that_fit_nothing_are_no_crash(accepted, drafted, length, positions):
    counts = spec_counts(accepted, drafted, length, positions)
    assert (counts.accepted, counts.drafted) == (accepted, drafted)


def test_v0_counters_in_terms_of_the_others():
    counts = LifetimeCounts(drafted=51056, emitted=3191, depth=16)
    assert counts.verify_steps == 3191
    assert counts.accepted == 0
