"""Reading what was rendered gives the same arguments."""

from __future__ import annotations

import gzip
import json
import math
import shlex
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.domain.arguments import LaunchCommand
from collector.domain.errors import InputError
from collector.domain.redaction import is_secret_name, redact_mapping
from collector.launch import find_launches, parse_launch, render
from collector.launch.dialects import dialect_of, dialects
from collector.launch.options import Kind, Option, field_of, guessed
from collector.launch.render import _spellings, quoted
from collector.launch.shell import split_words

DATA = Path(__file__).resolve().parents[2] / "data" / "oracle"
TEXTS = st.text(st.characters(codec="utf-8", exclude_characters="\0\r\n"), max_size=12)
"""Values; a line end inside a value would be shell text of its own, which no launch has."""
JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)


def is_value(text: str) -> bool:
    """Whether a word after an option is its value, not an option of its own."""
    return not text.startswith("-")


def scalars(option: Option) -> st.SearchStrategy:
    if option.kind is Kind.WHOLE:
        return st.integers(-(2**40), 2**40)
    if option.kind is Kind.NUMBER:
        return st.floats(allow_nan=False)
    if option.kind is Kind.JSON:
        return JSON_VALUES
    return TEXTS


def values(option: Option) -> st.SearchStrategy:
    if option.is_switch:
        return st.booleans()
    one = scalars(option)
    if option.arity == "+":
        return st.lists(one.filter(lambda value: is_value(str(value))), min_size=1, max_size=4)
    if option.arity == "*":
        return st.lists(one.filter(lambda value: is_value(str(value))), max_size=4)
    return one | st.just(True) if option.arity == "?" else one


def plain(engine: str) -> dict[str, Option]:
    """Options by field, those left out that the reader spreads over several fields."""
    return {
        name: option for name, (_, option) in _spellings(engine).items() if "." not in name and not is_secret_name(name)
    }


@st.composite
def requests(draw: st.DrawFn, engine: str) -> dict:
    options = plain(engine)
    names = draw(st.lists(st.sampled_from(sorted(options)), max_size=6, unique=True))
    asked = {name: draw(values(options[name])) for name in names}
    # What the reader makes of the values: an engine has its own form of some.
    settled = dict(dialect_of(engine).settled(asked))
    known = {name: value for name, value in settled.items() if name.partition(".")[0] in options}
    return {name: value for name, value in redact_mapping(known).items() if known[name] == value}


@pytest.mark.parametrize("engine", [dialect.engine for dialect in dialects()])
@given(st.data())
def test_reading_what_was_rendered_is_the_identity(engine, data):
    asked = data.draw(requests(engine))
    launch = LaunchCommand(engine, "", asked, program=dialect_of(engine).program)
    again = parse_launch(render(launch))
    assert again.requested == asked
    assert (again.engine, again.environment, again.unknown) == (engine, {}, ())
    assert render(again) == render(launch)


@pytest.mark.parametrize(
    ("engine", "asked"),
    [
        ("sglang", {"attention_backend": "llama-server"}),
        ("llamacpp", {"alias": "trtllm-serve"}),
        ("vllm", {"watermark_config": "["}),
    ],
)
def test_values_that_look_like_something_else_come_back(engine, asked):
    launch = LaunchCommand(engine, "", asked, program=dialect_of(engine).program)
    again = parse_launch(render(launch))
    assert (again.engine, again.requested) == (engine, asked)


@given(st.dictionaries(st.from_regex(r"[A-Z]{1,3}_[a-z0-9]{1,4}", fullmatch=True), TEXTS, max_size=3))
def test_variables_come_back(environment):
    shown = {name: value for name, value in environment.items() if redact_mapping({name: value}) == {name: value}}
    launch = LaunchCommand("sglang", "", {"model_path": "m"}, shown, program=("sglang", "serve"))
    assert parse_launch(render(launch)).environment == shown


@given(TEXTS)
def test_a_quoted_word_comes_back(text):
    assert [word.text for word in split_words(f"a={quoted(text)} {quoted(text)}", "t") if not word.operator] == [
        f"a={text}",
        text,
    ]


@given(st.from_regex(r"--[a-z]{3}-x[a-z_]{0,5}", fullmatch=True), TEXTS.filter(lambda text: text and is_value(text)))
def test_options_that_are_not_known_come_back(name, text):
    launch = parse_launch(f"sglang serve m {name} {shlex.quote(text)} --tp 2")
    expected = redact_mapping({field_of(name): guessed(text)})
    assert launch.requested == {"model_path": "m", **expected, "tp_size": 2}
    assert parse_launch(render(launch)).requested == launch.requested


@pytest.mark.parametrize("name", ["sglang", "sglang-wide"])
def test_every_launch_the_engines_were_given_comes_back(name):
    for entry in json.loads(gzip.decompress((DATA / f"{name}.json.gz").read_bytes())):
        asked = {flag: value for flag, value in redact_mapping(entry["requested"]).items() if value is not None}
        launch = LaunchCommand(
            "sglang", "", asked, entry["environment"], program=("python", "-m", "sglang.launch_server")
        )
        again = parse_launch(render(launch))
        assert again.environment == entry["environment"]
        for flag, value in asked.items():
            same = again.requested[flag]
            assert same == value or (isinstance(value, float) and math.isclose(same, value)), (flag, value, same)


@pytest.mark.parametrize(
    ("command", "rendered"),
    [
        ("A=1 B='x y' sglang serve --tp 2 --model m", "A=1 B='x y' sglang serve m --tp-size 2"),
        ("export A=1\nsglang serve $MODEL --port ${PORT:-1}", 'A=1 sglang serve $MODEL --port "${PORT:-1}"'),
        ("sglang serve m --api-key abcdefgh", "sglang serve m --api-key '***'"),
        ("docker run -v ~/x:/y img sglang serve m > log 2>&1 &", "docker run -v ~/x:/y img sglang serve m"),
        (
            "vllm serve m --speculative-config.method=ngram --port 1 --speculative-config.num_speculative_tokens 3",
            """vllm serve m --speculative-config '{"method": "ngram", "num_speculative_tokens": 3}' --port 1""",
        ),
        (
            "sglang serve m --served-model-name='>x' --tp 2 >> log",
            "sglang serve m --served-model-name '>x' --tp-size 2",
        ),
    ],
)
def test_what_is_rendered(command, rendered):
    launch = parse_launch(command)
    assert render(launch) == rendered
    assert parse_launch(render(launch)).requested == launch.requested


def test_a_long_command_has_one_option_a_line():
    launch = parse_launch("sglang serve m --served-model-name " + "x" * 80)
    assert render(launch) == "sglang serve \\\n  m \\\n  --served-model-name " + "x" * 80


@given(
    st.text(max_size=60)
    | st.lists(
        st.sampled_from(
            ["services:", "kind: Pod", "\n", " ", "- ", "command:", "args:", "[Service]", "ExecStart=", "PID CMD", "1 ",
             "sglang serve", "vllm serve", "--tp", "'", '"', "$(", "|", ">", "[", "]", "{", "}", "\\", "\0", "image:",
             "vllm/vllm-openai", "&a ", "*a", "<<: ", "a: ", "launch_command", "---\n", "docker run "]
        ),
        max_size=14,
    ).map("".join)
)  # fmt: skip
def test_any_text_is_read_or_refused_in_words(text):
    where = "t"
    launches = ()
    try:
        launches = find_launches(text, "t")
    except InputError as error:
        where = error.where
    assert where.startswith("t")
    for launch in launches:
        own = replace(launch, program=())  # what stood before the options may be any text
        assert parse_launch(render(own)).engine == launch.engine
