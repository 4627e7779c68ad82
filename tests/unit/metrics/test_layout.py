"""Pages read by place have the figures that the reference reads, whatever happened to them since."""

from __future__ import annotations

import gzip
import math
import re
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from prometheus_client.parser import text_string_to_metric_families

from collector.domain.errors import MalformedInput
from collector.metrics import engine_of
from collector.metrics.exposition import parse_exposition
from collector.metrics.layout import STRICTLY_EVERY, Layouts, PageReader
from tests.unit.theory.repeated import checks

METRICS = Path(__file__).parents[2] / "golden" / "metrics"
PAGES = [
    gzip.decompress(max(folder.glob("metrics-*.prom.gz")).read_bytes())
    for folder in [*sorted((METRICS / "sglang").glob("0*"))[::3], *sorted(METRICS.glob("vllm/*"))[:2]]
]
VALUES = [b"0", b"7.0", b"-1.5e-3", b"NaN", b"+Inf", b"Infinity", b"1e999", b"123456789.25"]
ODD_VALUES = [
    b"1_0",
    b"",
    b" 3",
    b"0x10",
    b"1.0 1395066363000",
    b'5 # {trace_id="a"} 0.67 1520879607.789',
    b"7\r",
    b"one",
]


def canonical(samples):
    return [(s.name, tuple(sorted(s.labels.items())), "nan" if math.isnan(s.value) else s.value) for s in samples]


def reference(body: bytes, wanted: frozenset[str]):
    families = text_string_to_metric_families(body.decode())
    return sorted(canonical(s for family in families for s in family.samples if s.name in wanted), key=repr)


def strict(body: bytes, wanted: frozenset[str]):
    try:
        return canonical(parse_exposition(body, wanted=wanted))
    except MalformedInput:
        return None


@st.composite
def mutated(draw):
    """A recorded page, and the same one with lines changed, left out, repeated, exchanged, added or cut off."""
    page = draw(st.sampled_from(PAGES))
    lines = page.split(b"\n")[:-1]
    wanted = engine_of(page).sample_names
    numbers = [n for n, line in enumerate(lines) if re.split(rb"[{ ]", line)[0].decode() in wanted]
    number = st.one_of(st.sampled_from(numbers), st.integers(0, len(lines) - 1))
    for _ in range(draw(st.integers(0, 4))):
        at = min(draw(number), len(lines) - 1)
        kind = draw(st.sampled_from(["value", "value", "odd", "remove", "repeat", "swap", "rename", "label", "insert"]))
        line = lines[at]
        if kind in {"value", "odd"} and line[:1] != b"#":
            text = draw(st.sampled_from(VALUES if kind == "value" else ODD_VALUES))
            lines[at] = line[: line.rfind(b" ") + 1] + text
        elif kind == "remove":
            del lines[at]
        elif kind == "repeat":
            lines.insert(at, line)
        elif kind == "swap":
            other = min(draw(number), len(lines) - 1)
            lines[at], lines[other] = lines[other], line
        elif kind == "rename":
            lines[at] = line.replace(b"_", b"_x", 1)
        elif kind == "label":
            lines[at] = line.replace(b'="', b'="new', 1)
        else:
            lines.insert(at, draw(st.sampled_from([b"", b"# HELP other", b"other 1", line.replace(b'="', b'="b', 1)])))
    text = b"\n".join(lines) + b"\n"
    return page, text[: draw(st.one_of(st.just(len(text)), st.integers(0, len(text))))]


@checks
@given(mutated())
def test_a_page_that_changed_has_the_figures_that_are_read_line_by_line(pages):
    page, changed = pages
    wanted = engine_of(page).sample_names
    reader = PageReader(Layouts(wanted))
    assert canonical(reader.read(page, "")) == strict(page, wanted)
    expected = strict(changed, wanted)
    try:
        found = canonical(reader.read(changed, ""))
    except MalformedInput:
        assert expected is None
        return
    if expected is None:  # refused for a line that is not wanted, or for one that repeats a wanted one elsewhere
        assume(False)
    assert found == expected
    try:
        assert sorted(found, key=repr) == reference(changed, wanted)
    except (ValueError, IndexError, KeyError):  # the reference is lenient in some places and fails in others
        return


@pytest.mark.parametrize("page", PAGES, ids=range(len(PAGES)))
def test_recorded_pages_are_read_by_place(page):
    wanted = engine_of(page).sample_names
    reader = PageReader(Layouts(wanted))
    first = reader.read(page, "")
    again = reader.read(page, "")
    assert again.table is first.table or again == first
    assert reader._layout is not None
    assert sorted(canonical(again), key=repr) == reference(page, wanted)


def test_replicas_that_write_the_same_page_share_their_series():
    layouts = Layouts(engine_of(PAGES[0]).sample_names)
    one, other = PageReader(layouts), PageReader(layouts)
    first = [one.read(PAGES[0], ""), other.read(PAGES[0], "")]
    assert first[0].table is first[1].table


def test_a_family_that_appears_is_read_at_once():
    page = PAGES[0]
    wanted = engine_of(page).sample_names
    reader = PageReader(Layouts(wanted))
    reader.read(page, "")
    more = page + b'# TYPE sglang:num_queue_reqs gauge\nsglang:spec_verify_calls_total{a="b"} 3.0\n'
    assert reader.read(more, "")[-1].value == 3.0


def test_now_and_then_a_page_is_read_line_by_line():
    page = b'# TYPE other gauge\nother{a="1"} 1\nother{a="2"} 2\nother{a="3"} 3\n' + PAGES[0]
    reader = PageReader(Layouts(engine_of(page).sample_names))
    reader.read(page, "")
    broken = page.replace(b'other{a="2"} 2', b"no line of metrics")
    for _ in range(STRICTLY_EVERY):
        reader.read(broken, "")  # a family that nobody wants is not looked at
    with pytest.raises(MalformedInput, match="cannot be read"):
        reader.read(broken, "")
