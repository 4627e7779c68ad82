"""Text that only mentions engines."""

from contextlib import suppress

import pytest

from collector.domain.errors import InputError
from collector.launch.commands import find_launches


@pytest.mark.parametrize(
    "text",
    [
        "Results of `vllm bench serve` and `sglang.launch_server --port 1`.",
        "a `python -m sglang.launch_server",
        "see $(which vllm serve) or ${vllm serve:-`vllm serve`}",
        '| "vllm serve m" | `vllm serve m` |',
    ],
)
def test_it_is_read_or_refused_and_never_forever(text):
    with suppress(InputError):
        find_launches(text, "README.md")
