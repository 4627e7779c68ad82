"""Launch commands in lists of processes, where the shell's quotes are gone."""

from __future__ import annotations

import pytest

from collector.domain.errors import UnreadableInput
from collector.launch import find_launches, parse_launch

PS_AUX = """\
USER  PID %CPU %MEM  VSZ  RSS TTY   STAT START TIME COMMAND
root     1  0.0  0.0 2616 1024 ?     Ss   Nov28 0:00 /sbin/init
root    42 99.0  1.0 9999  999 pts/0 Sl+  10:00 5:00 python -m sglang.launch_server --model-path m --json-model-override-args {"a b":1} --tp 2
root    43  0.0  0.0 2616 1024 ?     S    10:00 0:00 python -m sglang.launch_server --model-path m --json-model-override-args {"a b":1} --tp 2
me      44  1.0  0.0 2616 1024 ?     Sl   10:01 0:09 /v/vllm serve m --speculative-config={"method": "ngram"} --api-key hidden-key
root    45  0.0  0.0 2616 1024 pts/1 S+   10:02 0:00 grep --color=auto sglang
"""


def test_every_server_once_with_its_json_put_together():
    server, openai = find_launches(PS_AUX, "ps.txt")
    assert server.requested == {
        "model_path": "m",
        "json_model_override_args": '{"a b":1}',
        "tp_size": 2,
    }
    assert server.program == ("python", "-m", "sglang.launch_server")
    assert (server.evidence.place, server.label) == ("ps.txt:3", "process 42")
    assert openai.requested["speculative_config.method"] == "ngram"
    assert openai.program == ("/v/vllm", "serve")
    assert "hidden-key" not in repr(openai)


@pytest.mark.parametrize(
    "line",
    [
        "1234 python -m sglang.launch_server --tp 2",
        "root 1234 1 0 10:00 ? 00:00:10 python -m sglang.launch_server --tp 2",
        "root 1234 99.9 1.0 123 456 pts/0 Rl+ Nov28 5:00 python -m sglang.launch_server --tp 2",
        "  PID CMD\n 1234 python -m sglang.launch_server --tp 2",
        "  PID ARGS\n 1234 sh -c A=1 python -m sglang.launch_server --tp 2 && tail -f log",
    ],
)
def test_forms_of_lines(line):
    launch = parse_launch(line)
    assert launch.requested == {"tp_size": 2}
    assert launch.program[-2:] == ("-m", "sglang.launch_server")


def test_the_words_of_a_process_between_zero_bytes():
    launch = parse_launch("python\0-m\0sglang.launch_server\0--served-model-name\0my model\0--tp\0008\0")
    assert launch.requested == {"served_model_name": "my model", "tp_size": 8}


def test_a_quote_is_no_quote_here():
    assert parse_launch("7 sglang serve it's --tp 2").requested == {"model_path": "it's", "tp_size": 2}


def test_a_number_before_a_command_is_not_always_a_process():
    assert parse_launch("timeout 3600 sglang serve m --served-model-name 'a b'").requested["served_model_name"] == "a b"


def test_a_list_without_a_server():
    with pytest.raises(UnreadableInput):
        parse_launch("  PID CMD\n    1 /sbin/init\n")
