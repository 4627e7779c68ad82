"""Run records as hypothesis makes them: everything an engine may print that a database must give back."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from collector.domain.arguments import UNSEEN, Argument, Arguments, LaunchCommand
from collector.domain.drafts import Measure, ModelConfig, Validation
from collector.domain.evidence import Evidence
from collector.domain.results import BenchmarkRow
from collector.domain.runs import Event, RunRecord
from collector.domain.versions import Release, ReleaseRange
from collector.domain.windows import Origin, PrefillWindow, Window

# NUL and lone surrogates are replaced on storing (tested apart).
TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=20)
WORD = st.text("abcdefghij_-.", min_size=1, max_size=12)
# An instant with the microseconds that times in the database have.
INSTANT = st.integers(0, 4_000_000_000_000).map(lambda milliseconds: milliseconds / 1000)
# Adding 0.0 turns -0.0 into 0.0; SQLite knows no other.
FIGURE = st.none() | st.floats().map(lambda value: value + 0.0)
VALUE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.floats().map(lambda value: value + 0.0) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
RELEASE = st.builds(
    Release,
    st.lists(st.integers(0, 99), min_size=2, max_size=4).map(tuple),
    st.just(""),
)
EVIDENCE = st.builds(Evidence, TEXT, st.none() | st.integers(1, 2**40), TEXT)
CONFIG = st.builds(ModelConfig, TEXT, st.dictionaries(TEXT, VALUE, max_size=4))
VALIDATION = st.builds(
    Validation,
    accuracy=st.floats(0, 1),
    accuracy_at=st.lists(st.floats(0, 1), max_size=5).map(tuple),
    measure=st.sampled_from(Measure),
    measure_stated=st.booleans(),
    trainer=TEXT,
    temperature=st.none() | st.floats(0, 2),
    draft_vocabulary_coverage=st.none() | st.floats(0, 1),
    evidence=st.lists(EVIDENCE, max_size=2).map(tuple),
)
RESULT = st.builds(
    BenchmarkRow,
    EVIDENCE,
    speculating=st.none() | st.booleans(),
    throughput=FIGURE,
    depth=st.none() | st.integers(0, 64),
    acceptance_rate_at=st.lists(st.floats(0, 1), max_size=3).map(tuple),
)
LAUNCH = st.builds(
    LaunchCommand,
    engine=WORD,
    text=TEXT,
    requested=st.dictionaries(WORD, VALUE, max_size=3),
    environment=st.dictionaries(WORD, TEXT, max_size=2),
    unknown=st.lists(WORD, max_size=2).map(tuple),
    source=TEXT,
    line=st.none() | st.integers(1, 1000),
)


@st.composite
def arguments(draw: st.DrawFn) -> Arguments:
    seen = st.just(UNSEEN) | VALUE
    items = draw(
        st.lists(
            st.builds(Argument, WORD, seen, seen, seen, st.none() | EVIDENCE, st.none() | EVIDENCE),
            max_size=6,
            unique_by=lambda item: item.name,
        )
    )
    return Arguments({item.name: item for item in items})


@st.composite
def windows(draw: st.DrawFn, max_size: int = 12) -> list[Window]:
    made = draw(
        st.lists(
            st.builds(
                Window,
                position=st.integers(0, 2**50),
                line=st.integers(0, 2**40),
                at=st.floats(0, 4e9),
                unit=TEXT,
                seconds=FIGURE,
                running_requests=FIGURE,
                waiting_requests=FIGURE,
                verify_steps=FIGURE,
                accepted_tokens=FIGURE,
                drafted_tokens=FIGURE,
                generated_tokens=FIGURE,
                generation_throughput=FIGURE,
                printed_length=FIGURE,
                printed_rate=FIGURE,
                tokens_in_use=FIGURE,
                kv_cache_usage=FIGURE,
                graph=st.none() | st.booleans(),
                prefills=st.integers(0, 2**31 - 1),
                accepted_at=st.none() | st.lists(st.integers(0, 10**9).map(float) | st.floats(), max_size=8).map(tuple),
                origin=st.sampled_from(Origin),
            ),
            max_size=max_size,
            unique_by=lambda window: window.position,
        )
    )
    return sorted(made, key=lambda window: window.position)


PREFILLS = st.lists(
    st.builds(
        PrefillWindow,
        position=st.integers(0, 2**50),
        line=st.integers(0, 2**40),
        at=st.floats(0, 4e9),
        unit=TEXT,
        new_tokens=st.floats(0, 1e12),
        cached_tokens=st.floats(0, 1e12),
    ),
    max_size=4,
    unique_by=lambda prefill: prefill.position,
).map(lambda made: sorted(made, key=lambda prefill: prefill.position))


@st.composite
def records(draw: st.DrawFn) -> RunRecord:
    first, last = draw(st.none() | RELEASE), draw(st.none() | RELEASE)
    record = draw(
        st.builds(
            RunRecord,
            engine=st.sampled_from(["sglang", "vllm"]),
            source=TEXT,
            engine_version=st.none() | RELEASE,
            started_at=st.none() | INSTANT,
            ended_at=st.none() | INSTANT,
            host=st.sampled_from(["", "0.0.0.0", "node-7", "10.1.2.3"]),
            port=st.none() | st.integers(1, 65535),
            arguments=arguments(),
            launch=st.none() | LAUNCH,
            events=st.lists(
                st.builds(Event, WORD, EVIDENCE, st.none() | INSTANT, st.dictionaries(WORD, VALUE, max_size=3)),
                max_size=4,
            ),
            windows=windows(),
            prefills=PREFILLS,
            results=st.lists(RESULT, max_size=2),
            draft_config=st.none() | CONFIG,
            target_config=st.none() | CONFIG,
            validation=st.none() | VALIDATION,
            temperature=st.none() | st.floats(0, 2),
            labels=st.dictionaries(WORD, TEXT, max_size=3),
        )
    )
    # The same event twice is one event.
    events = list({repr(event): event for event in record.events}.values())
    return replace(record, release_range=ReleaseRange(first, last), events=events)
