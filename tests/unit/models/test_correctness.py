"""Files that say for each token whether a draft gets it right."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.domain.errors import InputError, MalformedInput, UnreadableInput
from collector.models.correctness import read_correctness


@pytest.mark.parametrize(
    "line",
    [
        "1101",
        "1 1 0 1",
        "1,1,0,1",
        "1, 1, 0, 1",
        "[1, 1, 0, 1]",
        "[true, true, false, true]",
        '{"correct": [1, 1, 0, 1]}',
        '{"id": 7, "correctness": [true, true, false, true]}',
        '{"hits": [1, 1, 0, 1]}',
        '{"accepted": [2, 1, 0, 1]}',
        "[[1, 1, 0], [1, 0, 1], [0], [1]]",
    ],
)
def test_one_text_in_every_form(line: str) -> None:
    assert read_correctness(line) == [[2, 1, 0, 1]]


def test_one_text_a_line() -> None:
    text = '# held-out\n\n11\r\n[0]\n{"correct": []}\n1\n'
    assert read_correctness(text) == [[2, 1], [0], [1]]


@pytest.mark.parametrize(
    "line",
    [
        "2",
        "1 0 2",
        "[1, 2]",
        "[1, null]",
        '["1"]',
        "[[1], 0]",
        "[[1], [2]]",
        "{}",
        '{"correct": 1}',
        '{"correct": {"a": 1}}',
        '{"accepted": [1.5]}',
        '{"accepted": [-1]}',
        '{"accepted": [true]}',
        '{"accepted": [null]}',
        "null",
        "1e400",
        "[" * 100_000,
        '{"correct": [1, 0',
        "accuracy 0.8",
        "\ud800",
    ],
)
def test_what_is_none_is_named_with_its_line(line: str) -> None:
    with pytest.raises(MalformedInput) as raised:
        read_correctness(f"10\n{line}", "held-out.jsonl")
    assert raised.value.where == "held-out.jsonl:2"


@pytest.mark.parametrize("text", ["", "\n\n", "# only remarks\n", "[]\n"])
def test_an_empty_file_says_so(text: str) -> None:
    with pytest.raises(UnreadableInput):
        read_correctness(text)


def test_too_many_tokens_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.models.correctness.MOST_TOKENS", 5)
    with pytest.raises(MalformedInput, match="more than 5 tokens"):
        read_correctness("111\n111\n")


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        found = read_correctness(text)
    except InputError:
        return
    assert all(run >= 0 for one in found for run in one)
