"""Counting many lines at once gives what counting each gives."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from collector.domain.windows import CountsAt
from collector.formats.count_columns import counted
from collector.formats.counts import spec_counts

LINE = st.tuples(
    st.integers(0, 3_000),
    st.lists(st.floats(0, 1), min_size=3, max_size=3).map(lambda rates: sorted(rates, reverse=True)),
    st.integers(0, 2),
    st.sampled_from([0.0, 1.0, 1.0, 1.0]),
    st.booleans(),
)


def printed(drafts, rates, short, bonus, orderly):
    """The figures of a line: drafts of which each position was reached by a share, some of them not full."""
    reached = [int(rate * drafts) for rate in rates]
    accepted = sum(reached)
    length = round(bonus + accepted / drafts, 2) if drafts else float("nan")
    positions = [round(count / drafts, 3) if drafts else 0.0 for count in reached]
    return accepted, max(3 * drafts - short, 0), length, positions if orderly else positions[::-1]


@given(st.lists(LINE, min_size=1, max_size=30))
@example([(1_234, [0.8, 0.5, 0.2], 0, 1.0, True)])
@example([(2_999, [1.0, 1.0, 1.0], 0, 1.0, True), (10, [0.5, 0.5, 0.1], 1, 0.0, False)])
def test_counts_are_those_of_each_line(lines):
    rows = [printed(*line) for line in lines]
    accepted, drafted, length = (np.array([row[field] for row in rows], dtype=float) for field in range(3))
    found = counted(accepted, drafted, length, np.array([row[3] for row in rows]))
    for number, (one_accepted, one_drafted, one_length, positions) in enumerate(rows):
        expected = spec_counts(one_accepted, one_drafted, one_length, tuple(positions))
        steps = found.verify_steps[number]
        assert (None if np.isnan(steps) else steps) == expected.verify_steps
        assert CountsAt(found.accepted_at[number : number + 1]).tolist() == [expected.accepted_at]
        assert {1: True, 0: None, -1: False}[int(found.bonus[number])] is expected.bonus_in_length
