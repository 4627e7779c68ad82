"""vLLM's log: V0 and V1, releases 0.5 to 0.32."""

from __future__ import annotations

import re
from typing import Final

from collector.formats.base import LogFormat
from collector.formats.vllm.lines import LINES, SAMPLES
from collector.formats.vllm.prefix import split
from collector.formats.vllm.session import VllmSession

_HEAD = (
    rb"(?m)^(?:\x1b\[[\d;]*m)*(?:\([\w. -]+ pid=\d+\)(?:\x1b\[[\d;]*m)* )?(?:\x1b\[[\d;]*m)*(?:DEBUG|INFO|WARNING|ERROR|CRITICAL)"
    rb"(?:\x1b\[[\d;]*m)* (?:\x1b\[[\d;]*m)*\d\d-\d\d \d\d:\d\d:\d\d(?:\x1b\[[\d;]*m)* (?:\x1b\[[\d;]*m)*\[?[\w./<>-]+:\d+\](?:\x1b\[[\d;]*m)* "
)

FORMAT: Final = LogFormat(
    engine="vllm",
    title="vLLM",
    versions="0.5.0-0.32.0",
    signs=(
        re.compile(_HEAD),
        re.compile(_HEAD + rb"(?:Engine \d{3,}: |\d+ Engines Aggregated: )?Avg prompt throughput: "),
        re.compile(_HEAD + rb"(?:SpecDecoding|Speculative) metrics: "),
        re.compile(_HEAD + rb"Initializing an? (?:V[01] )?LLM engine \(v"),
        re.compile(_HEAD + rb"(?:vLLM API server version |non-default args: |args: Namespace\()"),
        re.compile(rb'(?m)^\{.*"levelname".*"message": "(?:Engine \d{3,}: Avg prompt|SpecDecoding metrics: )'),
    ),
    lines=LINES,
    samples=SAMPLES,
    split=split,
    session=VllmSession,
)
