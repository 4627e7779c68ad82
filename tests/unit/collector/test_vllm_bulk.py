"""Reading whole blocks of vLLM's log as arrays gives what reading line by line gives."""

import os
import random
from functools import partial

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.formats.base import Dispatch, Place
from collector.formats.beginnings import wordings_of
from collector.formats.vllm.bulk import CHATTER
from collector.formats.vllm.lines import LINES
from tests.golden.logs.expected import recordings
from tests.unit.collector.read_in_bulk import assert_same, read
from tests.unit.collector.wrapping import compose, container_json, progress, windows_line_ends

SOAK = os.environ.get("DRAFTSCOPE_SOAK") == "1"
FOLDERS = [folder for folder in recordings() if folder.parent.name == "vllm"]
LOGS = [(folder / "log.txt").read_bytes() for folder in FOLDERS]
assert_the_same = partial(assert_same, "vllm")


@pytest.mark.parametrize("log", LOGS, ids=[folder.name for folder in FOLDERS])
def test_recordings_give_the_same(log):
    assert_the_same(log)
    assert_the_same(log, size=4_099)


def test_all_recordings_in_one_file_give_the_same():
    assert_the_same(b"\n".join(LOGS), size=100_003)


@pytest.mark.parametrize("wrap", [compose, container_json, windows_line_ends, progress], ids=lambda wrap: wrap.__name__)
def test_wrapped_recordings_give_the_same(wrap):
    for log in LOGS[:4]:
        lines = wrap(log.removesuffix(b"\n").split(b"\n"), "llm", random.Random(1))
        assert_the_same(b"\n".join(lines) + b"\n", size=20_011)


PROCESSES = st.sampled_from(
    [b"", b"(APIServer pid=7) ", b"(APIServer pid=7) ", b"(EngineCore_DP1 pid=77) ", b"(not a process) "]
)
TIMES = st.sampled_from(
    b"06-01 10:00:00,06-01 10:00:00,06-01 10:00:10,06-01 10:00:20,06-01 10:00:21,06-01 10:00:30,12-31 23:59:59,01-01 00:00:00,"
    b"02-31 00:00:61,6-1 10:00:00,13-01 10:00:00".split(b",")
)
CODES = st.sampled_from(
    [b"[loggers.py:248] ", b"[metrics.py:96] ", b"metrics.py:455] ", b"[x.py:1]", b"[loggers.py:248"]
)
LEVELS = st.sampled_from([b"INFO", b"INFO", b"INFO", b"WARNING", b"DEBUG"])
FIGURE = st.sampled_from(b"0.0 1.5 12.5 300.0 9000.1 123456789.0 1 nan".split(b" "))
COUNT = st.sampled_from(b"0 3 12 30 300 901 1902 12345678".split(b" "))
SHARE = st.sampled_from(b"0.0 5.1 41.7 100.0".split(b" "))
PLAIN = st.sampled_from(b"0.0 1.5 12.5 300.0 9000.1".split(b" "))

STATS = st.builds(
    b"%bAvg prompt throughput: %b tokens/s, Avg generation throughput: %b tokens/s, Running: %b reqs, Waiting: %b reqs, "
    b"GPU KV cache usage: %b%%%b".__mod__,
    st.tuples(
        st.sampled_from(
            [b"Engine 000: ", b"Engine 000: ", b"Engine 001: ", b"Engine 12: ", b"", b"2 Engines Aggregated: "]
        ),
        st.integers(0, 7).flatmap(lambda number: PLAIN if number else FIGURE),
        PLAIN,
        COUNT,
        COUNT,
        SHARE,
        st.sampled_from(
            [
                b", Prefix cache hit rate: 41.7%",
                b", Prefix cache hit rate: 0.0%",
                b"",
                b", CPU KV cache usage: 0.0%.",
                b" ",
            ]
        ),
    ),
)


@st.composite
def acceptance(draw):
    """An acceptance line; most are consistent, with drafts of full length."""
    depth = draw(st.sampled_from([3, 3, 3, 1, 5]))
    drafts = draw(st.sampled_from([0, 1, 7, 100, 634, 2_999]))
    rates = sorted(draw(st.lists(st.floats(0, 1), min_size=depth, max_size=depth)), reverse=True)
    reached = [int(rate * drafts) for rate in rates]
    accepted, drafted = sum(reached), depth * drafts - draw(st.sampled_from([0, 0, 0, 1, 40]))
    bonus = draw(st.sampled_from([1, 1, 1, 1, 0]))
    length = f"{bonus + accepted / drafts:.2f}" if drafts else "nan"
    positions = ", ".join(f"{count / drafts:.3f}" if drafts else "0.000" for count in reached)
    percent = f"{100 * accepted / drafted:.1f}" if drafted > 0 else "nan"
    if draw(st.sampled_from([True, False, False, False])):
        text = (
            f"SpecDecoding metrics: Draft acceptance rate: {percent}%, Mean acceptance length: {length}, Accepted: {accepted} tokens, "
            f"Drafted: {drafted} tokens, Per-position acceptance rate: {positions}"
        )
    else:
        text = (
            f"SpecDecoding metrics: Mean acceptance length: {length}, Accepted throughput: {accepted / 10:.2f} tokens/s, "
            f"Drafted throughput: {drafted / 10:.2f} tokens/s, Accepted: {accepted} tokens, Drafted: {drafted} tokens, "
            f"Per-position acceptance rate: {positions}, Avg Draft acceptance rate: {percent}%"
        )
    text += draw(st.sampled_from(["", "", "", " ", ", more"]))
    return text.replace("0.5", draw(st.sampled_from(["0.5", "0.5", "0.5", "00.5", "10.5", "nan"])), 1).encode()


V0 = (
    b"Speculative metrics: Draft acceptance rate: 0.612, System efficiency: 0.513, Number of speculative tokens: 4, Number of "
    b"accepted tokens: 1234, Number of draft tokens: 2016, Number of emitted tokens: 1293."
)
OTHER = st.sampled_from(
    [
        V0,
        b"vLLM API server version 0.11.0",
        b"vLLM API server version 0.15.0",
        b"non-default args: {'model': 'm', 'data_parallel_size': 2, 'num_speculative_tokens': 3}",
        b"Prefix cache hit rate: GPU: 12.50%, CPU: 0.00%",
        b"SpecDecoding metrics: Draft acceptance rate: 100.0%, Accepted: 66 tokens, Drafted: 66 tokens",
        b"EngineCore encountered a fatal error.",
        b"Traceback (most recent call last):",
        b"ValueError: x",
        b"Starting vLLM API server on http://0.0.0.0:8000",
        b"Added request chatcmpl-1.",
        b"Added request chatcmpl-2.",
        b"Received request chatcmpl-1: prompt: 'x', params: SamplingParams(n=1)",
        b"An unheard of message 12",
        b"SpecDecoding metrics: ",
        b"Engine 000: vllm cache_config_info",
        b"",
    ]
)
BARE = st.sampled_from(
    [
        b'INFO:     127.0.0.1:1 - "POST /v1/completions HTTP/1.1" 200 OK',
        b'INFO:     [::1]:1234 - "GET /health HTTP/1.1" 200 OK',
        b'INFO:     a name with blanks - "GET / HTTP/1.1" 200 OK',
        b"INFO:     Application startup complete.",
        b"INFO:     ",
        b"INFO:    x",
        b"Traceback (most recent call last):",
        b'  File "/x.py", line 1, in f',
        b"ValueError: x",
        b"[2026-01-01 00:00:00] a line with a year",
        b"",
        b"\x00",
    ]
)
ENDS = st.sampled_from([b"\n"] * 12 + [b"\r\n", b"\x00\n", b"\x1b[0m\n", b"\rmore\n"])
GOOD_PREFIX = st.builds(b"INFO 06-01 10:00:%b0 [x.py:1] ".__mod__, st.sampled_from([b"0", b"1", b"2", b"5"]))
ANY_PREFIX = st.builds(lambda level, time, code: level + b" " + time + b" " + code, LEVELS, TIMES, CODES)
PREFIXES = st.integers(0, 7).flatmap(lambda number: GOOD_PREFIX if number else ANY_PREFIX)
MESSAGES = st.integers(0, 4).flatmap(lambda number: (OTHER, STATS, STATS, acceptance(), acceptance())[number])
LINE = st.builds(lambda *parts: b"".join(parts), PROCESSES, PREFIXES, MESSAGES, ENDS)
PAIR = st.builds(
    lambda process, prefix, stats, told: process + prefix + stats + b"\n" + process + prefix + told + b"\n",
    PROCESSES,
    GOOD_PREFIX,
    STATS,
    acceptance(),
)
BARE_LINE = st.builds(lambda *parts: b"".join(parts), PROCESSES, BARE, ENDS)
WHOLE = st.integers(0, 5).flatmap(lambda number: (BARE_LINE, LINE, LINE, PAIR, PAIR, PAIR)[number])
BEGINNING = (
    b"INFO 06-01 10:00:00 [x.py:1] vLLM API server version 0.11.0\n"
    b"INFO 06-01 10:00:00 [x.py:1] non-default args: {'data_parallel_size': 2}\n"
    b"INFO 06-01 10:00:00 [x.py:1] SpecDecoding metrics: Mean acceptance length: 2.41, Accepted throughput: 90.10 tokens/s, Drafted "
    b"throughput: 190.20 tokens/s, Accepted: 901 tokens, Drafted: 1902 tokens, Per-position acceptance rate: 0.812, 0.403, 0.201, "
    b"Avg Draft acceptance rate: 47.4%\n"
)


@settings(max_examples=1_500 if SOAK else 150, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.lists(WHOLE, max_size=40).map(b"".join), st.sampled_from([300, 700, 2_000]), st.sampled_from([BEGINNING, b""])
)
def test_any_lines_give_the_same(data, size, beginning):
    assert_the_same(beginning + data, size)


def test_a_damaged_byte_behind_a_time_is_seen_beside_whole_lines_of_the_same_second():
    lines = BEGINNING.splitlines(keepends=True)
    assert_the_same(b"".join([*lines, lines[-1].replace(b"10:00:00 [", b"10:00:005["), lines[-1]]))


@settings(max_examples=300 if SOAK else 30, suppress_health_check=[HealthCheck.too_slow])
@given(st.integers(0, len(LOGS) - 1), st.integers(0, 1 << 30))
def test_recordings_with_bytes_changed_give_the_same(log, seed):
    chance = random.Random(seed)
    data = bytearray(LOGS[log])
    for _ in range(60):
        data[chance.randrange(len(data))] = chance.choice(b"\n\r\x00[] ,.:0123456789aT\xff")
    assert_the_same(bytes(data))


def test_chatter_is_nothing_but_chatter():
    for literal in CHATTER:
        text = literal + b"chatcmpl-0123456789abcdef: prompt: 'x'"
        assert wordings_of("collector.formats.vllm").know(text)
        assert Dispatch(LINES, Place.ENGINE).find(text) is None


def test_samples_are_given_as_columns():
    stats = (
        b"INFO 06-01 10:%02d:%02d [x.py:1] Engine 00%d: Avg prompt throughput: 1.0 tokens/s, Avg generation throughput: 2.0 tokens/s, "
        b"Running: 3 reqs, Waiting: 0 reqs, GPU KV cache usage: 5.1%%, Prefix cache hit rate: 50.0%%\n"
    )
    data = BEGINNING + b"".join(
        stats % (second // 60, second % 60, engine) for second in range(0, 600, 10) for engine in (0, 1)
    )
    runs, reading = read("vllm", data, bulk=True, size=2_000, columns=True)
    assert reading.torn_samples == 0
    assert {window.unit for window in runs[0].windows if window.running_requests} == {"engine 0", "engine 1"}
    assert len(runs[0].windows) == 121
    assert len(runs[0].prefills) == 118
