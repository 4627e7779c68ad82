"""Launch commands are read as a shell and argparse would read them."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.domain.errors import MalformedInput, UnreadableInput
from collector.launch import parse_launch
from collector.launch.commands import dialects
from collector.launch.options import Kind
from collector.launch.shell import split_words

SERVER = "python -m sglang.launch_server --model-path m "


def words(text):
    return [word.text for word in split_words(text, "t") if not word.operator]


@given(st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=12), max_size=6))
def test_quoted_words_come_back(texts):
    assert words(" ".join(shlex.quote(text) for text in texts)) == texts


@given(st.text(max_size=80))
def test_any_text_is_split_or_refused_with_the_place(text):
    where = "launch.txt:1"
    try:
        split_words(text, "launch.txt")
    except MalformedInput as error:
        where = error.where
    assert where.startswith("launch.txt:")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a \\\n  b \\\r\n c", ["a", "b", "c"]),
        ("a # rest 'of line\nb", ["a", "b"]),
        ("a#b c", ["a#b", "c"]),
        ("'a b'\"c $D\"e\\ f", ["a bc $De f"]),
        ('"a \\"b\\" \\n"', ['a "b" \\n']),
        ("--x=${A:-1 2} $(date +%s)", ["--x=${A:-1 2}", "$(date +%s)"]),
        ("a && b; c | d & e", ["a", "b", "c", "d", "e"]),
    ],
)
def test_shell_text(text, expected):
    assert words(text) == expected


@pytest.mark.parametrize(
    ("command", "requested"),
    [
        ("--tp 8 --dp-size=2", {"tp_size": 8, "dp_size": 2}),
        ("--tensor-parallel-size 4", {"tp_size": 4}),
        ("--speculative-algo EAGLE3", {"speculative_algorithm": "EAGLE3"}),
        ("--speculative_num_steps 3", {"speculative_num_steps": 3}),
        ("--chunked-prefill-size -1", {"chunked_prefill_size": -1}),
        ("--mem-fraction-static .85", {"mem_fraction_static": 0.85}),
        ("--trust-remote-code --enable-metrics", {"trust_remote_code": True, "enable_metrics": True}),
        ("--cuda-graph-bs 1 2 4 --port 1", {"cuda_graph_bs": [1, 2, 4], "port": 1}),
        ("--no-enable-fused-qk-norm-rope", {"enable_fused_qk_norm_rope": False}),
        ("--tp $TP --port ${PORT}", {"tp_size": "$TP", "port": "${PORT}"}),
        ("--port 1 --port 2", {"port": 2}),
        ("--json-model-override-args '{\"a\": 1}'", {"json_model_override_args": '{"a": 1}'}),
        ("--preferred-sampling-params '{\"temperature\": 0.5}'", {"preferred_sampling_params": {"temperature": 0.5}}),
        ("--brand-new 5 --other x --switch --last", {"brand_new": 5, "other": "x", "switch": True, "last": True}),
    ],
)
def test_options(command, requested):
    launch = parse_launch(SERVER + command)
    assert launch.requested == {"model_path": "m", **requested}


@pytest.mark.parametrize(
    ("text", "environment"),
    [
        ("SGLANG_ENABLE_SPEC_V2=True python3 -m sglang.launch_server --model m", {"SGLANG_ENABLE_SPEC_V2": "True"}),
        ("env A=1 B='x y' nohup python -m sglang.launch_server --model m > log.txt 2>&1 &", {"A": "1", "B": "x y"}),
        ("export A=1\nB=2\nexec /opt/venv/bin/python3.11 -m sglang.launch_server --model m", {"A": "1", "B": "2"}),
        ("cd /x && A=1 sglang serve m", {"A": "1"}),
        ("sglang serve --model m | tee log", {}),
        ("$ python -m sglang.launch_server --model m", {}),
        ("user@host:~/x$ python -m sglang.launch_server --model m", {}),
        ("numactl --cpunodebind=0 python /sgl/python/sglang/launch_server.py --model m", {}),
        ("docker run --gpus all -e A=1 --rm image:tag python3 -m sglang.launch_server --model m", {"A": "1"}),
        ("bash -c 'A=1 python -m sglang.launch_server --model m'", {"A": "1"}),
        ("#!/bin/bash\nset -e\nMODEL=/models/a\npython -m sglang.launch_server --model m\n", {"MODEL": "/models/a"}),
    ],
)
def test_where_the_command_begins(text, environment):
    launch = parse_launch(text)
    assert launch.engine == "sglang"
    assert launch.requested == {"model_path": "m"}
    assert launch.environment == environment


def test_unknown_options_are_kept_and_named():
    launch = parse_launch(SERVER + "--brand-new 5")
    assert launch.unknown == ("--brand-new",)


def test_secrets_are_masked_everywhere():
    launch = parse_launch(
        "HF_TOKEN=hf_secret python -m sglang.launch_server --model-path https://u:pass@h/m --api-key sk-secret"
    )
    assert launch.requested["api_key"] == "***"
    assert launch.environment == {"HF_TOKEN": "***"}
    assert not {"hf_secret", "sk-secret", "pass@"} & set(repr(launch).replace("'", " ").split())
    assert "secret" not in repr(launch)
    assert "pass@" not in launch.evidence.text


def test_the_place_of_the_command():
    launch = parse_launch("# how we start it\n\npython -m sglang.launch_server \\\n  --model m\n", "start.sh")
    assert launch.evidence.place == "start.sh:3"


@pytest.mark.parametrize(
    ("text", "what", "where"),
    [
        (SERVER + "\\\n --host '0.0.0.0", "a quote is not closed", "launch.txt:2"),
        (SERVER + "--tp", "--tp has no value", "launch.txt:1"),
        (SERVER + "\\\n --tp \\\n --port 1", "--tp has no value", "launch.txt:2"),
    ],
)
def test_broken_commands_name_the_place(text, what, where):
    with pytest.raises(MalformedInput) as error:
        parse_launch(text)
    assert (error.value.what, error.value.where) == (what, where)


@pytest.mark.parametrize("text", ["", "echo hello", "python -m http.server", "pip install sglang"])
def test_text_without_a_launch(text):
    with pytest.raises(UnreadableInput) as error:
        parse_launch(text)
    assert "SGLang" in error.value.hint


def test_option_tables_are_sound():
    for dialect in dialects():
        for spelling, option in dialect.options().items():
            assert spelling.startswith("-")
            assert all(part.isidentifier() for part in option.field.split("."))
            assert option.kind in Kind
            assert option.arity in ("", "+", "*", "?", "a")
