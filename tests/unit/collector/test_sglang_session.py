"""Runs, events, units and what does not count, line by line."""

import math

import pytest

from collector.formats.base import EVENTS_OF_A_KIND, ReadOptions
from collector.formats.reader import LogReader
from collector.formats.sglang.prefix import read_head
from collector.launch import parse_launch

ARGUMENTS = "[2026-01-01 00:00:0{at}] server_args=ServerArgs(model_path='m', speculative_algorithm='EAGLE3', port={port}, {more}tp_size=1)"


def read(text: str, launch: str | None = None):
    reader = LogReader(ReadOptions("log", launch=parse_launch(launch) if launch else None), "sglang")
    reader.feed(text.encode())
    reader.finish()
    return [part.run for part in reader.take()], reader.summary()


def arguments(at=0, port=1, more=""):
    return ARGUMENTS.format(at=at, port=port, more=more) + "\n"


def decode(second=1, tags="", running=2, length="2.50", rate="0.50", throughput="100.00", token=10, queue=0):
    spec = f"accept len: {length}, accept rate: {rate}, " if length else ""
    return (
        f"[2026-01-01 00:00:{second:02d}{tags}] Decode batch, #running-req: {running}, #token: {token}, token usage: 0.10, "
        f"{spec}cuda graph: True, gen throughput (token/s): {throughput}, #queue-req: {queue}\n"
    )


def prefill(second=1, tags="", new=7):
    return (
        f"[2026-01-01 00:00:{second:02d}{tags}] Prefill batch, #new-seq: 1, #new-token: {new}, #cached-token: 3, "
        "token usage: 0.00, #running-req: 0, #queue-req: 0, #pending-token: 0, cuda graph: False, "
        "input throughput (token/s): 1.00\n"
    )


def test_a_window_is_what_the_line_says():
    runs, reading = read(arguments() + prefill() + prefill() + decode(3, " DP0 TP0") + decode(2))
    first, second = runs[0].windows
    assert second.prefills == 2
    assert first.prefills == 0
    assert (first.unit, second.unit) == ("DP0 TP0", "")
    assert second.at == 1767225602.0
    assert second.verify_steps == 80
    assert second.accepted_tokens == pytest.approx(1.5 * 80)
    assert second.generated_tokens == 200
    assert second.seconds == pytest.approx(2.0)
    assert (second.printed_length, second.printed_rate, second.graph) == (2.5, 0.5, True)
    assert (second.tokens_in_use, second.kv_cache_usage, second.running_requests) == (10, 0.1, 2)
    assert second.drafted_tokens is None
    assert (second.line, reading.understood) == (5, 5)
    assert [(window.new_tokens, window.cached_tokens) for window in runs[0].prefills] == [(7, 3), (7, 3)]


def test_without_speculation_steps_are_not_known():
    (run,), _ = read(decode(length=None))
    (window,) = run.windows
    assert (window.verify_steps, window.accepted_tokens, window.printed_length) == (None, None, None)
    assert window.generated_tokens == 80
    assert window.seconds == pytest.approx(0.8)


def test_nothing_running_and_no_throughput_have_no_length_in_time():
    (run,), _ = read(decode(running=0) + decode(2, throughput="0.00"))
    assert [window.seconds for window in run.windows] == [None, None]
    assert run.windows[0].verify_steps == 0


def test_what_is_no_number_stays_as_printed_and_derives_nothing():
    (run,), _ = read(decode(length="nan", rate="nan") + decode(2, throughput="inf"))
    first, second = run.windows
    assert first.printed_length != first.printed_length
    assert (first.verify_steps, first.accepted_tokens, first.generated_tokens, first.seconds) == (None,) * 4
    assert (second.verify_steps, second.seconds, second.generation_throughput) == (80, None, float("inf"))


@pytest.mark.parametrize("rate", ["nan", "-nan", "inf"])
def test_a_rate_that_is_no_number_says_nothing_about_the_release(rate):
    (run,), _ = read(decode(rate=rate))
    (alone,), _ = read(decode(rate="0.50"))
    assert not math.isfinite(run.windows[0].printed_rate)
    assert run.windows[0]._replace(printed_rate=0.5) == alone.windows[0]


@pytest.mark.parametrize(
    ("log", "launch", "steps"),
    [
        (arguments(more="decode_log_interval=10, "), None, 20),
        (arguments(), None, 80),
        ("", "sglang serve --model m --decode-log-interval 5", 10),
        (arguments(more="decode_log_interval=10, "), "sglang serve --model m --decode-log-interval 5", 20),
        ("", None, 80),
    ],
)
def test_interval_is_the_engines_word_then_the_commands_then_the_default(log, launch, steps):
    runs, _ = read(log + decode(), launch)
    assert runs[0].windows[0].verify_steps == steps


def test_announcements_before_the_argument_line_belong_to_its_run():
    announced = "Max running requests is reset to 48 for speculative decoding. You can override this.\n"
    logged = (
        "WARNING:sglang.srt.server_args:speculative_num_draft_tokens is adjusted to speculative_num_steps + 1 when x\n"
    )
    stop = "[2026-01-01 00:00:05] SIGTERM received. signum=None frame=None. Draining requests and shutting down...\n"
    timed = "[2026-01-01 00:00:06] Spec v2 is enabled by default for eagle/eagle3/standalone speculative decoding.\n"
    runs, _ = read(announced + arguments(1, 1) + decode(4) + stop + logged + timed + arguments(7, 2) + decode(9))
    first, second = runs
    assert [event.evidence.line for event in first.events_of("announcement")] == [1]
    assert first.events_of("announcement")[0].values == {"max_running_requests": 48}
    assert [event.evidence.line for event in second.events_of("announcement")] == [5, 6]
    assert second.events_of("announcement")[0].evidence.text.startswith("WARNING:sglang.srt.server_args:")
    assert second.events_of("announcement")[1].values == {"disable_overlap_schedule": False}
    assert (first.port, second.port) == (1, 2)
    assert (first.started_at, first.ended_at, second.started_at) == (1767225601.0, 1767225605.0, 1767225607.0)


def test_after_a_kill_without_a_word_announcements_are_the_next_runs():
    timed = "[2026-01-01 00:00:06] Spec v2 is enabled by default for eagle/eagle3/standalone speculative decoding.\n"
    runs, _ = read(arguments(1, 1) + decode(4) + timed + arguments(7, 2) + timed)
    assert [len(run.events_of("announcement")) for run in runs] == [0, 2]


def test_a_log_without_argument_line_is_one_run():
    (run,), _ = read(decode(1) + "[2026-01-01 00:00:02] The server is fired up and ready to roll!\n" + decode(3))
    assert len(run.windows) == 2
    assert not run.arguments.any_effective
    assert (run.started_at, run.ended_at) == (1767225601.0, 1767225603.0)


def test_a_log_of_access_lines_is_still_a_run():
    (run,), reading = read('[2026-01-01 00:00:02] INFO:     127.0.0.1:5 - "GET /health HTTP/1.1" 200 OK\n')
    assert (run.windows, run.events) == ([], [])
    assert (reading.engine_lines, reading.understood) == (1, 1)


def test_a_cut_argument_line_keeps_what_came_before():
    text = arguments(more="speculative_num_steps=5, speculative_num_draft_tokens=6, ")
    (run,), reading = read(text[: text.index("draft_tokens=6") + len("draft_tokens=6")])
    assert run.arguments.value("speculative_num_steps") == 5
    assert not run.arguments.seen("speculative_num_draft_tokens")  # it may be 6 or the beginning of 64
    assert any("cut off after 4 fields" in note for note in reading.notes)


@pytest.mark.parametrize("width", [60, 97, 200])
def test_an_argument_line_that_a_terminal_broke_is_put_together(width):
    text = arguments(more="speculative_num_steps=5, speculative_num_draft_tokens=6, attention_backend='fa3'").rstrip(
        "\n"
    )
    broken = "\n".join(text[at : at + width] for at in range(0, len(text), width))
    (whole,), _ = read(text + "\n" + decode(3))
    (run,), reading = read(broken + "\n" + decode(3))
    assert {name: one.effective for name, one in run.arguments.by_name.items()} == {
        name: one.effective for name, one in whole.arguments.by_name.items()
    }
    assert not any("cut off" in note for note in reading.notes)
    assert len(run.windows) == 1


def test_lines_behind_a_cut_argument_line_are_not_taken_for_its_end():
    text = arguments(more="speculative_num_steps=5, speculative_num_draft_tokens=6")
    cut = text[: text.index("draft_tokens=6")]
    (run,), reading = read(cut + "\nLoading weights, please wait\n" + decode(3) + "disable_radix_cache=True)\n")
    assert not run.arguments.seen("disable_radix_cache")
    assert any("cut off after 4 fields" in note for note in reading.notes)


def test_arguments_show_where_they_stand_and_hide_secrets():
    text = "[2026-01-01 00:00:00] server_args={'api_key': 'sk-secret', 'hf_token': None, 'tp_size': 8}\n"
    (run,), _ = read(text)
    proof = run.arguments["tp_size"].effective_evidence
    assert (proof.place, proof.text) == ("log:1", "'tp_size': 8")
    assert "sk-secret" not in repr(run)
    assert run.arguments.value("api_key") == "***"


CRASH = """[2026-01-01 00:00:05 TP0] Scheduler hit an exception: Traceback (most recent call last):
  File "/x/sglang/srt/managers/scheduler.py", line 1, in run
    scheduler.event_loop()
RuntimeError: inner

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "/x/sglang/srt/managers/scheduler.py", line 2, in run
[2026-01-01 00:00:05] INFO:     127.0.0.1:5 - "GET /health HTTP/1.1" 200 OK
    raise
torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.

[2026-01-01 00:00:06] Received sigquit from a child process. It usually means the child failed.
"""


def test_a_crash_is_told_by_the_last_line_of_its_traceback():
    runs, _ = read(arguments(1) + decode(4) + CRASH + arguments(8, 2))
    (crash,) = runs[0].events_of("crashed")
    assert crash.values["exception"] == "torch.OutOfMemoryError"
    assert crash.evidence.text.startswith("torch.OutOfMemoryError: CUDA out of memory")
    assert len(runs[0].events_of("child-failed")) == 1
    assert len(runs) == 2


TRACE = 'Traceback (most recent call last):\n  File "a.py", line 1, in f\n    g()\n{}\n'


def test_a_traceback_means_refused_crashed_or_nothing_by_its_time():
    refused, _ = read(TRACE.format("ValueError: topk"))
    assert [event.kind for event in refused[0].events] == ["refused"] if refused else False
    crashed, _ = read(arguments() + TRACE.format("ValueError: no weights"))
    assert [event.kind for event in crashed[0].events] == ["arguments", "crashed"]
    survived, _ = read(arguments() + TRACE.format("ValueError: a client's fault") + decode(4))
    assert "crashed" not in {event.kind for event in survived[0].events}
    later, _ = read(arguments() + decode(2) + TRACE.format("ValueError: a client's fault"))
    assert [event.kind for event in later[0].events] == ["arguments", "exception"]


def test_a_refused_restart_is_a_run_of_its_own():
    stop = "[2026-01-01 00:00:05] Gracefully exiting... Remaining number of requests 0.\n"
    refused = TRACE.format("AssertionError: topk").replace("a.py", "/x/sglang/srt/server_args.py")
    runs, _ = read(arguments(1) + decode(2) + stop + refused + arguments(7, 2))
    assert [len(run.windows) for run in runs] == [1, 0, 0]
    assert runs[1].events_of("refused")[0].values == {"exception": "AssertionError", "message": "topk"}
    assert [run.port for run in runs] == [1, None, 2]


def test_a_traceback_while_processes_are_shut_down_is_no_run():
    stop = "[2026-01-01 00:00:05] Gracefully exiting... Remaining number of requests 0.\n"
    (run,), _ = read(arguments(1) + decode(2) + stop + TRACE.format("RuntimeError: bus closed"))
    assert "crashed" not in {event.kind for event in run.events}


def test_a_refusal_of_the_parser():
    runs, _ = read("usage: launch_server.py [-h]\nlaunch_server.py: error: argument --tp: invalid int value: 'x'\n")
    assert runs[0].events_of("refused")[0].values == {"message": "argument --tp: invalid int value: 'x'"}


def test_decoys_and_torn_lines():
    quoted = f"[2026-01-01 00:00:01] Receive: obj=GenerateReqInput(text='{decode(2).strip()}')\n"
    pasted = f"as I said: {decode(2)}"
    torn = decode(2)[:-30] + '[2026-01-01 00:00:02] INFO:     127.0.0.1:5 - "GET / HTTP/1.1" 200 OK\n'
    (run,), reading = read(decode(1) + quoted + pasted + torn + decode(3))
    assert [window.line for window in run.windows] == [1, 5]
    assert reading.torn_samples == 1
    assert reading.unread == 0


def test_lines_nobody_knows_are_counted_by_shape():
    text = "".join(
        f"[2026-01-01 00:00:01] Frobnicated {number} of 'x{number}' in {number}.5 s\n" for number in range(5)
    )
    _, reading = read(decode(1) + text + "no engine line\n\n")
    assert (reading.unread, reading.lines, reading.engine_lines) == (5, 8, 6)
    (shape,) = reading.unread_shapes
    assert (shape.shape, shape.count, shape.example.line) == ("Frobnicated 0 of '_' in 0 s", 5, 2)


def test_colours_ray_carriage_returns_and_milliseconds():
    line = decode(1, " DP1 PP0 TP3").strip()
    ray = f"\x1b[36m(Scheduler pid=123, ip=10.0.0.1)\x1b[0m {line}\r\n"
    timed = decode(2).replace("00:00:02]", "00:00:02.250]")
    (run,), reading = read(ray + timed)
    assert {window.unit for window in run.windows} == {"DP1 PP0 TP3", ""}
    assert max(window.at for window in run.windows) == 1767225602.25
    assert reading.torn_samples == 0
    assert run.release_range.first is not None


def test_a_line_glued_to_the_tail_of_another_is_read():
    glued = "See https://nanobind.readthedocs.io/en/latest/refleaks.html" + decode(2)
    (run,), _ = read(decode(1) + glued)
    assert [window.line for window in run.windows] == [1, 2]
    assert run.windows[1].position == len(decode(1)) + len(
        "See https://nanobind.readthedocs.io/en/latest/refleaks.html"
    )


def test_tensor_ranks_that_repeat_one_another_are_one_unit():
    orders = (" TP0", " TP1", " TP2"), (" TP2", " TP0", " TP1"), (" TP1", " TP2", " TP0")
    lines = "".join(
        prefill(second, tags) + decode(second, tags, token=100 + second, throughput=f"{100 + rank}.00")
        for second, order in enumerate(orders, 1)
        for rank, tags in enumerate(order)
    )
    (run,), _ = read(lines)
    assert [window.unit for window in run.windows] == ["TP0"] * 3
    assert [window.prefills for window in run.windows] == [1, 1, 1]
    assert [window.unit for window in run.prefills] == ["TP0"] * 3


def test_data_ranks_and_differing_tensor_ranks_stay_apart():
    lines = decode(1, " DP0 TP0") + decode(1, " DP1 TP1") + decode(1, " DP2 TP2") + decode(2, " DP1 TP1")
    (run,), _ = read(lines)
    assert [window.unit for window in run.windows] == ["DP0 TP0", "DP1 TP1", "DP2 TP2", "DP1 TP1"]
    (other,), _ = read(decode(1, " TP0", token=5) + decode(1, " TP1", token=6))
    assert [window.unit for window in other.windows] == ["TP0", "TP1"]


def test_events_of_a_kind_are_capped_and_the_rest_counted():
    line = (
        "[2026-01-01 00:00:01] KV cache pool is full. Retract requests. #retracted_reqs: 1, #new_tokens_gained: 9, "
        "#new_token_ratio: 0.60 -> 0.90\n"
    )
    (run,), reading = read(line * (EVENTS_OF_A_KIND + 200))
    assert len(run.events_of("retracted")) == EVENTS_OF_A_KIND
    assert reading.notes == ("200 further events of kind retracted were read and not kept",)


@pytest.mark.parametrize("text", [b"[2026-13-01 00:00:00]", b"[2026-01-01 25:00:00]", b"[0000-01-01 00:00:00]", b"[x]"])
def test_instants_that_do_not_exist_are_no_prefix(text):
    assert read_head(text) is None
