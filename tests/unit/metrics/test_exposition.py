from __future__ import annotations

import gzip
import math
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_openmetrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families

from collector.domain.errors import MalformedInput
from collector.metrics.exposition import Sample, SeriesCache, parse_exposition
from tests.unit.theory.repeated import checks

GOLDEN = Path(__file__).parents[2] / "golden" / "metrics" / "sglang"

names = st.text("aZ0_:", max_size=8)
label_names = st.text("bY1_", min_size=1, max_size=5).map(lambda text: f"l{text}")
label_values = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
values = st.floats()


def canonical(samples):
    """Comparable samples: NaN equals itself, labels have no order."""
    return sorted(
        (name, tuple(sorted(labels.items())), "nan" if math.isnan(value) else repr(float(value)))
        for name, labels, value in samples
    )


def reference(text: str, parse=text_string_to_metric_families):
    return canonical((s.name, s.labels, s.value) for family in parse(text) for s in family.samples)


@st.composite
def registries(draw):
    registry = CollectorRegistry()
    for number in range(draw(st.integers(1, 3))):
        name = f"{draw(names)}_{number}x"
        name = f"_{name}" if name[0] == "0" else name
        labels = draw(st.lists(label_names, unique=True, max_size=3))
        kind = draw(st.sampled_from([Counter, Gauge, Histogram]))
        metric = kind(name, draw(st.text('a\\\n"#', max_size=8)), labels, registry=registry)
        for texts in draw(st.lists(st.tuples(*[label_values] * len(labels)), unique=True, min_size=1, max_size=3)):
            child = metric.labels(*texts) if labels else metric
            if kind is Counter:
                child.inc(draw(st.floats(0, allow_infinity=False)))
            elif kind is Gauge:
                child.set(draw(values))
            else:
                child.observe(draw(st.floats(0, 10)))
            if not labels:
                break
    return registry


@checks
@given(registries())
def test_what_the_reference_writes_is_read_as_the_reference_reads_it(registry):
    text = generate_latest(registry)
    cache = SeriesCache()
    first = parse_exposition(text, cache=cache)
    assert canonical(first) == reference(text.decode())
    assert parse_exposition(text, cache=cache) == first or any(math.isnan(sample.value) for sample in first)
    assert canonical(parse_exposition(text, cache=cache)) == canonical(first)


@checks
@given(st.lists(st.tuples(label_values, st.floats(0, 100), st.text("aß #{}=,", max_size=8)), max_size=4))
def test_open_metrics_text_with_exemplars_gives_the_same_samples(observations):
    registry = CollectorRegistry()
    counter = Counter("made", "Things made.", ["kind"], registry=registry)
    histogram = Histogram("took_seconds", "How long it took.", ["kind"], registry=registry)
    for kind, value, trace in observations:
        counter.labels(kind).inc(value, exemplar={"trace_id": trace})
        histogram.labels(kind).observe(value, exemplar={"trace_id": trace})
    text = generate_openmetrics(registry)
    assert canonical(parse_exposition(text)) == reference(text.decode(), parse_openmetrics)


@pytest.mark.parametrize("folder", sorted(GOLDEN.glob("0*")), ids=lambda folder: folder.name)
def test_recorded_bodies_are_read_as_the_reference_reads_them(folder):
    cache = SeriesCache()
    for file in sorted(folder.glob("metrics-*.prom.gz"))[::6]:
        text = gzip.decompress(file.read_bytes())
        assert canonical(parse_exposition(text, cache=cache)) == reference(text.decode())


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ('a{b="c"} 1', Sample("a", {"b": "c"}, 1.0)),
        ('a{b="c",} 1', Sample("a", {"b": "c"}, 1.0)),
        ('a { b = "c" , d="" }  +Inf', Sample("a", {"b": "c", "d": ""}, math.inf)),
        ("a 1 1395066363000", Sample("a", {}, 1.0)),
        ("a -1.5e-3 -3982045", Sample("a", {}, -0.0015)),
        ("a 1.5 1395066363.25", Sample("a", {}, 1.5)),
        ('a_bucket{le="1"} 5 # {trace_id="a # } b"} 0.67 1520879607.789', Sample("a_bucket", {"le": "1"}, 5.0)),
        ("a_total 3 4 # {} 0.5", Sample("a_total", {}, 3.0)),
        (r'a{b="x\\y\"z\n, {}= #"} 2', Sample("a", {"b": 'x\\y"z\n, {}= #'}, 2.0)),
        ("a\t7", Sample("a", {}, 7.0)),
    ],
)
def test_one_line(line, expected):
    cache = SeriesCache()
    for _ in range(2):  # parsed, then looked up or parsed again
        assert parse_exposition(f"{line}\n".encode(), cache=cache) == [expected]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("a 1\nb 2", "cut off"),
        ('a{b="c} 1\n', "labels"),
        ('a{b="c",b="d"} 1\n', "label b appears twice"),
        ("a 1\na 2\n", "same series"),
        ("a one\n", "no value"),
        ("a 1_000\n", "no value"),
        ("a\n", "no value"),
        ("a+1\n", "no value"),
        ("a 1 2 3\n", "more than a value"),
        ("1a 2\n", "no metric name"),
        ('{"a.b"} 2\n', "no metric name"),
        (r'a{b="\d"} 1' + "\n", "unknown escape"),
        ("a 1\r\n", "no value"),
        ("<html>\n", "no metric name"),
        ("a 1\n# EOF\nb 2\n", "# EOF"),
    ],
)
def test_what_is_not_of_the_format_is_refused_with_its_place(body, words):
    with pytest.raises(MalformedInput, match=words) as raised:
        parse_exposition(body.encode(), source="http://x/metrics")
    assert raised.value.where.startswith("http://x/metrics:")


def test_label_values_that_are_no_utf8_are_refused():
    with pytest.raises(MalformedInput, match="UTF-8"):
        parse_exposition(b'a{b="\xff"} 1\n')


@checks
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(body):
    with suppress(MalformedInput):
        assert all(sample.name for sample in parse_exposition(body))


def test_only_what_is_wanted_is_given_and_all_of_it_is_checked():
    body = b'a 1\nb{c="d"} 2\n'
    cache = SeriesCache()
    for _ in range(2):
        assert parse_exposition(body, wanted={"b"}, cache=cache) == [Sample("b", {"c": "d"}, 2.0)]
    with pytest.raises(MalformedInput):
        parse_exposition(b"a one\n" + body[4:], wanted={"b"}, cache=SeriesCache())


def test_a_cache_is_bounded_and_begins_anew():
    cache = SeriesCache(most=3)
    body = "".join(f'a{{b="{number}"}} {number}\n' for number in range(10)).encode()
    for _ in range(3):
        assert [sample.value for sample in parse_exposition(body, cache=cache)] == list(range(10))
    assert len(cache._series) <= 3
