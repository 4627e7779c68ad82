"""SGLang's log, releases 0.4.1 to 0.5.23."""

from __future__ import annotations

import re
from typing import Final

from collector.formats.base import LogFormat
from collector.formats.sglang.lines import LINES, SAMPLES
from collector.formats.sglang.prefix import split
from collector.formats.sglang.session import SglangSession

_HEAD = rb"(?m)^(?:\([\w.:-]+ pid=\d+[^)]*\) )?\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:\.\d{3})?(?: [A-Z_]+\d+)*\] "

FORMAT: Final = LogFormat(
    engine="sglang",
    title="SGLang",
    versions="0.4.1-0.5.23",
    signs=(
        re.compile(_HEAD + rb"server_args=(?:ServerArgs\(|\{)"),
        re.compile(_HEAD + rb"(?:Decode|Prefill) batch(?: \[\d+\])?[.,] #"),
        re.compile(_HEAD + rb"(?:Load weight (?:begin|end)\.|The server is fired up|max_total_num_tokens=)"),
        re.compile(_HEAD + rb'INFO:     \S+ - "[A-Z]+ /'),
        re.compile(
            rb"(?m)^(?:WARNING:sglang\.srt\.server_args:|/\S*/sglang/(?:srt|launch_server)|  File \"[^\"]*/sglang/)"
        ),
        re.compile(rb"(?m)^speculative_num_draft_tokens is adjusted to speculative_num_steps \+ 1"),
    ),
    lines=LINES,
    samples=SAMPLES,
    split=split,
    session=SglangSession,
)
