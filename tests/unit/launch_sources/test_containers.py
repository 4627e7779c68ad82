"""``docker run`` and its relatives."""

from __future__ import annotations

import pytest

from collector.launch import find_launches, parse_launch


@pytest.mark.parametrize(
    ("command", "engine", "environment", "release"),
    [
        (
            "docker run --gpus all -e A=1 --rm lmsysorg/sglang:v0.5.9 sglang serve m --tp 2",
            "sglang",
            {"A": "1"},
            "0.5.9",
        ),
        (
            "sudo docker run --env=A=1 -e B --mount type=bind,src=/x own/image sglang serve m --tp 2",
            "sglang",
            {"A": "1"},
            "",
        ),
        ("podman run -v /m:/m vllm/vllm-openai:v0.10.1.1 --model m --tp 2", "vllm", {}, "0.10.1.1"),
        ("docker run --entrypoint vllm vllm/vllm-openai:latest serve m --tp 2", "vllm", {}, ""),
        (
            "docker run --entrypoint=python3 lmsysorg/sglang -m sglang.launch_server --model-path m --tp 2",
            "sglang",
            {},
            "",
        ),
        ("docker run --name llama-server vllm/vllm-openai:v0.10.1 --model m --tp 2", "vllm", {}, "0.10.1"),
        ("docker exec -it box bash -c 'A=1 sglang serve m --tp 2'", "sglang", {"A": "1"}, ""),
    ],
)
def test_the_command_inside(command, engine, environment, release):
    launch = parse_launch(command)
    assert (launch.engine, launch.environment, launch.release) == (engine, environment, release)
    assert set(launch.requested.values()) == {"m", 2}


def test_a_secret_on_the_next_line_is_masked():
    launch = parse_launch(
        "docker run -e HF_TOKEN=first-secret vllm/vllm-openai \\\n  --model m --api-key \\\n  other-secret\n"
    )
    assert launch.requested["api_key"] == "***"
    assert "secret" not in repr(launch)
    assert launch.evidence_of("model").text == "--model m --api-key"


def test_several_commands_of_one_script():
    script = "docker run -d vllm/vllm-openai --model a\ndocker run -d vllm/vllm-openai --model b\nvllm serve a\n"
    launches = find_launches(script)
    assert [(launch.requested["model"], launch.line) for launch in launches] == [("a", 1), ("b", 2)]


@pytest.mark.parametrize("end", ["^\r\n", "`\n", "\\\n"])
def test_lines_that_go_on_in_any_shell(end):
    launch = parse_launch(f"llama-server.exe -m C:\\models\\x.gguf {end}  --port 1 {end}  --ctx-size 2\n")
    assert launch.requested == {"model": "C:\\models\\x.gguf", "port": 1, "ctx_size": 2}
