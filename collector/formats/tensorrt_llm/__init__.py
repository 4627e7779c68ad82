"""The log of TensorRT-LLM's server, and iterations saved from its metrics endpoint."""

from __future__ import annotations

import re
from typing import Final

from collector.formats.base import LogFormat
from collector.formats.tensorrt_llm.lines import LINES, SAMPLES
from collector.formats.tensorrt_llm.session import TensorrtLlmSession, split

FORMAT: Final = LogFormat(
    engine="tensorrt-llm",
    title="TensorRT-LLM",
    versions="0.20-1.4",
    signs=(
        re.compile(rb"(?m)^(?:\[[\d/:-]{8,25}\] ?)?\[(?:TRT-LLM|TensorRT-LLM)\]"),
        re.compile(rb"(?m)^(?:\[[\d/:-]{8,25}\] )?\[TRT-LLM\](?: ?\[[\w ]+\])* iter = \d+, "),
        re.compile(
            rb'(?m)^\[?\{.*"iterLatencyMS":.*"inflightBatchingStats"|(?m:^)\[?\{.*"inflightBatchingStats".*"iterLatencyMS":'
        ),
    ),
    lines=LINES,
    samples=SAMPLES,
    split=split,
    session=TensorrtLlmSession,
)
