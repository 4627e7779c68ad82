"""llama.cpp's lines: dialects of acceptance, slots, starts, wrappings, hostile bytes."""

import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.bundle import joined
from collector.domain.versions import Release, ReleaseRange
from collector.formats.base import ReadOptions
from collector.formats.llamacpp.prefix import read_line
from collector.formats.reader import LogReader
from collector.launch import parse_launch

SOAK = os.environ.get("DRAFTSCOPE_SOAK") == "1"


def read(text, *, launch=None, engine="llamacpp"):
    reader = LogReader(ReadOptions("log", None, parse_launch(launch) if launch else None), engine)
    reader.feed(text if isinstance(text, bytes) else text.encode())
    reader.finish()
    return joined(reader.take()), reader.summary()


def windows_of(text, **options):
    return [window for run in read(text, **options)[0] for window in run.windows]


def at(seconds: float) -> str:
    minutes, rest = divmod(round(seconds * 1e6), 60_000_000)
    return f"{minutes}.{rest // 1_000_000:02d}.{rest // 1_000 % 1_000:03d}.{rest % 1_000:03d}"


def request(seconds=1.0, slot=0, task=7, tokens=48, rate=24.0, acceptance="", further=()):
    head = f"{at(seconds)} I slot print_timing: id {slot:2d} | task {task} | "
    texts = [
        "prompt eval time =      29.85 ms /    13 tokens (    2.30 ms per token,   435.50 tokens per second)",
        f"       eval time = {1000 * (tokens - 1) / rate:10.2f} ms / {tokens:5d} tokens (   41.67 ms per token, {rate:8.2f} tokens per second)",
        "      total time =    2029.85 ms /    61 tokens",
        *([acceptance] if acceptance else []),
        *further,
    ]
    return "".join(f"{head}{text}\n" for text in texts)


def acceptance(accepted, drafted, length=None):
    text = f"draft acceptance = {accepted / drafted:.5f} ({accepted:5d} accepted / {drafted:5d} generated)"
    return text if length is None else f"{text}, mean len = {length:5.2f}"


def test_a_request_is_one_window():
    text = request(
        12.5, slot=3, acceptance=acceptance(32, 58, 3.13), further=["     acc per pos = (0.800, 0.733, 0.400, 0.200)"]
    )
    (window,) = windows_of(text)
    assert window.unit == "slot 3"
    assert (window.accepted_tokens, window.drafted_tokens, window.verify_steps) == (32, 58, 15)
    assert window.accepted_at == (12.0, 11.0, 6.0, 3.0)
    assert (window.generated_tokens, window.generation_throughput, window.seconds) == (48, 24.0, 2.0)
    assert (window.printed_length, window.printed_rate) == (3.13, 0.55172)
    assert window.at == 12.5
    assert window.line == 4  # the line that states the acceptance


def test_requests_of_one_slot_follow_one_another_with_and_without_a_release():
    release = f"{at(2)} I slot      release: id  0 | task 7 | stop processing: n_tokens = 60, truncated = 0\n"
    for between in ("", release):
        windows = windows_of(request(1) + between + request(3, tokens=20))
        assert [window.generated_tokens for window in windows] == [48, 20]


def test_slots_that_finish_side_by_side_do_not_mix():
    one = request(1, slot=0, acceptance=acceptance(10, 40, 2.0)).splitlines(keepends=True)
    two = request(1, slot=1, acceptance=acceptance(30, 40, 4.0)).splitlines(keepends=True)
    mixed = "".join(line for pair in zip(one, two, strict=True) for line in pair)
    assert {window.unit: window.accepted_tokens for window in windows_of(mixed)} == {"slot 0": 10, "slot 1": 30}


def test_nothing_drafted_is_not_nothing_accepted():
    (window,) = windows_of(request())
    assert (window.verify_steps, window.accepted_tokens, window.drafted_tokens) == (None, None, None)


def test_prompts_with_the_tokens_that_were_cached():
    head = f"{at(0.5)} I slot   operator(): id  0 | task 7 | "
    begun = f"{at(0.4)} I slot launch_slot_: id  0 | task 7 | processing task, is_child = 0\n"
    cached = f"{head}cached n_tokens = 7, memory_seq_rm [7, end)\n{head}cached n_tokens = 13, memory_seq_rm [13, end)\n"
    (prefill,) = read(begun + cached + request())[0][0].prefills
    assert (prefill.new_tokens, prefill.cached_tokens, prefill.unit) == (13, 7, "slot 0")
    assert read(request())[0][0].prefills == []


OLD = (
    "slot print_timing: id  {slot} | task 328 | \n"
    "prompt eval time =       0.46 ms /    20 tokens (    0.02 ms per token, 43196.54 tokens per second)\n"
    "       eval time =    2000.00 ms /    48 tokens (   41.67 ms per token,    24.00 tokens per second)\n"
    "      total time =    2000.46 ms /    68 tokens\n"
    "draft acceptance rate = 0.88889 (   24 accepted /    27 generated)\n"
)
STATISTICS = (
    "statistics draft: #calls(b,g,a) = {requests} {passes} {accepting}, #gen drafts = {drafts}, #acc drafts = {accepting}, #gen tokens "
    "= 179, #acc tokens = 165, dur(b,g,a) = 0.001, 25.059, 0.003 ms\n"
)


def test_old_lines_belong_to_the_slot_that_was_named_last():
    counted = [
        OLD.format(slot=0) + STATISTICS.format(requests=1, passes=24, accepting=13, drafts=14),
        OLD.format(slot=1) + STATISTICS.format(requests=1, passes=24, accepting=14, drafts=15),
        OLD.format(slot=0) + STATISTICS.format(requests=2, passes=48, accepting=28, drafts=30),
    ]
    runs, _ = read("".join(counted))
    # each slot has counters of its own; a draft without an accepted token is one, too
    assert [(window.unit, window.verify_steps) for window in runs[0].windows] == [
        ("slot 0", 14),
        ("slot 1", 15),
        ("slot 0", 16),
    ]
    assert [window.at for window in runs[0].windows] == pytest.approx([2.00046, 4.00092, 6.00138])
    assert str(runs[0].release_range) == "b8600 to b9245"


def test_without_counters_old_builds_are_taken_to_verify_in_each_step():
    runs, reading = read(OLD.format(slot=0))
    assert runs[0].windows[0].verify_steps == 23
    assert any("every decode step" in note for note in reading.notes)
    assert runs[0].arguments.value("spec_type") == "draft-simple"


@pytest.mark.parametrize(
    ("counting", "types"),
    [
        (["draft"], "draft-simple"),
        (["mtp"], "draft-mtp"),
        (["draft-mtp"], "draft-mtp"),
        (["ngram-map-k", "ngram-mod", "draft-mtp"], "ngram-map-k,ngram-mod,draft-mtp"),
    ],
)
def test_a_log_without_its_start_names_the_types_where_they_count(counting, types):
    lines = [
        STATISTICS.format(requests=1, passes=24, accepting=13, drafts=14).replace(
            "statistics draft", f"statistics {name}"
        )
        for name in counting
    ]
    runs, _ = read(OLD.format(slot=0) + "".join(lines) * 2)
    assert runs[0].arguments.value("spec_type") == types


def test_what_the_start_states_is_not_overruled_by_what_counts():
    start = "common_speculative_init: adding implementation ngram_mod\n"
    counting = STATISTICS.format(requests=1, passes=24, accepting=13, drafts=14).replace("draft:", "draft-mtp:")
    runs, _ = read(start + OLD.format(slot=0) + counting)
    assert runs[0].arguments.value("spec_type") == "ngram-mod"


def test_a_request_that_the_log_cuts_off_is_not_taken_for_one_without_drafts():
    whole = (
        request() + f"{at(1.0)} I slot      release: id  0 | task 7 | stop processing: n_tokens = 61, truncated = 0\n"
    )
    assert [window.running_requests for window in windows_of(whole)] == [1]
    assert [window.running_requests for window in windows_of(request())] == [None]
    assert [window.running_requests for window in windows_of(request(acceptance=acceptance(32, 58, 3.13)))] == [1]


def test_servers_of_a_router_are_told_apart_by_their_ports():
    first = OLD.format(slot=0).splitlines()
    second = OLD.format(slot=0).replace("24 accepted", "12 accepted").splitlines()
    lines = ["0.00.100.000 I srv  llama_server: listening on http://127.0.0.1:8080"]
    for one, other in zip(first, second, strict=True):
        lines += [
            f"[53409] {one}",
            "9.00.100.000 I srv  proxy_reques: proxying request to model a on port 53409",
            f"[53410] {other}",
        ]
    runs, _ = read("\n".join(lines) + "\n")
    found = {run.labels["stream"]: [window.accepted_tokens for window in run.windows] for run in runs}
    assert found == {"router": [], "53409": [24], "53410": [12]}


@pytest.mark.parametrize(
    ("line", "steps", "releases"),
    [
        (acceptance(32, 58), 15, "b9094 to b9712"),
        (acceptance(32, 58, 3.13), 15, "b9714 and later"),
        (
            f"{acceptance(32, 58)}, mean acceptance length =  3.13, acceptance rate per position = (0.800, 0.733, 0.400, 0.200)",
            15,
            "b9539 to b9872",
        ),
    ],
)
def test_dialects_of_acceptance(line, steps, releases):
    run = read(request(acceptance=line))[0][0]
    assert run.windows[0].verify_steps == steps
    assert run.release_range == ReleaseRange.parse(releases.replace(" to ", "-").replace(" and later", "-"))


def test_with_nothing_accepted_the_depth_tells_the_number_of_drafts():
    line = acceptance(1, 633, 1.0)
    launch = "llama-server -m m.gguf --spec-type draft-mtp --spec-draft-n-max 3"
    assert windows_of(request(tokens=212, acceptance=line), launch=launch)[0].verify_steps == 211
    assert windows_of(request(tokens=212, acceptance=line))[0].verify_steps == pytest.approx(211, abs=1)


def test_starts_and_uptimes_that_begin_anew_are_runs():
    start = (
        f"{at(0.001)} I srv  llama_server: initializing ...\n{at(0.01)} I srv    load_model: loading model '/m.gguf'\n"
    )
    runs, _ = read(start + request(5) + start + request(4))
    assert [len(run.windows) for run in runs] == [1, 1]
    runs, _ = read(request(500) + request(1))
    assert [len(run.windows) for run in runs] == [1, 1]
    old = "build: {} (a52dc60ba) with GNU 10.2.1 for Linux x86_64\nsrv    load_model: loading model '/m.gguf'\n"
    runs, _ = read(old.format(7551) + OLD.format(slot=0) + old.format(9093) + OLD.format(slot=0))
    assert [str(run.engine_version) for run in runs] == ["b7551", "b9093"]


def test_wrappings_of_a_line():
    plain = request(12.5, acceptance=acceptance(32, 58, 3.13))
    expected = [window._replace(position=0) for window in windows_of(plain)]
    crlf = plain.replace("\n", "\r\n")
    colour = plain.replace(" I slot", " \x1b[32mI \x1b[0mslot")
    lines = [json.dumps({"type": "log", "time": 12_500_000, "level": "info", "msg": line.split(" I ", 1)[1] + "\n"})
             for line in plain.splitlines()]  # fmt: skip
    as_json = "".join(line.replace('", "', '","').replace('": ', '":').replace(', "', ',"') + "\n" for line in lines)
    for text in (crlf, colour, as_json):
        assert [window._replace(position=0) for window in windows_of(text, engine=None)] == expected


def test_decoys_and_torn_lines():
    decoy = "How is 'draft acceptance = 1.00000 (    9 accepted /     9 generated)' computed?\n"
    torn = request(3, acceptance=acceptance(32, 58, 3.13)).splitlines()[3][:75] + "\n"
    runs, reading = read(request() + decoy + torn)
    assert len(runs[0].windows) == 1
    assert runs[0].windows[0].accepted_tokens is None
    assert reading.torn_samples == 1


def test_lines_nobody_knows_are_counted_by_shape():
    _, reading = read(request() + f"{at(2)} I srv    load_model: zap 12 quux\n")
    assert [(shape.shape, shape.count) for shape in reading.unread_shapes] == [("zap 0 quux", 1)]


@pytest.mark.parametrize(
    ("line", "component", "function", "slot"),
    [
        (b"slot print_timing: id  1 | task 7 | x", b"slot", b"print_timing", 1),
        (b"0.00.001.284 I srv  llama_server: x", b"srv", b"llama_server", None),
        (b"llama_context: x", b"", b"llama_context", None),
        (b"Note: x", b"", b"", None),
    ],
)
def test_parts_of_a_line(line, component, function, slot):
    parts = read_line(line)
    assert (parts.component, parts.function, parts.slot, parts.message[-1:]) == (component, function, slot, b"x")


def test_builds_are_releases_in_order():
    assert Release.parse("b9093") < Release.parse("b11434")
    assert str(Release.parse("b9093")) == "b9093"
    assert Release.parse("b9300") in ReleaseRange.parse("b9246-b9702")


PIECES = [
    b"0.01.002.003 I ", b"slot print_timing: id  1 | task 2 | ", b"srv    load_model: ", b"spec common_specu: ",
    b"prompt eval time = 1.00 ms / 3 tokens ( 2.30 ms per token, 435.50 tokens per second)",
    b"eval time = 1.00 ms / 3 tokens ( 2.30 ms per token, inf tokens per second)",
    b"total time = nan ms / 3 tokens", acceptance(1, 633, 1.0).encode(), b"draft acceptance = 0.1 (",
    b"acc per pos = (0.5, , 9.9)", OLD.format(slot=0).encode(), STATISTICS.format(requests=1, passes=2, accepting=3, drafts=4).encode(),
    b"adding speculative implementation 'ngram-mod'", b"- n_max=4, n_min=0, p_min=0.5", b"- size_n=1, size_m=0, min_hits=9",
    b"build: 7551 (a52dc60ba) with GNU", b"loading model 'x'", b"initializing ...", b'{"type":"log","time":1e99,"msg":"',
    b"common/a.cpp:1: GGML_ASSERT", b"stop processing: ", b"\x1b[1;33m", b"\n", b"\r\n", b"\x00\xff",
]  # fmt: skip


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=8)), max_size=40).map(b"".join))
@settings(max_examples=2000 if SOAK else 200, suppress_health_check=[HealthCheck.too_slow])
def test_any_bytes_are_read(data):
    runs, reading = read(data)
    pieces = reading.lines + data.count(b"\r")  # a line that a progress bar drew over is several
    assert reading.torn_samples + reading.unread <= pieces
    for run in runs:
        assert all(window.at == window.at for window in run.windows)
