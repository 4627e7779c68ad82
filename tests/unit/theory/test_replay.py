"""Walking held-out text in steps: theory section 2.4."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.theory.chain import expected_length
from analysis.theory.divergence import margin, realistic_length
from analysis.theory.replay import replay
from collector.domain.errors import ImpossibleFigure
from collector.models.correctness import read_correctness

FLAGS = st.lists(st.sampled_from("01"), min_size=1, max_size=60).map("".join)


def runs(text: str) -> list[list[int]]:
    return read_correctness(text)


def walked(flags: str, depth: int) -> list[int]:
    """Accepted drafts of each step, token by token; a step that the end of the text cuts is left out."""
    steps: list[int] = []
    at = 0
    while at < len(flags):
        kept = 0
        while kept < depth and at + kept < len(flags) and flags[at + kept] == "1":
            kept += 1
        if kept < depth and at + kept == len(flags):
            break
        steps.append(kept)
        at += kept + 1
    return steps


@pytest.mark.parametrize(
    ("text", "depth", "accepted"),
    [
        ("1110110", 3, [3, 2]),
        ("0000", 3, [0, 0, 0, 0]),
        ("111111", 2, [2, 2]),
        ("1011", 1, [1, 1]),
        ("10111", 3, [1, 3]),
        ("0111", 2, [0, 2]),
    ],
)
def test_steps_counted_by_hand(text: str, depth: int, accepted: list[int]) -> None:
    walk = replay(runs(text), depth)
    assert (sum(walk.steps), sum(walk.accepted)) == (len(accepted), sum(accepted))
    assert walk.length == pytest.approx(1 + sum(accepted) / len(accepted))
    assert walk.accuracy == text.count("1") / len(text)


@given(st.lists(FLAGS, min_size=1, max_size=5), st.integers(1, 8))
def test_the_walk_is_that_of_a_server(texts: Sequence[str], depth: int) -> None:
    expected = [walked(text, depth) for text in texts]
    counted = [steps for steps in expected if steps]
    if not counted:
        with pytest.raises(ImpossibleFigure):
            replay(runs("\n".join(texts)), depth)
        return
    walk = replay(runs("\n".join(texts)), depth)
    assert walk.steps == tuple(map(len, counted))
    assert walk.accepted == tuple(map(sum, counted))
    every = [kept for steps in counted for kept in steps]
    for position, share in enumerate(walk.prefix, 1):
        assert share == pytest.approx(sum(kept >= position for kept in every) / len(every))
    assert walk.length == pytest.approx(1 + sum(walk.prefix))
    assert 1 <= walk.length <= depth + 1


@given(st.integers(1, 8), st.integers(1, 20))
def test_a_draft_that_is_always_right_keeps_all(depth: int, times: int) -> None:
    walk = replay([list(range((depth + 1) * times, 0, -1))], depth)
    assert walk.length == depth + 1
    assert walk.kept == pytest.approx(1)


def test_a_draft_that_is_never_right_keeps_nothing() -> None:
    walk = replay(runs("0" * 50), 4)
    assert (walk.length, walk.kept, walk.promised_length) == (1, 0, 1)


@pytest.mark.parametrize("accuracy", [0.5, 0.7, 0.85])
@pytest.mark.parametrize("depth", [1, 3, 5])
def test_independent_tokens_give_the_chain_formula(accuracy: float, depth: int) -> None:
    """Nothing is lost where a failure says nothing about the next token."""
    chance = random.Random(7)
    text = "".join("1" if chance.random() < accuracy else "0" for _ in range(200_000))
    walk = replay(runs(text), depth)
    assert walk.length == pytest.approx(expected_length(accuracy, depth), rel=0.01)
    assert walk.kept == pytest.approx(1, abs=0.02)


def test_failures_that_come_together_cost_what_the_formula_leaves_out() -> None:
    """Steps start where the draft failed: short steps are many, so the average over positions promises too much."""
    chance = random.Random(8)
    texts, easy = [], True
    for _ in range(200):
        text = ""
        for _ in range(300):
            easy = easy if chance.random() < 0.95 else not easy
            text += "1" if chance.random() < (0.92 if easy else 0.4) else "0"
        texts.append(text)
    walk = replay(runs("\n".join(texts)), 5)
    assert walk.length < walk.promised_length
    assert 0.6 < walk.kept < 0.97


def test_the_longest_text_does_not_grow_the_stack() -> None:
    assert replay(runs("10" * 100_000), 3).length == 2


@pytest.mark.parametrize("depth", [1, 3, 5, 8])
def test_a_replayed_length_needs_no_allowance_for_averaging(depth: int) -> None:
    """The factor f_k falls away, and its uncertainty with it."""
    assert realistic_length(2.5, depth, None, replayed=True) > realistic_length(2.5, depth, None)
    assert realistic_length(2.5, depth, 0.0, replayed=True) == pytest.approx(2.5)
    assert margin(depth, 0.0, replayed=True) >= margin(depth, 0.0)


@pytest.mark.parametrize("depth", [0, -1])
def test_a_depth_below_one_is_refused(depth: int) -> None:
    with pytest.raises(ImpossibleFigure):
        replay([[1, 0]], depth)
