"""Reading whole blocks as arrays gives what reading line by line gives."""

import os
import random
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.formats import blocks as blocks_module
from collector.formats.columns import Lines, Template
from collector.formats.pairs import PairTail, Span
from collector.formats.sglang.lines import DECODE, LINES, SAMPLES
from tests.golden.logs.expected import recordings
from tests.unit.collector.read_in_bulk import assert_same
from tests.unit.collector.wrapping import compose, container_json, progress, windows_line_ends

SOAK = os.environ.get("DRAFTSCOPE_SOAK") == "1"
LOGS = [(folder / "log.txt").read_bytes() for folder in recordings() if folder.parent.name == "sglang"]
assert_the_same = partial(assert_same, "sglang")


@pytest.mark.parametrize("log", LOGS, ids=[folder.name for folder in recordings() if folder.parent.name == "sglang"])
def test_recordings_give_the_same(log):
    assert_the_same(log)


def test_all_recordings_in_one_file_give_the_same():
    assert_the_same(b"\n".join(LOGS), size=100_003)


@pytest.mark.parametrize("wrap", [compose, container_json, windows_line_ends, progress], ids=lambda wrap: wrap.__name__)
def test_wrapped_recordings_give_the_same(wrap):
    for log in LOGS[:4]:
        lines = wrap(log.removesuffix(b"\n").split(b"\n"), "llm", random.Random(1))
        assert_the_same(b"\n".join(lines) + b"\n", size=20_011)


HEADS = st.sampled_from(
    [
        b"[2026-01-01 00:00:01] ",
        b"[2026-01-01 00:00:01 TP0] ",
        b"[2026-01-01 00:00:01 TP1] ",
        b"[2026-01-01 00:00:02 TP0 EP0] ",
        b"[2026-01-01 00:00:02 DP0 TP0] ",
        b"[2026-01-01 00:00:03 DP1 TP0] ",
        b"[2026-01-01 00:00:03 DP1 TP3] ",
        b"[2026-01-01 00:00:04 DP10 PP1 ATTN_CP2 MOE_DP1 TP0 EP12] ",
        b"[2026-01-01 00:00:04 DP10 PP1 ATTN_CP2 MOE_DP1 TP10 EP12 and so on] ",
        b"[2026-01-01 00:00:05.123 DP0 TP0] ",
        b"[2026-01-01 00:00:05.1234] ",
        b"[2026-01-01 00:00:61] ",
        b"[2026-01-01 00:00:62] ",
        b"[2026-13-01 00:00:01] ",
        b"[2026-01-01 00:00:01]",
        b"[2026-01-01 00:00:01 0] ",
        b"[] ",
        b"",
    ]
)
NUMBER = st.sampled_from(
    b"0 7 12 1234567 12345678 123456789 0.00 3.07 12345.67 123456.78 1.5 1234567.89 12345678.1234567 -0.00 nan inf 1e+20 . 5."
    b" .5 1.2.3 91.20%".split(b" ")
)
FLAG = st.sampled_from([b"True", b"False", b"true", b"Truly"])
PLAIN_NUMBER = st.sampled_from([b"0", b"7", b"12", b"345", b"1234567"])
PLAIN_FIGURE = st.sampled_from([b"0.00", b"3.07", b"1.99", b"12345.67"])


def decode_line(number, figure, flag):
    return st.builds(
        b"Decode batch, #running-req: %b, #token: %b, token usage: %b, accept len: %b, accept rate: %b, cuda graph: %b, "
        b"gen throughput (token/s): %b, #queue-req: %b%b".__mod__,
        st.tuples(
            number, number, figure, figure, figure, flag, figure, number, st.sampled_from([b"", b", ", b" ", b","])
        ),
    )


LINE = st.one_of(
    decode_line(PLAIN_NUMBER, PLAIN_FIGURE, st.sampled_from([b"True", b"False"])),
    decode_line(PLAIN_NUMBER, PLAIN_FIGURE, st.sampled_from([b"True", b"False"])),
    decode_line(NUMBER, NUMBER, FLAG),
    st.builds(
        b"Decode batch. #running-req: %b, #token: 9, token usage: 0.00, gen throughput (token/s): %b, #queue-req: 0".__mod__,
        st.tuples(PLAIN_NUMBER, PLAIN_FIGURE),
    ),
    st.builds(
        b"Prefill batch, #new-seq: %b, #new-token: %b, #cached-token: %b, token usage: 0.00, #queue-req: 0".__mod__,
        st.tuples(PLAIN_NUMBER, PLAIN_NUMBER, NUMBER),
    ),
    st.just(b"Prefill batch, #new-seq: 1, #new-token: 7, #cached-token: 3, token usage: 0.00, #queue-req: 0, "),
    st.sampled_from(
        [
            b'INFO:     127.0.0.1:1 - "POST /generate HTTP/1.1" 200 OK',
            b"INFO:     ",
            b"INFO:    x",
            b"Receive: obj=GenerateReqInput(text='Decode batch, #running-req: 1')",
            b"Finish: obj=",
            b"server_args=ServerArgs(model_path='m', decode_log_interval=10, port=1)",
            b"server_args=ServerArgs(enable_beta_spec=True, speculative_algorithm='EAGLE')",
            b"Scheduler hit an exception: Traceback (most recent call last):",
            b"SIGTERM received.",
            b"The server is fired up and ready to roll!",
            b"An unheard of message 12",
            b"Decode batch",
            b"Decode batch, ",
            b"",
        ]
    ),
)
BARE = st.sampled_from(
    [
        b"Traceback (most recent call last):",
        b'  File "/x/server_args.py", line 1, in f',
        b"ValueError: x",
        b"",
        b"\x00",
        b"bar:  50%|##| 1/2 [00:01<00:01,  1.00it/s][2026-01-01 00:00:09] Decode batch",
    ]
)
ENDS = st.sampled_from([b"\n"] * 12 + [b"\r\n", b"\x00\n", b"\x1b[0m\n", b"\rmore\n"])
WHOLE = st.one_of(
    st.builds(lambda head, line, end: head + line + end, HEADS, LINE, ENDS), st.builds(bytes.__add__, BARE, ENDS)
)


@settings(max_examples=1_500 if SOAK else 150, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(WHOLE, max_size=40).map(b"".join), st.sampled_from([1 << 20, 700]))
def test_any_lines_give_the_same(data, size):
    assert_the_same(data, size)


@settings(max_examples=300 if SOAK else 30, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, len(LOGS) - 1), st.integers(0, 1 << 30))
def test_recordings_with_bytes_changed_give_the_same(log, seed):
    chance = random.Random(seed)
    data = bytearray(LOGS[log])
    for _ in range(60):
        data[chance.randrange(len(data))] = chance.choice(b"\n\r\x00[] ,.:0123456789aT\xff")
    assert_the_same(bytes(data))


@pytest.mark.parametrize("mark", [b"\xef\xbb\xbf", b""])
def test_a_mark_at_the_beginning_is_none_of_the_first_line(mark):
    assert_the_same(mark + LOGS[0].replace(b"\n", b"\r\n"))


def test_lines_of_every_kind_are_located():
    lines = Lines(blocks_module.Block(0, 1, b"one\n\nthree\nlast"))
    assert (lines.starts.tolist(), lines.ends.tolist()) == ([0, 4, 5, 11], [3, 4, 10, 15])
    assert lines.begins(lines.starts, b"three").tolist() == [False, False, True, False]
    assert lines.with_any([b"t"]).tolist() == [False, False, True, True]


@settings(max_examples=500 if SOAK else 50)
@given(st.lists(st.tuples(st.integers(0, 99_999_999), st.integers(0, 10_000_000 - 1), st.integers(1, 7)), min_size=1))
def test_numbers_are_what_their_text_says(parts):
    texts = [f"{whole}.{fraction:07d}"[: len(str(whole)) + 1 + decimals] for whole, fraction, decimals in parts]
    for text, (_, _, decimals) in zip(texts, parts, strict=True):
        same = [other for other, (_, _, d) in zip(texts, parts, strict=True) if d == decimals]
        data = "".join(f"{other}, {other.partition('.')[0]};\n" for other in same).encode()
        example = f"{text}, {text.partition('.')[0]};".encode()
        spans = [Span(0, len(text), "figure"), Span(len(text) + 2, len(example) - 1, "whole")]
        template = Template.of(example, spans)
        lines = Lines(blocks_module.Block(0, 1, data))
        fits, values = template.match(lines, lines.starts, lines.ends)
        assert fits.all()
        assert values["figure"].tolist() == [float(other) for other in same]
        assert values["whole"].tolist() == [float(other.partition(".")[0]) for other in same]


def test_a_template_takes_no_other_form():
    tail = PairTail(LINES[0].items, LINES[0].required)
    texts = [sample.text.encode().partition(DECODE)[2] for sample in SAMPLES if sample.line == "decode"]
    data = b"\n".join(texts)
    lines = Lines(blocks_module.Block(0, 1, data))
    for number, text in enumerate(texts):
        template = Template.of(text, tail.spans(text, tail.read(text).form))
        assert template is not None
        fits, _ = template.match(lines, lines.starts, lines.ends)
        assert fits.tolist() == [other == number for other in range(len(texts))]
