"""A log gives the same rows however it is wrapped; what is not wrapped is left as it is."""

import os
import random
from collections import defaultdict
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.bundle import joined
from collector.domain.errors import UnreadableInput
from collector.formats import formats
from collector.formats.base import ReadOptions
from collector.formats.blocks import LINE_CAP
from collector.formats.reader import LogReader
from collector.formats.streams import holds_log, likeness
from collector.formats.wrappers import recognise_wrapper, wrappers
from collector.formats.wrappers.base import check_samples
from tests.golden.logs.expected import recordings
from tests.unit.collector.wrapping import WRAPS, compose, container_json, journal, pods, pods_in_json, syslog

SOAK = os.environ.get("DRAFTSCOPE_SOAK") == "1"
GOLDEN = Path(__file__).parents[2] / "golden" / "logs" / "sglang"
RESTARTS = (GOLDEN / "0.5.11-restarts" / "log.txt").read_bytes()
REFUSED = (GOLDEN / "0.5.11-refused-steps-only" / "log.txt").read_bytes()
RANKS = (GOLDEN / "0.5.11-eagle3-dp2" / "log.txt").read_bytes()
LOGS = {"restarts": RESTARTS, "refused": REFUSED, "ranks": RANKS}


def read(data, size=1 << 20, engine=None):
    reader = LogReader(ReadOptions("log"), engine)
    parts = []
    for start in range(0, len(data), size):
        reader.feed(data[start : start + size])
        parts += reader.take()
    reader.finish()
    return joined(parts + reader.take()), reader.summary()


def facts(run):
    """A run without the places in its source."""
    return (
        run.started_at,
        run.ended_at,
        run.release_range,
        {name: argument.effective for name, argument in run.arguments.by_name.items()},
        [(event.kind, event.at, event.values) for event in run.events],
        sorted(window._replace(position=0, line=0) for window in run.windows),
        sorted(prefill._replace(position=0, line=0) for prefill in run.prefills),
    )


def counted(reading):
    return reading.engine_lines, reading.unread, reading.torn_samples


PLAIN = {
    name: ([facts(run) for run in runs], reading) for name, (runs, reading) in ((k, read(v)) for k, v in LOGS.items())
}


def wrapped(data, names, chance):
    lines = data.removesuffix(b"\n").split(b"\n")
    for name in names:
        lines = WRAPS[name](lines, "llm", chance)
    return b"\n".join(lines) + b"\n"


@pytest.mark.parametrize("wrapper", wrappers(), ids=lambda wrapper: wrapper.name)
def test_samples_are_peeled_as_stated(wrapper):
    assert check_samples(wrapper) == []


@pytest.mark.parametrize("path", [folder / "log.txt" for folder in recordings()], ids=lambda path: path.parent.name)
def test_logs_that_stand_by_themselves_are_not_unwrapped(path):
    assert recognise_wrapper(path.read_bytes(), likeness) is None


@pytest.mark.parametrize("log_format", formats(), ids=lambda log_format: log_format.engine)
def test_lines_of_engines_are_no_wrappings(log_format):
    strict = [wrapper for wrapper in wrappers() if not wrapper.loose]
    for sample in log_format.samples:
        peeling = [wrapper.name for wrapper in strict if wrapper.peel(sample.text.encode()) is not None]
        assert not peeling, sample.text


@pytest.mark.parametrize("name", WRAPS)
@pytest.mark.parametrize("log", LOGS)
def test_one_wrapping_changes_no_row(log, name):
    runs, reading = read(wrapped(LOGS[log], [name], random.Random(1)))
    expected, plain = PLAIN[log]
    assert [facts(run) for run in runs] == expected
    assert counted(reading) == counted(plain)


CRI = b"2026-01-01T00:00:01Z stderr "


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("cut_behind", [b"s/it]", b"s/it]\r", b"s/it]\rllm-1  |"])
def test_a_line_may_be_cut_behind_a_progress_bar(cut_behind, end):
    found = []
    for line in compose(RESTARTS.removesuffix(b"\n").split(b"\n"), "llm", random.Random(1)):
        bar = b"Loading: 50%|##  | 1/2 [00:01<00:01, 1.0s/it]\r" if b"batch" in line else b""
        begin, cut, rest = (bar + line).partition(cut_behind)
        found += [CRI + b"P " + begin + cut, CRI + b"F " + rest] if cut else [CRI + b"F " + begin]
    runs, reading = read(b"".join(line + end for line in found), 4_099)
    expected, plain = PLAIN["restarts"]
    assert [facts(run) for run in runs] == expected
    assert counted(reading) == counted(plain)


def test_wrapped_lines_behind_a_progress_bar_keep_those_within():
    bar = b"Loading: 50%|##  | 1/2 [00:01<00:01, 1.0s/it]\r"
    found = []
    for line in RESTARTS.removesuffix(b"\n").split(b"\n"):
        begin, rest = line[:30], line[30:]
        if b"batch" in line:
            found += [bar + CRI + b"P " + bar + begin, CRI + b"F " + rest]
        else:
            found.append(CRI + b"F " + line)
    runs, reading = read(b"".join(line + b"\n" for line in found))
    expected, plain = PLAIN["restarts"]
    assert [facts(run) for run in runs] == expected
    assert counted(reading) == counted(plain)


@settings(max_examples=200 if SOAK else 20, suppress_health_check=[HealthCheck.too_slow])
@given(
    st.sampled_from(sorted(LOGS)),
    st.lists(st.sampled_from(sorted(WRAPS)), min_size=2, max_size=4),
    st.integers(0, 1 << 30),
    st.sampled_from([1 << 20, 4_099, 65_521]),
)
def test_any_stack_of_wrappings_changes_no_row(log, names, seed, size):
    data = wrapped(LOGS[log], names, random.Random(seed))
    runs, reading = read(data, size)
    expected, plain = PLAIN[log]
    assert [facts(run) for run in runs] == expected
    assert counted(reading) == counted(plain)
    for run in runs:
        places = [window.position for window in run.windows]
        assert len(set(places)) == len(places)
        for window in run.windows:
            # A line that came in up to three parts, with a progress bar in front, stands in one of the first ones.
            assert 0 <= data.count(b"\n", 0, window.position) + 1 - window.line <= 2


@pytest.mark.parametrize("wrap", [compose, pods, pods_in_json, journal, syslog], ids=lambda wrap: wrap.__name__)
def test_containers_in_one_file_keep_their_runs(wrap):
    chance = random.Random(3)
    other = b"".join(b'10.0.0.7 - - [29/Nov/2026] "GET / HTTP/1.1" 200 %d\n' % number for number in range(3_000))
    waiting = {
        name: wrap(data.removesuffix(b"\n").split(b"\n"), name, chance)
        for name, data in (("first", RESTARTS), ("second", RANKS), ("proxy", other))
    }
    lines = []
    while any(waiting.values()):
        name = chance.choice([name for name, left in waiting.items() if left])
        lines.append(waiting[name].pop(0))
    data = b"\n".join(lines)
    runs, reading = read(data)
    by_stream = defaultdict(list)
    for run in runs:
        by_stream[run.labels["stream"]].append(facts(run))
    first, second = (next(name for name in by_stream if word in name) for word in ("first", "second"))
    assert by_stream == {first: PLAIN["restarts"][0], second: PLAIN["ranks"][0]}
    assert any("proxy" in note and "no log" in note for note in reading.notes)
    again, other_reading = read(data, 4_099)
    assert [facts(run) for run in again] == [facts(run) for run in runs]
    assert other_reading == reading


def test_partial_lines_of_two_channels_are_joined_apart():
    cut = LOGS["ranks"].split(b"\n")
    found = []
    for number, line in enumerate(cut):
        channel = b"stdout" if number % 2 else b"stderr"
        found += [b"2026-01-01T00:00:01Z %s P %s" % (channel, line[:30])]
        if number % 2:  # the two halves come after both beginnings
            found += [
                b"2026-01-01T00:00:01Z stderr F %s" % cut[number - 1][30:],
                b"2026-01-01T00:00:01Z stdout F " + line[30:],
            ]
    runs, _ = read(b"\n".join(found) + b"\n")
    assert [facts(run)[5:] for run in runs] == [found[5:] for found in PLAIN["ranks"][0]]


def test_joined_lines_longer_than_the_cap_are_dropped_and_counted():
    record = b"2026-01-01T00:00:01Z stderr %s " + b"x" * 60_000 + b"\n"
    parts = record % b"P" * (LINE_CAP // 60_000 + 2) + record % b"F"
    lines = container_json(RESTARTS.split(b"\n"), "llm", random.Random(1))
    assert holds_log(b"\n".join(lines))
    runs, reading = read(
        wrapped(RESTARTS, ["cri"], random.Random(1)) + parts + wrapped(RANKS, ["cri"], random.Random(1))
    )
    assert reading.oversize_lines == 1
    assert [facts(run)[5:] for run in runs] == [found[5:] for name in ("restarts", "ranks") for found in PLAIN[name][0]]


def test_a_wrapped_log_that_is_none_of_an_engine_is_named_for_what_it_is():
    lines = wrapped(b"2026/11/29 18:20:00 [error] 7#7: *1 open() failed\n" * 50, ["container_json"], random.Random(1))
    with pytest.raises(UnreadableInput) as error:
        read(lines)
    assert "an error log of nginx" in str(error.value)


def test_text_glued_to_a_progress_bar_is_a_line():
    bar = "Loading safetensors: 100%|██████████| 5/5 [00:01<00:00,  3.20it/s]".encode()
    lines = RANKS.split(b"\n")
    glued = b"\n".join(
        bar + line if line.startswith(b"[2026") and number % 3 == 0 else line for number, line in enumerate(lines)
    )
    runs, _ = read(glued)
    assert [facts(run) for run in runs] == PLAIN["ranks"][0]


def test_marks_and_nul_bytes_around_lines_do_no_harm():
    torn = b"\xef\xbb\xbf" + b"\x00" * 5_000 + RANKS.replace(b"\n", b"\x00\n")
    assert [facts(run) for run in read(torn)[0]] == PLAIN["ranks"][0]
