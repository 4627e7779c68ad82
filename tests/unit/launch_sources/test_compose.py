"""Launch commands in compose files."""

from __future__ import annotations

import pytest

from collector.domain.errors import MalformedInput, UnreadableInput
from collector.launch import find_launches, parse_launch

COMPOSE = """\
x-env: &env
  HF_TOKEN: hidden-token
services:
  web: {image: "nginx:1"}
  target:
    image: lmsysorg/sglang:v0.5.9
    environment:
      <<: *env
      SGLANG_ENABLE_SPEC_V2: "1"
      PASSED_ON:
    command: >
      python3 -m sglang.launch_server
      --model-path $${MODEL}
      --tp 2
      --speculative-algorithm "EAGLE3"
  openai:
    image: vllm/vllm-openai:v0.11.0
    environment: [A=1, B]
    command:
      - --model
      - m
      - --speculative-config
      - '{"method": "ngram", "num_speculative_tokens": 3}'
  wrapped:
    image: own/image
    entrypoint: ["bash", "-c"]
    command: ["vllm serve m2 --port 1 && sleep 1"]
  replaced:
    image: vllm/vllm-openai:v0.11.0
    entrypoint: python3 -m sglang.launch_server
    command: --model-path ${MODEL:-/m}
"""


def test_every_service_that_launches_an_engine():
    launches = find_launches(COMPOSE, "compose.yaml")
    assert [(launch.label, launch.engine, launch.release) for launch in launches] == [
        ("service target", "sglang", "0.5.9"),
        ("service openai", "vllm", "0.11.0"),
        ("service wrapped", "vllm", ""),
        ("service replaced", "sglang", ""),
    ]
    target, openai, wrapped, replaced = launches
    assert target.requested == {"model_path": "${MODEL}", "tp_size": 2, "speculative_algorithm": "EAGLE3"}
    assert target.environment == {"HF_TOKEN": "***", "SGLANG_ENABLE_SPEC_V2": "1"}
    assert [target.evidence_of(name).line for name in target.requested] == [13, 14, 15]
    assert openai.requested["speculative_config.num_speculative_tokens"] == 3
    assert openai.environment == {"A": "1"}
    assert wrapped.requested == {"model": "m2", "port": 1}
    assert replaced.requested == {"model_path": "${MODEL:-/m}"}


def test_lines_of_a_command_need_no_backslash():
    text = "services:\n  a:\n    command: |\n      sglang serve m\n      --tp 2\n"
    assert parse_launch(text).requested == {"model_path": "m", "tp_size": 2}


def test_a_file_without_an_engine():
    with pytest.raises(UnreadableInput):
        parse_launch("services:\n  web: {image: nginx, command: [nginx, -g, 'daemon off;']}\n")


def test_a_broken_file_names_the_line():
    with pytest.raises(MalformedInput) as error:
        parse_launch("services:\n  a:\n    command: [sglang, serve\n", "compose.yaml")
    assert error.value.where == "compose.yaml:4"
