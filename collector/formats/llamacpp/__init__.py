"""The log of llama.cpp's server, builds b4900 to b11549."""

from __future__ import annotations

import re
from typing import Final

from collector.formats.base import LogFormat
from collector.formats.llamacpp.lines import LINES, SAMPLES
from collector.formats.llamacpp.prefix import split
from collector.formats.llamacpp.session import LlamacppSession

_HEAD = rb'(?m)^(?:\x1b\[[\d;]*m)*(?:\{"type":"log","time":\d+,"level":"\w+","msg":"|\d+\.\d\d\.\d{3}\.\d{3} (?:\x1b\[[\d;]*m)*(?:[IWED] )?)?'

FORMAT: Final = LogFormat(
    engine="llamacpp",
    title="llama.cpp",
    versions="b4900-b11549",
    signs=(
        re.compile(_HEAD + rb"slot +[\w():]+: id +-?\d+ \| task +-?\d+ \| "),
        re.compile(_HEAD + rb"(?:srv|spec|cmn|que) +[\w():]+: "),
        re.compile(
            _HEAD
            + rb"(?:llama_model_loader|llama_context|llama_kv_cache\w*|load_tensors|print_info|llama_new_context\w*): "
        ),
        re.compile(rb"(?m)^(?:main: server is listening|main: loading model|build: \d+ \([0-9a-f]+\) with )"),
        re.compile(rb"(?m)^ *(?:prompt )?eval time = +[\d.]+ ms / +\d+ (?:tokens|runs) "),
        re.compile(rb"(?m)^draft acceptance rate = "),
        re.compile(rb'(?m)^error while handling argument "-'),
    ),
    lines=LINES,
    samples=SAMPLES,
    split=split,
    session=LlamacppSession,
)
