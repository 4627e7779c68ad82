"""The server_args line in both forms, whole and cut."""

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.formats.sglang.arguments import ArgumentForm, read_arguments

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=30),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True)


def as_object(values):
    return "ServerArgs(" + ", ".join(f"{name}={value!r}" for name, value in values.items()) + ")"


def same(left, right):
    """Equality under which a number that is none equals itself."""
    return json.dumps(left, sort_keys=True) == json.dumps(right, sort_keys=True)


@given(st.dictionaries(NAMES, VALUES, max_size=8))
def test_both_forms_give_what_was_printed(values):
    for text, form in ((as_object(values), ArgumentForm.OBJECT), (repr(values), ArgumentForm.DICTIONARY)):
        read = read_arguments(text)
        assert read.complete
        assert read.form is form
        assert list(read.values) == list(values)
        for name, value in values.items():
            # a nested nan or inf is no literal: such a value stays text
            assert same(read.values[name], value) or read.values[name] == repr(value)


@given(st.dictionaries(NAMES, VALUES, min_size=1, max_size=6), st.integers(0))
def test_a_cut_line_keeps_only_what_is_certain(values, cut):
    for text in (as_object(values), repr(values)):
        shortened = text[: cut % len(text)]
        read = read_arguments(shortened)
        if read is None:
            assert len(shortened) < len("ServerArgs(")
            continue
        assert not read.complete
        whole = read_arguments(text)
        assert list(read.values) == list(whole.values)[: len(read.values)]
        assert all(same(read.values[name], whole.values[name]) for name in read.values)


@given(st.text(max_size=200))
def test_any_text_is_read_or_not_and_never_crashes(text):
    for begin in ("ServerArgs(", "{", ""):
        read_arguments(begin + text)


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        ("ServerArgs(a='it''s', b=1)", "a", "its"),
        ('ServerArgs(a="it\'s, (ok)", b=1)', "a", "it's, (ok)"),
        (
            'ServerArgs(json_model_override_args=\'{"a": 1, "b": [2]}\', b=1)',
            "json_model_override_args",
            '{"a": 1, "b": [2]}',
        ),
        (
            "ServerArgs(lora_paths=[LoRARef(lora_id='x', lora_name=None)], b=1)",
            "lora_paths",
            "[LoRARef(lora_id='x', lora_name=None)]",
        ),
        ("ServerArgs(handler=<function f at 0x7f>, b=1)", "handler", "<function f at 0x7f>"),
        ("ServerArgs(mode=<Mode.A: 'x'>, b=1)", "mode", "<Mode.A: 'x'>"),
        ("ServerArgs(x=nan, b=1)", "x", math.nan),
        ("{'x': inf, 'b': 1}", "x", math.inf),
        ("{'cuda_graph_config': {'decode': {'bs': [1, 2]}}, 'b': 1}", "cuda_graph_config", {"decode": {"bs": [1, 2]}}),
        ("ServerArgs(s={'b', 'a'}, b=1)", "s", ["a", "b"]),
        ("ServerArgs(t=(1, 2), b=1)", "t", [1, 2]),
    ],
)
def test_awkward_values(text, name, value):
    read = read_arguments(text)
    assert read.complete
    assert same(read.values[name], value)
    assert read.values["b"] == 1


def test_other_text_is_no_argument_line():
    assert read_arguments("something else") is None


def test_hostile_nesting_stays_text():
    read = read_arguments("ServerArgs(a=" + "[" * 5_000 + "]" * 5_000 + ", b=1)")
    assert read.values["b"] == 1
    assert isinstance(read.values["a"], str)
