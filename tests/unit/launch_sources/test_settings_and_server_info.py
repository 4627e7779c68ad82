"""Files of options, and what a server says about its own launch."""

from __future__ import annotations

import json

import pytest

from collector.domain.errors import MalformedInput, UnreadableInput
from collector.launch import launch_of_settings, parse_launch, render, with_settings
from collector.sources.launches import read_launches


def test_launch_command_of_server_information():
    document = {"model_path": "/m", "launch_command": "--model-path /m --speculative-num-steps 3", "version": "0.5.23"}
    launch = parse_launch(json.dumps(document, indent=1), "server_info.json")
    assert (launch.engine, launch.requested) == ("sglang", {"model_path": "/m", "speculative_num_steps": 3})
    assert launch.line == 3


@pytest.mark.parametrize("command", [None, 7, ""])
def test_server_information_without_a_command(command):
    with pytest.raises(UnreadableInput):
        parse_launch(json.dumps({"launch_command": command}))


def test_options_of_a_settings_file_stand_at_their_lines():
    launch = parse_launch("vllm serve m --config /etc/v.yaml --port 2")
    text = "port: 1\nspeculative-config:\n  method: ngram\n  num_speculative_tokens: 3\nenable-prefix-caching: false\n"
    whole = with_settings(launch, text, "v.yaml")
    assert whole.requested == {
        "port": 2,
        "speculative_config.method": "ngram",
        "speculative_config.num_speculative_tokens": 3,
        "model": "m",
        "config": "/etc/v.yaml",
    }
    assert whole.evidence_of("speculative_config.method").place == "v.yaml:3"
    assert whole.evidence_of("port").place == "launch.txt:1"


def test_a_settings_file_alone():
    launch = launch_of_settings("sglang", "model-path: m\nspeculative-num-steps: 3\n", "run.yaml")
    assert render(launch) == "python -m sglang.launch_server --model-path m --speculative-num-steps 3"


@pytest.mark.parametrize(("text", "where"), [("a: [\n", "run.yaml:2"), ("- a\n", "run.yaml"), ("", "run.yaml")])
def test_a_broken_settings_file(text, where):
    with pytest.raises(MalformedInput) as error:
        launch_of_settings("sglang", text, "run.yaml")
    assert error.value.where == where


def test_the_settings_file_beside_a_manifest(tmp_path):
    (tmp_path / "run.yaml").write_text("tp-size: 4\n")
    (tmp_path / "serve.service").write_text("[Service]\nExecStart=sglang serve m --config /etc/run.yaml\n")
    (launch,) = read_launches(tmp_path / "serve.service")
    assert launch.requested["tp_size"] == 4
