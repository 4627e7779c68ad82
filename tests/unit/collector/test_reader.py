"""Any bytes are read without a crash, to the same rows however they come, in bounded memory."""

import json
import os
import subprocess
import sys
import textwrap
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.bundle import joined, read_bundle
from collector.domain.errors import UnreadableInput
from collector.formats.base import ReadOptions
from collector.formats.blocks import LINE_CAP
from collector.formats.reader import LogReader

GOLDEN = Path(__file__).parents[2] / "golden" / "logs" / "sglang"
SOAK = os.environ.get("DRAFTSCOPE_SOAK") == "1"
LOG = (GOLDEN / "0.5.11-restarts" / "log.txt").read_bytes()
PIECES = [
    b"[2026-01-01 00:00:01 DP0 TP0] ",
    b"[2026-01-01 00:00:02] ",
    b"Decode batch, #running-req: 1, #token: 9, token usage: 0.00, accept len: 2.00, accept rate: 0.50, cuda graph: True, ",
    b"gen throughput (token/s): 1.00, #queue-req: 0",
    b"Prefill batch, #new-seq: 1, #new-token: 7, #cached-token: 3, token usage: 0.00, #queue-req: 0",
    b"server_args=ServerArgs(model_path='m', tp_size=1)",
    b"server_args={'a': [1, {2: \"x\"",
    b"Traceback (most recent call last):\n",
    b"ValueError: x",
    b"Scheduler hit an exception: Traceback (most recent call last):",
    b"SIGTERM received.",
    b"Load weight end. type=A, dtype=b, avail mem=1 GB",
    b"\x1b[1;33m",
    b"\n",
    b"\r\n",
    b"\x00\xff",
    b"refleaks.html[2026-",
]


def read(pieces, engine="sglang"):
    reader = LogReader(ReadOptions("log"), engine)
    parts = []
    for piece in pieces:
        reader.feed(piece)
        parts += reader.take()
    reader.finish()
    return joined(parts + reader.take()), reader.summary()


def rows(runs):
    return [
        (sorted(run.windows), run.prefills, run.events, dict(run.arguments.by_name), run.release_range, run.ended_at)
        for run in runs
    ]


@settings(max_examples=500 if SOAK else 60)
@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=20), max_size=40).map(b"".join))
def test_any_bytes_are_read(data):
    runs, reading = read([data])
    assert reading.understood + reading.unread + reading.torn_samples <= max(reading.lines, 1) + data.count(b"refleaks")
    assert reading.engine_lines <= reading.lines + data.count(b"refleaks")
    for run in runs:
        for window in run.windows:
            assert data[window.position :].startswith((b"[", b"\x1b", b"("))
    json.dumps([event.evidence.document() for run in runs for event in run.events])


@settings(max_examples=200 if SOAK else 20, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.integers(0, len(LOG)), max_size=6))
def test_rows_do_not_depend_on_how_the_bytes_come(cuts):
    edges = [0, *sorted(cuts), len(LOG)]
    pieces = [LOG[start:end] for start, end in pairwise(edges)]
    whole, reading = read([LOG])
    parts, other = read(pieces)
    assert rows(parts) == rows(whole)
    assert other == reading


@given(st.lists(st.sampled_from(PIECES), max_size=30).map(b"".join), st.integers(1, 7))
def test_rows_do_not_depend_on_small_pieces(data, size):
    whole, _ = read([data])
    parts, _ = read([data[start : start + size] for start in range(0, len(data), size)])
    assert rows(parts) == rows(whole)


def test_the_engine_is_told_from_the_content():
    whole, reading = read([LOG], engine=None)
    assert reading.kind == "SGLang log"
    assert rows(whole) == rows(read([LOG])[0])


def test_windows_know_where_they_stand():
    for run in read([LOG])[0]:
        for window in run.windows:
            line = LOG[window.position :].split(b"\n", 1)[0]
            assert b"] Decode batch" in line
            assert LOG.count(b"\n", 0, window.position) + 1 == window.line


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "the input is empty"),
        (b" \n\n", "the input is empty"),
        (os.urandom(5_000), "binary data"),
        (b"\x00" * 5_000, "binary data"),
        (b"<!DOCTYPE html><html><body>Not found</body></html>", "an HTML page"),
        (b"\n <html lang=en>", "an HTML page"),
        (
            b'10.0.0.7 - - [29/Nov/2026:18:20:00 +0000] "GET / HTTP/1.1" 200 12 "-" "curl"\n',
            "access log of a web server",
        ),
        (b"2026/11/29 18:20:00 [error] 7#7: *1 open() failed\n", "an error log of nginx"),
        (b"Dear all, the server is slow.\n", "no line of it has the form"),
    ],
)
def test_other_input_is_named_for_what_it_is(data, words):
    with pytest.raises(UnreadableInput) as error:
        read([data], engine=None)
    assert words in str(error.value)
    assert error.value.where == "log"
    assert error.value.hint


LIMITED = """
    import sys
    from pathlib import Path
    from collector.bundle import read_bundle
    from collector.domain.errors import InputError
    try:
        bundle = read_bundle([Path(sys.argv[1])])
        print(bundle.readings[0].oversize_lines, len(bundle.subject.windows), end=" ")
    except InputError as error:
        print(error.what.replace(" ", "_"), 0, end=" ")
    # ru_maxrss would count what the parent held before this process began
    peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM:"))
    print(int(peak.split()[1]) // 1024)
"""


def hostile(kind: str, path: Path) -> None:
    line = LOG[LOG.index(b"] Decode batch") - 20 :].split(b"\n", 1)[0] + b"\n"
    with path.open("wb") as stream:
        if kind == "one line of 300 MB":
            stream.write(line)
            for _ in range(300):
                stream.write(b"x" * (1 << 20))
            stream.write(b"\n" + line)
        elif kind == "a line of arguments of 4 MB":
            stream.write(b"[2026-01-01 00:00:01] server_args=ServerArgs(a=" + b"[[1, 2], " * 400_000 + b"\n" + line)
        elif kind == "only line ends":
            stream.write(line + b"\n" * (4 << 20) + line)
        elif kind == "random bytes":
            for _ in range(60):
                stream.write(os.urandom(1 << 20))
        elif kind == "every line another shape":
            stream.write(line)
            for number in range(150_000):
                word = "".join(chr(97 + int(digit)) for digit in str(number))
                stream.write(f"[2026-01-01 00:00:01] {word} happened {word * 20}\n".encode())


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="needs the peak that Linux keeps per process")
@pytest.mark.parametrize(
    ("kind", "oversize", "windows"),
    [
        ("one line of 300 MB", "1", "2"),
        ("a line of arguments of 4 MB", "0", "1"),
        ("only line ends", "0", "2"),
        ("random bytes", "this_file_is_not_one_that_draftscope_reads", "0"),
        ("every line another shape", "0", "1"),
    ],
)
def test_memory_stays_bounded(kind, oversize, windows, tmp_path):
    path = tmp_path / "server.txt"
    hostile(kind, path)
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(LIMITED), path], capture_output=True, text=True, check=True
    )
    found_oversize, found_windows, megabytes = done.stdout.split()
    assert (found_oversize, found_windows) == (oversize, windows)
    assert int(megabytes) < 200


def test_a_file_of_lines_that_are_too_long_is_not_called_empty(tmp_path):
    log = tmp_path / "input.log"
    log.write_bytes(b"x" * (LINE_CAP + 1))
    with pytest.raises(UnreadableInput, match="too long"):
        read_bundle([log])
