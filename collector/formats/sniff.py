"""Tells from its first bytes what an input is."""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from collector.domain.errors import UnreadableInput
from collector.formats import formats
from collector.formats.base import LogFormat
from collector.formats.blocks import Block
from collector.formats.tidy import tidied


class Stranger(NamedTuple):
    """A kind of input that is recognised and not read here."""

    what: str
    sign: re.Pattern[bytes]
    hint: str = ""


_UNPACK: Final = "unpack it first, and give the folder or the log itself"
_STRANGERS: Final = (
    Stranger(
        "an HTML page",
        re.compile(rb"\s*<(?:!doctype html|html)\b", re.IGNORECASE),
        "save the log itself, not the page that shows it",
    ),
    Stranger("a zip archive", re.compile(rb"PK\x03\x04"), _UNPACK),
    Stranger("a tar archive", re.compile(rb"(?s).{257}ustar"), _UNPACK),
    Stranger("a PDF document", re.compile(rb"%PDF-")),
    Stranger(
        "a log of vLLM",
        re.compile(
            rb"(?m)^(?:\(\w+[ \w]*pid=\d+\) )?(?:INFO|WARNING|ERROR) \d\d-\d\d \d\d:\d\d:\d\d (?:\[|\S+\.py:\d+\])"
        ),
    ),
    Stranger(
        "a log of llama.cpp",
        re.compile(
            rb"(?m)^(?:llama_model_loader: |llama_context: |print_info: |srv +\w+: |slot +\w+: |main: server is listening)"
        ),
    ),
    Stranger(
        "a log of TensorRT-LLM", re.compile(rb"(?m)^\[[\d/:-]{8,25}\] ?\[TRT-LLM\]|^\[(?:TRT-LLM|TensorRT-LLM)\]\[")
    ),
    Stranger(
        "an access log of a web server (nginx or Apache)",
        re.compile(rb"(?m)^[\da-fA-F.:]{3,45} \S+ \S+ \[\d\d/\w{3}/\d{4}:\d\d:\d\d:\d\d [+-]\d{4}\] \""),
        "give the log of the inference engine behind it",
    ),
    Stranger(
        "an error log of nginx",
        re.compile(rb"(?m)^\d{4}/\d\d/\d\d \d\d:\d\d:\d\d \[(?:error|warn|notice|crit)\] \d+#\d+:"),
        "give the log of the inference engine behind it",
    ),
)

LOOKED_AT: Final = (1 << 15, 1 << 18)
CERTAIN: Final = 2
"""Signs of one engine, with none of another, that settle it."""
_TEXT_CONTROL: Final = bytes(set(range(32)) - {0x07, 0x08, 0x09, 0x0A, 0x0C, 0x0D, 0x1B})


def alike(head: bytes) -> list[tuple[int, LogFormat]]:
    """How much a text looks like the log of each engine, the most alike first.

    Looking for signs takes longer than reading, so a longer beginning is looked at only if a shorter
    one leaves it open.
    """
    tidy = tidied(Block(0, 1, head)).data
    ranked: list[tuple[int, LogFormat]] = []
    for size in (*LOOKED_AT, len(tidy)):
        counts = ((log_format.likeness(tidy[:size]), log_format) for log_format in formats())
        ranked = sorted(counts, key=lambda item: -item[0])
        clear = len(ranked) == 1 or ranked[1][0] == 0
        if size >= len(tidy) or (ranked[0][0] >= CERTAIN and clear):
            break
    return ranked


def recognise_log(head: bytes, source: str) -> LogFormat:
    """The format whose log begins like this.

    Raises:
        UnreadableInput: it is empty, binary, or something else; the error says what.
    """
    if not head.strip():
        raise UnreadableInput("the input is empty", where=source, hint="give the log of the inference engine")
    ranked = alike(head)
    if ranked and ranked[0][0] > 0:
        return ranked[0][1]
    raise UnreadableInput("this is not a log that draftscope reads", why=describe(head), where=source, hint=_hint(head))


def describe(head: bytes) -> str:
    """What an input seems to be, in words."""
    stranger = _stranger(head)
    if stranger is not None:
        return f"it looks like {stranger.what}"
    if is_binary(head):
        return "it holds binary data"
    return "no line of it has the form of a known engine's log"


def is_binary(head: bytes) -> bool:
    """Whether more than one byte in twenty is none of text."""
    sample = head[:65_536]
    return len(sample) - len(sample.translate(None, _TEXT_CONTROL)) > len(sample) / 20


def _stranger(head: bytes) -> Stranger | None:
    for stranger in _STRANGERS:
        # Patterns without the multi-line flag describe the very beginning.
        found = stranger.sign.search(head) if stranger.sign.flags & re.MULTILINE else stranger.sign.match(head)
        if found is not None:
            return stranger
    return None


def _hint(head: bytes) -> str:
    stranger = _stranger(head)
    known = ", ".join(log_format.title for log_format in formats())
    if stranger is not None and stranger.hint:
        return stranger.hint
    return f"logs of these engines are read: {known}; name the engine with --engine if this is one of them"
