"""Launch commands in systemd and Podman units."""

from __future__ import annotations

import pytest

from collector.domain.errors import MalformedInput
from collector.launch import find_launches, parse_launch

UNIT = """\
[Unit]
Description=serves

[Service]
Environment="NOTE=a b" SGLANG_ENABLE_SPEC_V2=1
Environment=HF_TOKEN=hidden-token
EnvironmentFile=/etc/serve.env
ExecStartPre=-/bin/true
ExecStart=-/usr/bin/python3 -m sglang.launch_server \\
  --model-path /m \\
  # this comment does not end the command
; nor does this one
  --served-model-name "my model" \\
  --tp 4
Restart=always

[Install]
WantedBy=multi-user.target
"""


def test_a_service_with_continued_lines_and_variables():
    launch = parse_launch(UNIT, "serve.service")
    assert launch.requested == {"model_path": "/m", "served_model_name": "my model", "tp_size": 4}
    assert launch.environment == {"NOTE": "a b", "SGLANG_ENABLE_SPEC_V2": "1", "HF_TOKEN": "***"}
    assert launch.program == ("/usr/bin/python3", "-m", "sglang.launch_server")
    assert launch.evidence_of("tp_size").place == "serve.service:14"
    assert "hidden-token" not in repr(launch)


@pytest.mark.parametrize(
    ("command", "engine", "requested"),
    [
        ("/usr/bin/docker run --rm -e A=1 vllm/vllm-openai:v0.9 --model m", "vllm", {"model": "m"}),
        ("/bin/bash -c 'exec sglang serve m --tp 2'", "sglang", {"model_path": "m", "tp_size": 2}),
        ("@/opt/sglang sglang serve m ; echo not an operator here", "sglang", {"model_path": "m"}),
    ],
)
def test_ways_to_start(command, engine, requested):
    launch = parse_launch(f"[Service]\nExecStart={command}\n")
    assert launch.engine == engine
    assert {name: launch.requested[name] for name in requested} == requested


def test_a_unit_may_start_several_servers():
    unit = "[Service]\nType=oneshot\nExecStart=sglang serve a\nExecStart=\nExecStart=sglang serve b\n"
    assert [launch.requested["model_path"] for launch in find_launches(unit)] == ["a", "b"]


def test_a_container_unit():
    unit = "[Container]\nImage=docker.io/vllm/vllm-openai:v0.11.0\nEnvironment=A=1\nExec=--model m --port 8000\n"
    launch = parse_launch(unit)
    assert (launch.engine, launch.release) == ("vllm", "0.11.0")
    assert launch.requested == {"model": "m", "port": 8000}
    assert launch.environment == {"A": "1"}


def test_an_open_quote_names_the_line():
    with pytest.raises(MalformedInput) as error:
        parse_launch(UNIT.replace('"my model"', '"my model'), "serve.service")
    assert (error.value.what, error.value.where) == ("a quote is not closed", "serve.service:13")
