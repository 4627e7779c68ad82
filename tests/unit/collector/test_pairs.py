"""Tails are read by their shape: new fields are no obstacle, torn ones never pass."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.formats.learned import FORMS_KEPT, LearnedForms
from collector.formats.pairs import PairTail
from collector.formats.sglang.lines import LINES

DECODE = (
    b", #running-req: 4, #token: 910, token usage: 0.01, accept len: 2.31, cuda graph: True, "
    b"gen throughput (token/s): 95.32, #queue-req: 12"
)


def tail() -> PairTail:
    return PairTail(LINES[0].items, LINES[0].required)


@given(
    st.permutations(["token usage: 0.50", "accept len: 2.25", "brand new: 7", "other (x/y): 1.5", "flag: True"]),
    st.sampled_from([", ", ". ", " [77], ", " [8]. "]),
    st.sampled_from(["", ",", ", "]),
)
def test_order_new_fields_and_punctuation_do_not_matter(fields, stop, end):
    items = ["#running-req: 3", *fields, "gen throughput (token/s): 12.50", "#queue-req: 2"]
    pairs = tail().read((stop + ", ".join(items) + end).encode())
    assert pairs.values == {
        "running_requests": 3,
        "kv_cache_usage": 0.5,
        "printed_length": 2.25,
        "generation_throughput": 12.5,
        "waiting_requests": 2,
    }
    assert pairs.form.stop == stop.strip()[-1:].encode()
    assert pairs.form.trailing_comma == bool(end)


@given(st.integers(0, len(DECODE) - 4))
def test_a_cut_tail_is_torn(length):
    reader = tail()
    assert reader.read(DECODE) is not None
    assert reader.read(DECODE[:length]) is None


@given(
    st.integers(1, len(DECODE) - 1), st.sampled_from([b"[2026-01-01 00:00:00] INFO: ", b"x", b"\x00", b", ", b"1.2.3"])
)
def test_what_another_writer_left_in_it_never_gives_other_figures(place, noise):
    whole = tail().read(DECODE).values
    pairs = tail().read(DECODE[:place] + noise + DECODE[place:])
    # a digit or separator may still fit the form; then every key must be there and readable
    if pairs is not None and noise != b"1.2.3":
        assert pairs.values.keys() <= whole.keys()


@pytest.mark.parametrize(
    "text",
    [
        b", #running-req: 1, #running-req: 1, gen throughput (token/s): 1.00, #queue-req: 0",
        b", #running-req: , gen throughput (token/s): 1.00, #queue-req: 0",
        b", #running-req: 1, gen throughput (token/s): 1.0.0, #queue-req: 0",
        b", #running-req: 1, #queue-req: 0",
        b"#running-req: 1, gen throughput (token/s): 1.00, #queue-req: 0",
        b"",
        b", " + b"a: 1, " * 2_000,
    ],
)
def test_torn_tails(text):
    reader = tail()
    reader.read(b", #running-req: 1, gen throughput (token/s): 100, #queue-req: 0")
    assert reader.read(text) is None


def test_not_a_number_is_kept_as_printed():
    values = tail().read(b", #running-req: 1, accept len: nan, gen throughput (token/s): inf, #queue-req: 0").values
    assert values["printed_length"] != values["printed_length"]
    assert values["generation_throughput"] == float("inf")


@pytest.mark.parametrize("torn", [False, True])
def test_many_shapes_do_not_fill_the_memory(torn):
    forms = LearnedForms(lambda text: None if torn else text)
    texts = ["".join(chr(97 + int(digit)) for digit in str(number)).encode() for number in range(6_000)]
    for text in texts:
        assert forms.of(text) == (None if torn else text)
    assert len(forms) == FORMS_KEPT


def test_a_torn_tail_does_not_spoil_the_whole_ones_that_look_alike():
    reader = PairTail({b"#queue-req": "waiting_requests"}, (b"#queue-req",))
    assert reader.read(b", #queue-req: ") is None
    assert reader.read(b", #queue-req: 12").values == {"waiting_requests": 12.0}
