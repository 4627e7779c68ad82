"""Evidence: matches marked, long lines cut around them, gaps counted."""

from hypothesis import given
from hypothesis import strategies as st

from dashboard.pages.findings import LONGEST_LINE, evidence_blocks, linked


def line(number, text, source="input.log"):
    return {"source": source, "line": number, "text": text}


def test_flag_with_its_value_is_marked():
    (block,) = evidence_blocks([line(3, "a=1, num_steps=5, b='x, y'")], [r"\bnum_steps=[^,]*"])
    assert block.lines[0].parts == (("a=1, ", False), ("num_steps=5", True), (", b='x, y'", False))


def test_long_line_is_cut_around_its_match():
    text = "x" * 3000 + "num_steps=5" + "y" * 3000
    (block,) = evidence_blocks([line(3, text)], ["num_steps=5"])
    parts = block.lines[0].parts
    assert ("num_steps=5", True) in parts
    shown = "".join(part for part, _ in parts)
    assert len(shown) <= LONGEST_LINE + 4
    assert shown.startswith("… ")
    assert shown.endswith(" …")


def test_lines_left_out_between_two_are_counted():
    (block,) = evidence_blocks([line(23, "b"), line(6, "a")], [])
    assert [(item.number, item.gap) for item in block.lines] == [(6, 0), (23, 16)]


def test_sources_without_lines_and_several_sources():
    blocks = evidence_blocks([line(None, "metric 1", "metrics"), line(1, "x", "launch.txt")], [])
    assert [block.source for block in blocks] == ["metrics", "launch.txt"]
    assert blocks[0].lines[0].number is None


@given(st.text(max_size=2000), st.lists(st.sampled_from(["a+", "b", r"\d+", "x.y"]), max_size=3))
def test_parts_are_the_line_or_a_stretch_of_it(text, patterns):
    (block,) = evidence_blocks([line(1, text)], patterns)
    shown = "".join(part for part, _ in block.lines[0].parts)
    assert shown.removeprefix("… ").removesuffix(" …") in text if len(text) > LONGEST_LINE else shown == text


def test_codes_of_rules_lead_to_their_finding_or_their_page():
    assert linked("see (PAY001) and ACC009.", {"PAY001"}) == [
        ("see (", ""),
        ("PAY001", "#PAY001"),
        (") and ", ""),
        ("ACC009", "/rules/ACC009"),
        (".", ""),
    ]
