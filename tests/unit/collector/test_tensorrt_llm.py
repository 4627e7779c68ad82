"""TensorRT-LLM: iterations in words and as JSON, messages, launch commands, hostile bytes."""

import json
import os

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from analysis.drafting import drafting_of
from collector.bundle import joined
from collector.domain.arguments import Arguments
from collector.formats.base import ReadOptions
from collector.formats.reader import LogReader
from collector.formats.tensorrt_llm.iterations import ITERATIONS, instant
from collector.launch import parse_launch, with_settings

SOAK = os.environ.get("DRAFTSCOPE_SOAK") == "1"


def read(text, engine="tensorrt-llm"):
    reader = LogReader(ReadOptions("log"), engine)
    reader.feed(text if isinstance(text, bytes) else text.encode())
    reader.finish()
    return joined(reader.take()), reader.summary()


def words(number, running=3, prompts=0, rank=0, head="[01/16/2026-06:20:17] [TRT-LLM] [RANK 0] [I] "):
    return (
        f"{head}iter = {number}, global_rank = {rank}, rank = {rank}, currank_total_requests = 0/9, host_step_time = 50.5ms, "
        f"prev_device_step_time = N/A, timestamp = 2026-01-16 06:20:{number % 60:02d}, num_scheduled_requests: {running}, "
        f"states = {{'num_ctx_requests': {prompts}, 'num_ctx_tokens': 0, 'num_generation_tokens': 12}}\n"
    )


def row(number, drafted=12, accepted=7, requests=4, **more):
    drafts = {"numDraftTokens": drafted, "numAcceptedTokens": accepted, "numRequestsWithDraftTokens": requests,
              "acceptanceLength": 1 + accepted / max(requests, 1), "iterLatencyMS": 1.0, "draftOverhead": 0.1}  # fmt: skip
    return {
        "iter": number,
        "iterLatencyMS": 20.0,
        "timestamp": f"01-16-2026 06:20:{number % 60:02d}.500000",
        "numActiveRequests": requests,
        "numQueuedRequests": 2,
        "inflightBatchingStats": {
            "numScheduledRequests": requests,
            "numContextRequests": 0,
            "numGenRequests": requests,
        },
        "kvCacheStats": {"usedNumBlocks": 25, "maxNumBlocks": 100},
        "specDecodingStats": drafts,
        **more,
    }


def test_iterations_in_words_become_windows_of_a_fixed_number():
    runs, reading = read("".join(words(number) for number in range(100)), engine=None)
    windows = runs[0].windows
    assert [round(window.seconds / 0.0505) for window in windows] == [ITERATIONS, ITERATIONS, 20]
    assert windows[0].running_requests == 3
    assert windows[0].verify_steps is None  # the line counts scheduled tokens, not accepted ones
    assert reading.unread == reading.torn_samples == 0


@pytest.mark.parametrize(
    ("head", "middle"),
    [
        ("[TRT-LLM] [I] [_torch][RANK 0] ", "num_scheduled_requests = 3, kv_cache_util = 0.1, host_step_time = 5.0ms"),
        ("[04/28/2025-09:56:44] [TRT-LLM] [I] ", "elapsed_time = 0.005s, num_scheduled_requests: 3"),
    ],
)
def test_words_of_other_releases(head, middle):
    text = f"{head}iter = 5, global_rank = 0, rank = 0, {middle}, states = {{'num_ctx_requests': 1, 'num_ctx_tokens': 9}}\n"
    (window,) = read(text)[0][0].windows
    assert (window.seconds, window.running_requests, window.prefills) == (0.005, 3, 1)


def test_counts_of_the_metrics_endpoint_are_summed():
    rows = [row(number) for number in range(5)]
    by_line = "".join(json.dumps(item) + "\n" for item in rows)
    by_answer = json.dumps(rows[:3]) + "\n[]\n" + json.dumps(rows[3:]) + "\n"
    for text in (by_line, by_answer):
        (window,) = read(text, engine=None)[0][0].windows
        assert (window.accepted_tokens, window.drafted_tokens, window.verify_steps) == (35, 60, 20)
        assert window.generated_tokens == 5 * 4 + 35
        assert window.seconds == pytest.approx(0.1)
        assert window.generation_throughput == pytest.approx(550)
        assert (window.waiting_requests, window.kv_cache_usage) == (2, 0.25)
        assert window.at == instant("2026-01-16 06:20:04.5")


def test_rows_of_other_ranks_repeat_the_first_ones_drafts():
    text = "".join(json.dumps(row(1, attentionDpRank=rank)) + "\n" for rank in range(4))
    windows = read(text)[0][0].windows
    assert sum(window.accepted_tokens or 0 for window in windows) == 7
    assert sum(window.generated_tokens for window in windows) == 4 * 4 + 7
    assert [window.unit for window in windows] == ["", "rank 1", "rank 2", "rank 3"]


def test_without_drafts_nothing_is_said_about_acceptance():
    plain = row(1)
    del plain["specDecodingStats"]
    (window,) = read(json.dumps(plain) + "\n")[0][0].windows
    assert (window.verify_steps, window.generated_tokens) == (None, 4)


def test_iterations_that_begin_anew_are_another_run():
    runs, _ = read("".join(words(number) for number in (*range(1, 50), *range(1, 20))))
    assert [sum(round(window.seconds / 0.0505) for window in run.windows) for run in runs] == [49, 19]


def test_what_the_engine_says_about_speculation():
    version = "[TensorRT-LLM] TensorRT-LLM version: 1.1.0rc5\n"
    warned = (
        "[01/16/2026-06:20:17] [TRT-LLM] [W] MTP: max_draft_len (5) does not match num_nextn_predict_layers (3); using "
        "max_draft_len=3 draft tokens.\n"
    )
    overlap = "[01/16/2026-06:20:17] [TRT-LLM] [W] Disable overlap scheduler for speculation mode NGRAM\n"
    closed = (
        "[01/16/2026-06:20:17] [TRT-LLM] [I] [SpeculationGate] Speculative decoding disabled: rolling acceptance avg 0.812 < "
        "threshold 1.5 over last 20 requests\n"
    )
    run = read(version + warned + overlap + closed)[0][0]
    assert str(run.engine_version) == "1.1.0rc5"
    assert run.arguments["speculative_config.max_draft_len"].effective == 3
    assert run.arguments["disable_overlap_scheduler"].effective is True
    (gate,) = run.events_of("speculation-off")
    assert gate.values == {"average": 0.812, "threshold": 1.5, "window": 20}


def test_a_start_that_was_refused():
    text = (
        "[01/16/2026-06:20:17] [TRT-LLM] [I] Using LLM with PyTorch backend\n"
        "Traceback (most recent call last):\n"
        '  File "/x/tensorrt_llm/llmapi/llm_args.py", line 1, in validate\n'
        "ValueError: Speculation type MEDUSA does not support backend pytorch\n"
    )
    (event,) = read(text)[0][0].events_of("refused")
    assert event.values["message"] == "Speculation type MEDUSA does not support backend pytorch"


def test_torn_lines_and_lines_nobody_knows():
    _, reading = read(
        words(1) + words(2)[:90] + "\n" + '{"iter": 3, "iterLat\n' + "[01/16/2026-06:20:17] [TRT-LLM] [I] zap 1\n"
    )
    assert reading.torn_samples == 2
    assert [shape.shape for shape in reading.unread_shapes] == ["zap 0"]


def test_the_launch_command_and_its_options_file():
    launch = parse_launch(
        "TLLM_LOG_LEVEL=debug trtllm-serve serve /m/t --tp_size 4 --extra_llm_api_options /cfg/run.yaml "
        "--set speculative_config.max_draft_len=3"
    )
    assert launch.engine == "tensorrt-llm"
    assert launch.environment == {"TLLM_LOG_LEVEL": "debug"}
    settings_file = "enable_iter_perf_stats: true\nspeculative_config:\n  decoding_type: MTP\n  max_draft_len: 2\n"
    complete = with_settings(launch, settings_file, "run.yaml")
    assert complete.requested == {
        "model": "/m/t",
        "tensor_parallel_size": 4,
        "config": "/cfg/run.yaml",
        "enable_iter_perf_stats": True,
        "speculative_config.decoding_type": "MTP",
        "speculative_config.max_draft_len": 3,  # the command line wins over the file
    }
    drafting = drafting_of("tensorrt-llm", Arguments().with_launch(complete))
    assert (drafting.method, drafting.depth, drafting.width) == ("mtp", 3, 4)


PIECES = [
    words(1).encode(), words(2)[:80].encode(), json.dumps(row(1)).encode(), json.dumps([row(1), row(2)]).encode(), b'{"iter": 1e400}',
    b'{"iter": 3, "specDecodingStats": {"numDraftTokens": NaN}}', b"[TRT-LLM] [I] ", b"[01/99/2026-06:20:17] [TRT-LLM] [W] ",
    b"TensorRT-LLM version: x", b"Traceback (most recent call last):\n", b"ValueError: x\n", b"\n", b"\r\n", b"\x00\xff", b"\x1b[1m",
]  # fmt: skip


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=8)), max_size=40).map(b"".join))
@settings(max_examples=2000 if SOAK else 200, suppress_health_check=[HealthCheck.too_slow])
def test_any_bytes_are_read(data):
    runs, reading = read(data)
    pieces = reading.lines + data.count(b"\r")  # a line that a progress bar drew over is several
    assert reading.torn_samples + reading.unread <= pieces
    for run in runs:
        assert len({window.position for window in run.windows}) == len(run.windows)
