from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.domain.errors import MalformedInput
from collector.results.table import parse_table


def test_a_table_with_and_without_speculation() -> None:
    table = parse_table(
        "batch_size,steps,topk,num_draft_tokens,throughput,accept_length\n1,0,0,0,222.47,\n1,8,8,60,177.5,3.2\n",
        "bench.csv",
    )
    plain, drafting = table.rows
    assert plain.speculating is False
    assert (plain.concurrency, plain.throughput) == (1.0, 222.47)
    assert drafting.speculating is True
    assert (drafting.depth, drafting.topk, drafting.width) == (8, 8, 60)
    assert (drafting.throughput, drafting.acceptance_length) == (177.5, 3.2)
    assert drafting.evidence.place == "bench.csv:3"


def test_relative_ranges_by_the_names_of_rows() -> None:
    table = parse_table(
        "run,relative_throughput_low,relative_throughput_high\nspeculation_off,1.00,1.00\nspeculation_on,0.70,0.79\n",
        "b",
    )
    assert [row.speculating for row in table.rows] == [False, True]
    assert (table.rows[1].relative_low, table.rows[1].relative_high) == (0.70, 0.79)


def test_other_spellings_separators_and_percent() -> None:
    table = parse_table(
        "\ufeffConcurrency;Output Throughput (tok/s);Accept Len;pos_0;pos_1;colour\n8;1,234.5;2.1;70%;40%;red\n", "b"
    )
    (row,) = table.rows
    assert (row.concurrency, row.throughput, row.acceptance_length) == (8.0, 1234.5, 2.1)
    assert row.acceptance_rate_at == (0.70, 0.40)
    assert row.speculating is True
    assert table.unknown_columns == ("colour",)


@pytest.mark.parametrize(
    ("text", "where"), [("", "b"), ("colour,shape\nred,round\n", "b:1"), ("throughput\nfast\n", "b:2")]
)
def test_what_cannot_be_read_is_named(text: str, where: str) -> None:
    with pytest.raises(MalformedInput) as caught:
        parse_table(text, "b")
    assert caught.value.where == where


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(MalformedInput):
        parse_table(text, "b")
