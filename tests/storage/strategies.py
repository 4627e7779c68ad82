"""Run records as hypothesis makes them: everything an engine may print that a database must give back.

Strategies follow from the types, so that a field that the domain gains is tested without a change here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from hypothesis import strategies as st

from collector.domain.arguments import UNSEEN, Argument, Arguments, LaunchCommand
from collector.domain.drafts import ModelConfig, Validation
from collector.domain.evidence import Evidence
from collector.domain.requests import RequestResult
from collector.domain.results import BenchmarkRow, Latency
from collector.domain.runs import Event, RunRecord
from collector.domain.versions import Release, ReleaseRange
from collector.domain.windows import Origin, PrefillWindow, Window

# NUL and lone surrogates are replaced on storing (tested apart).
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
WORD = st.text("abcdefghij_-.", min_size=1, max_size=12)
# An instant with the milliseconds that logs have.
INSTANT = st.integers(0, 4_000_000_000_000).map(lambda milliseconds: milliseconds / 1000)
# Adding 0.0 turns -0.0 into 0.0; SQLite knows no other.
NUMBER = st.floats().map(lambda value: value + 0.0)
FIGURE = st.none() | NUMBER
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | NUMBER | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
PLAIN = {str: TEXT, int: st.integers(0, 2**31 - 1), float: st.floats(-1e9, 1e9), bool: st.booleans()}


def of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type: dataclasses field by field, containers with up to two items."""
    origin, inner = get_origin(kind), get_args(kind)
    if kind in PLAIN:
        return PLAIN[kind]
    if is_dataclass(kind):
        hints = get_type_hints(kind)
        return st.builds(kind, **{field.name: of(hints[field.name]) for field in fields(kind)})
    if isinstance(kind, type) and issubclass(kind, Enum):
        return st.sampled_from(kind)
    if origin in (Union, UnionType) and len(inner) == 2:
        return st.none() | of(inner[0])
    if origin is tuple and inner[1:] == (Ellipsis,):
        return st.lists(of(inner[0]), max_size=2).map(tuple)
    if origin is not None and isinstance(origin, type) and issubclass(origin, Mapping):
        return st.dictionaries(TEXT, of(inner[1]), max_size=2)
    return VALUE


RELEASE = st.builds(Release, st.lists(st.integers(0, 99), min_size=2, max_size=4).map(tuple), st.just(""))
EVIDENCE = of(Evidence)


@st.composite
def arguments(draw: st.DrawFn) -> Arguments:
    seen = st.just(UNSEEN) | VALUE
    proof = st.none() | EVIDENCE
    one = st.builds(Argument, WORD, seen, seen, seen, proof, proof)
    items = draw(st.lists(one, max_size=6, unique_by=lambda item: item.name))
    return Arguments({item.name: item for item in items})


WINDOW = st.builds(
    Window,
    position=st.integers(0, 2**50),
    line=st.integers(0, 2**40),
    at=st.floats(0, 4e9),
    unit=TEXT,
    graph=st.none() | st.booleans(),
    prefills=st.integers(0, 2**31 - 1),
    accepted_at=st.none() | st.lists(st.integers(0, 10**9).map(float) | NUMBER, max_size=8).map(tuple),
    origin=st.sampled_from(Origin),
    **{name: FIGURE for name, hint in get_type_hints(Window).items() if hint == float | None},
)
PREFILL = st.builds(
    PrefillWindow,
    position=st.integers(0, 2**50),
    line=st.integers(0, 2**40),
    at=st.floats(0, 4e9),
    unit=TEXT,
    new_tokens=st.floats(0, 1e12),
    cached_tokens=st.floats(0, 1e12),
)


def in_order(one: st.SearchStrategy[Any], max_size: int) -> st.SearchStrategy[list[Any]]:
    """Samples of one source: each has a position of its own, and they come in the order of positions."""
    several = st.lists(one, max_size=max_size, unique_by=lambda sample: sample.position)
    return several.map(lambda samples: sorted(samples, key=lambda sample: sample.position))


def windows() -> st.SearchStrategy[list[Window]]:
    return in_order(WINDOW, 12)


@st.composite
def results(draw: st.DrawFn) -> RequestResult:
    """A request result whose counts agree, any of them left out."""
    count = st.integers(0, 2**30)
    histogram = tuple(draw(st.lists(st.integers(0, 10**6), min_size=1, max_size=8)))
    accepted = sum(place * steps for place, steps in enumerate(histogram))
    told = {
        "verify_steps": sum(histogram),
        "accepted_tokens": accepted,
        "drafted_tokens": accepted + draw(count),
        "histogram": histogram,
        "at": draw(INSTANT),
        "temperature": draw(st.floats(0, 2)),
        "depth": len(histogram) - 1,
        **{name: draw(count) for name in ("prompt_tokens", "cached_tokens", "output_tokens")},
        **{name: draw(st.floats(0, 1e6)) for name in ("latency_seconds", "first_token_seconds", "token_seconds")},
    }
    stated = {name: value for name, value in told.items() if draw(st.booleans())}
    key = draw(st.text("0123456789abcdef", min_size=32, max_size=32))
    return RequestResult("sglang", key, draw(st.integers(1, 2**40)), route=draw(TEXT), **stated)


RECORD = {
    "engine": st.sampled_from(["sglang", "vllm"]),
    "source": TEXT,
    "engine_version": st.none() | RELEASE,
    "release_range": st.builds(ReleaseRange, st.none() | RELEASE, st.none() | RELEASE),
    "started_at": st.none() | INSTANT,
    "ended_at": st.none() | INSTANT,
    "host": st.sampled_from(["", "0.0.0.0", "node-7", "10.1.2.3"]),
    "port": st.none() | st.integers(1, 65535),
    "arguments": arguments(),
    "launch": st.none() | of(LaunchCommand),
    "events": st.lists(
        st.builds(Event, WORD, EVIDENCE, st.none() | INSTANT, st.dictionaries(WORD, VALUE, max_size=3)), max_size=4
    ),
    "windows": windows(),
    "prefills": in_order(PREFILL, 4),
    "results": st.lists(of(BenchmarkRow), max_size=2),
    "requests": st.lists(results(), max_size=3, unique_by=(lambda item: item.key, lambda item: item.line)).map(
        lambda several: sorted(several, key=lambda item: item.line)
    ),
    "requests_asked": st.booleans(),
    "latencies": st.dictionaries(WORD, of(Latency), max_size=2),
    "draft_config": st.none() | of(ModelConfig),
    "target_config": st.none() | of(ModelConfig),
    "validation": st.none() | of(Validation),
    "temperature": st.none() | st.floats(0, 2),
    "device": st.none() | TEXT,
    "labels": st.dictionaries(WORD, TEXT, max_size=3),
}


@st.composite
def records(draw: st.DrawFn) -> RunRecord:
    record = draw(st.builds(RunRecord, **RECORD))
    # The same event twice is one event, and a run's requests are of its engine.
    events = list({repr(event): event for event in record.events}.values())
    return replace(record, events=events, requests=[replace(item, engine=record.engine) for item in record.requests])
