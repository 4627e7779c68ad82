"""vLLM's lines: pairing, units, runs, forms of every release, wrappings of the prefix."""

import json
import os
from itertools import pairwise

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collector.bundle import joined
from collector.domain.versions import Release
from collector.formats.base import ReadOptions
from collector.formats.reader import LogReader
from collector.formats.vllm.prefix import Calendar, HeadReader, read_head
from collector.launch import parse_launch

SOAK = os.environ.get("DRAFTSCOPE_SOAK") == "1"


def read(text, *, launch=None, version=None, engine="vllm"):
    reader = LogReader(
        ReadOptions("log", Release.parse(version) if version else None, parse_launch(launch) if launch else None),
        engine,
    )
    reader.feed(text if isinstance(text, bytes) else text.encode())
    reader.finish()
    return joined(reader.take()), reader.summary()


def windows_of(text, **options):
    runs, _ = read(text, **options)
    return [window for run in runs for window in run.windows]


def engine_line(at="12:00:10", engine=0, process="(APIServer pid=7) ", rest="Prefix cache hit rate: 0.0%", **figures):
    values = {"prompt": 0.0, "generation": 100.0, "running": 2, "waiting": 0, "usage": 1.0} | figures
    return (
        f"{process}INFO 07-01 {at} [loggers.py:271] Engine {engine:03d}: "
        f"Avg prompt throughput: {values['prompt']:.1f} tokens/s, "
        f"Avg generation throughput: {values['generation']:.1f} tokens/s, Running: {values['running']} reqs, "
        f"Waiting: {values['waiting']} reqs, GPU KV cache usage: {values['usage']:.1f}%, {rest}\n"
    )


def acceptance_line(at="12:00:10", process="(APIServer pid=7) ", steps=500, accepted=500):
    rate = accepted / (2 * steps)
    return (
        f"{process}INFO 07-01 {at} [metrics.py:101] SpecDecoding metrics: Mean acceptance length: "
        f"{1 + accepted / steps:.2f}, Accepted throughput: {accepted / 10:.2f} tokens/s, Drafted throughput: "
        f"{steps / 5:.2f} tokens/s, Accepted: {accepted} tokens, Drafted: {2 * steps} tokens, Per-position acceptance "
        f"rate: {rate:.3f}, {rate:.3f}, Avg Draft acceptance rate: {100 * rate:.1f}%\n"
    )


def test_an_interval_is_one_window():
    windows = windows_of(
        engine_line("12:00:10", generation=90.0)
        + acceptance_line("12:00:10", steps=400)
        + engine_line("12:00:20", generation=100.0, prompt=5.0, usage=2.5, waiting=3)
        + acceptance_line("12:00:20", steps=500, accepted=600)
    )
    assert [window.verify_steps for window in windows] == [400, 500]
    late = windows[1]
    assert (late.accepted_tokens, late.drafted_tokens, late.accepted_at) == (600, 1000, (300.0, 300.0))
    assert (late.seconds, late.generated_tokens) == (10.0, 1000.0)
    assert (late.running_requests, late.waiting_requests, late.kv_cache_usage) == (2, 3, 0.025)
    assert (late.printed_length, late.printed_rate) == (2.2, 0.6)
    assert (windows[0].prefills, late.prefills) == (0, 1)
    assert late.unit == ""
    assert late.line == 4  # the line that states the acceptance


def test_an_interval_without_drafts_says_nothing_about_acceptance():
    windows = windows_of(engine_line("12:00:10") + engine_line("12:00:20") + acceptance_line("12:00:20"))
    assert [window.verify_steps for window in windows] == [None, 500]


def test_acceptance_lines_alone_are_windows():
    windows = windows_of(acceptance_line("12:00:10") + acceptance_line("12:00:20", steps=10, accepted=1))
    assert [(window.verify_steps, window.generation_throughput) for window in windows] == [(500, None), (10, None)]


@pytest.mark.parametrize("figure", ["2..5", "2.", ".5", "9" * 400])
def test_a_damaged_figure_makes_a_line_torn(figure):
    for damaged in (
        acceptance_line().replace("length: 2.00", f"length: {figure}"),
        acceptance_line().replace("throughput: 50.00", f"throughput: {figure}"),
        engine_line().replace("100.0 tokens", f"{figure} tokens"),
    ):
        assert figure in damaged
        runs, reading = read(damaged)
        assert [run.windows for run in runs] == [[]]
        assert reading.torn_samples == 1


def test_engines_are_paired_with_the_line_before_of_their_process():
    text = ""
    for at in ("12:00:10", "12:00:20"):
        for engine, steps in ((0, 100), (1, 200), (4, 300)):
            text += engine_line(at, engine) + acceptance_line(at, steps=steps, accepted=steps)
    windows = windows_of(text)
    assert [(window.unit, window.verify_steps) for window in windows] == 2 * [
        ("engine 0", 100),
        ("engine 1", 200),
        ("engine 4", 300),
    ]


def test_lines_of_two_processes_do_not_mix():
    one, two = "(ApiServer_0 pid=1) ", "(ApiServer_1 pid=2) "
    windows = windows_of(
        engine_line(engine=0, process=one)
        + engine_line(engine=1, process=two)
        + acceptance_line(process=two, steps=20, accepted=1)
        + acceptance_line(process=one, steps=10, accepted=1)
    )
    assert {window.unit: window.verify_steps for window in windows} == {"engine 0": 10, "engine 1": 20}


def test_an_engine_beside_others_is_named_even_alone_in_its_log():
    assert [window.unit for window in windows_of(engine_line(engine=4) + engine_line("12:00:20", engine=4))] == [
        "engine 4",
        "engine 4",
    ]
    first = engine_line(engine=0)
    assert windows_of(first, launch="vllm serve m --data-parallel-size 8")[0].unit == "engine 0"
    assert windows_of(first)[0].unit == ""


def test_units_do_not_depend_on_when_they_are_taken():
    text = engine_line("12:00:10") + engine_line("12:00:10", 1) + engine_line("12:00:20") + engine_line("12:00:20", 1)
    reader = LogReader(ReadOptions("log"), "vllm")
    parts = []
    for line in text.encode().splitlines(keepends=True):
        reader.feed(line)
        parts += reader.take()
    reader.finish()
    (run,) = joined(parts + reader.take())
    assert [window.unit for window in run.windows] == [window.unit for window in windows_of(text)]
    assert {window.unit for window in run.windows} == {"engine 0", "engine 1"}


def test_engines_summed_up_in_one_line_are_one_unit():
    line = engine_line().replace("Engine 000", "2 Engines Aggregated")
    assert [window.unit for window in windows_of(line + acceptance_line())] == [""]


def test_after_a_pause_the_clock_of_the_throughput_is_not_known():
    idle = engine_line("12:00:10", generation=0.0, running=0)
    busy = engine_line("12:05:20", generation=50.0)
    late = acceptance_line("12:05:20").replace("Drafted throughput: 100.00", "Drafted throughput: 3.33")
    windows = windows_of(idle + busy + late)
    assert windows[1].seconds == pytest.approx(300, rel=0.01)  # the acceptance clock holds the pause
    assert windows[1].generated_tokens is None
    assert windows_of(engine_line("12:00:10", generation=0.0) + engine_line("12:05:20"))[1].seconds is None


def test_prompt_tokens_and_the_cached_ones_that_the_printed_share_implies():
    text = engine_line("12:00:10") + engine_line("12:00:20", prompt=80.0, rest="Prefix cache hit rate: 20.0%")
    (prefill,) = read(text)[0][0].prefills
    assert (prefill.new_tokens, prefill.cached_tokens) == (800.0, 200.0)
    start = "INFO 07-01 12:00:00 [api_server.py:1] vLLM API server version 0.11.0\n"
    (prefill,) = read(start + text)[0][0].prefills  # up to 0.15 the throughput counts cached tokens as well
    assert (prefill.new_tokens, prefill.cached_tokens) == (640.0, 160.0)


# ---- forms of other releases

V0 = (
    "INFO 07-24 04:00:{second} metrics.py:295] Avg prompt throughput: 558.7 tokens/s, Avg generation throughput: "
    "127.4 tokens/s, Running: 2 reqs, Swapped: 0 reqs, Pending: 1 reqs, GPU KV cache usage: 0.8%, "
    "CPU KV cache usage: 0.0%.\n"
    "INFO 07-24 04:00:{second} metrics.py:305] Prefix cache hit rate: GPU: 50.00%, CPU: 0.00%\n"
    "INFO 07-24 04:00:{second} metrics.py:316] Speculative metrics: Draft acceptance rate: {rate}, System efficiency: "
    "0.059, Number of speculative tokens: 4, Number of accepted tokens: 9, Number of draft tokens{twice}: {drafted}, "
    "Number of emitted tokens{twice}: {emitted}.\n"
)


def v0(second, drafted, emitted, twice="", rate="0.612"):
    return V0.format(second=second, drafted=drafted, emitted=emitted, twice=twice, rate=rate)


@pytest.mark.parametrize("twice", ["", " tokens"])
def test_v0_counters_are_cumulative(twice):
    runs, reading = read(v0(31, 400, 250, twice) + v0(36, 1000, 610, twice) + v0(41, 1000, 610, twice, rate="nan"))
    windows = runs[0].windows
    assert [(window.verify_steps, window.accepted_tokens, window.drafted_tokens) for window in windows] == [
        (100, 150, 400),
        (150, 210, 600),
        (0, 0, 0),
    ]
    assert windows[0].waiting_requests == 1
    assert windows[0].kv_cache_usage == 0.008
    assert [event.values for event in runs[0].events_of("system-efficiency")] == [{"system_efficiency": 0.059}]
    assert runs[0].arguments.value("num_speculative_tokens") == 4
    assert str(runs[0].release_range) == "0.9.2 and earlier"
    assert any("V0" in note for note in reading.notes)
    assert [prefill.cached_tokens for prefill in runs[0].prefills] == [pytest.approx(558.7 * 5)] * 2


def test_v0_counters_that_fall_begin_anew():
    runs, _ = read(v0(31, 400, 250) + v0(36, 40, 25))
    assert [window.verify_steps for window in runs[0].windows] == [100, 10]
    (reset,) = runs[0].events_of("counter-reset")
    assert reset.evidence.line == 6


OLD = "SpecDecoding metrics: Draft acceptance rate: 61.5%, Mean acceptance length: "


@pytest.mark.parametrize(
    ("line", "steps", "releases"),
    [
        (
            f"{OLD}1.23, Accepted: 123 tokens, Drafted: 200 tokens, Per-position acceptance rate: 0.700, 0.530",
            100,
            "0.8.5",
        ),
        (
            f"{OLD}2.23, Accepted: 123 tokens, Drafted: 200 tokens, Per-position acceptance rate: 0.700, 0.530",
            100,
            "0.9.0 to 0.10.1",
        ),
        (
            "SpecDecoding metrics: Draft acceptance rate: 100.0%, Accepted: 66 tokens, Drafted: 66 tokens",
            33,
            "0.8.3 to 0.8.4",
        ),
        (
            "Speculative metrics: Draft acceptance rate: 1.000, Number of accepted tokens: 66, Number of draft tokens: 66, ",
            33,
            "0.8.2",
        ),
    ],
)
def test_first_forms_of_the_acceptance_line(line, steps, releases):
    text = engine_line(process="") + f"INFO 07-01 12:00:10 [metrics.py:48] {line}\n"
    runs, _ = read(text, launch="vllm serve m --speculative-config '{\"num_speculative_tokens\": 2}'")
    (window,) = runs[0].windows
    assert window.verify_steps == steps
    assert str(runs[0].release_range) == releases


def test_a_length_without_the_targets_token_is_not_taken_for_one_with_it():
    line = (
        "INFO 07-01 12:00:10 [metrics.py:48] SpecDecoding metrics: Draft acceptance rate: 61.5%, Mean acceptance length: "
        "1.23, Accepted: 123 tokens, Drafted: 200 tokens, Per-position acceptance rate: 0.700, 0.530\n"
    )
    runs, reading = read(line)
    (window,) = runs[0].windows
    assert 1 + window.accepted_tokens / window.verify_steps == 2.23
    assert window.printed_length is None
    assert any("leaves out the target's own token" in note for note in reading.notes)


def test_nan_where_nothing_was_drafted():
    line = (
        "INFO 07-01 12:00:10 [metrics.py:48] SpecDecoding metrics: Draft acceptance rate: nan%, Mean acceptance length: "
        "nan, Accepted: 0 tokens, Drafted: 0 tokens, Per-position acceptance rate: nan, nan\n"
    )
    (window,) = windows_of(line)
    assert (window.verify_steps, window.accepted_tokens) == (0, 0)


# ---- the prefix


@pytest.mark.parametrize(
    "wrap",
    [
        lambda line: line,
        lambda line: line.replace("\n", "\r\n"),
        lambda line: line.replace(
            "(APIServer pid=7) INFO 07-01 12:00:10 [", "\x1b[0;36m(APIServer pid=7)\x1b[0;0m \x1b[32mINFO\x1b[0m "
            "\x1b[90m07-01 12:00:10\x1b[0m \x1b[90m["
        ).replace("] ", "]\x1b[0m ", 1),
        lambda line: json.dumps(
            {"asctime": "07-01 12:00:10", "levelname": "INFO", "name": "vllm.v1", "process": 7,
             "message": line.split("] ", 1)[1].rstrip()}
        ) + "\n",
    ],
    ids=["plain", "crlf", "colour", "json"],
)  # fmt: skip
def test_ways_to_print_a_line(wrap):
    text = wrap(engine_line()) + wrap(acceptance_line())
    plain = windows_of(engine_line() + acceptance_line())
    got = windows_of(text, engine=None)
    assert [window._replace(position=0) for window in got] == [window._replace(position=0) for window in plain]


@pytest.mark.parametrize("text", [b"INFO 13-01 00:00:00 [a.py:1]", b"INFO 01-32 00:00:00 [a.py:1]", b"INFO x", b"]"])
def test_what_is_no_prefix(text):
    assert read_head(text) is None


def test_dates_without_a_year_keep_their_order_over_the_new_year():
    calendar, heads = Calendar(), HeadReader()
    stamps = (
        "12-31 23:59:50",
        "01-01 00:00:00",
        "12-31 23:59:59",
        "01-01 00:00:10",
        "02-29 00:00:00",
        "03-01 00:00:00",
    )
    instants = [calendar.at(heads.read(f"INFO {stamp} [a.py:1] x".encode()).head) for stamp in stamps]
    assert [late - early for early, late in pairwise(instants)] == [10, -1, 11, 5097590.0, 86400]


def test_a_dated_line_of_another_writer_tells_the_year():
    dated = "2026-02-01 10:00:00,123 INFO worker.py:1879 -- Started a local Ray instance.\n"
    run = read(dated + engine_line())[0][0]
    assert run.windows[0].at == 1782907210.0
    assert run.started_at == run.windows[0].at
    assert read(engine_line())[0][0].started_at is None


# ---- runs

START = "(APIServer pid=7) INFO 07-01 11:59:00 [api_server.py:1] vLLM API server version {version}\n"
ASKED = "(APIServer pid=7) INFO 07-01 11:59:00 [utils.py:1] non-default args: {given}\n"
CONFIG = (
    "({process} pid=8) INFO 07-01 11:59:10 [core.py:1] Initializing a V1 LLM engine (v0.11.0) with config: model='/m/t', "
    "speculative_config={speculative}, tokenizer='/m/t', dtype=torch.bfloat16, max_seq_len=512, seed=0, "
    "served_model_name=/m/t, enable_prefix_caching=True, compilation_config={{'mode': <CompilationMode.NONE: 0>, "
    "'cudagraph_mode': <CUDAGraphMode.PIECEWISE: 1>, 'max_cudagraph_capture_size': 512}}\n"
)
READY = "(APIServer pid=7) INFO:     Application startup complete.\n"


def start(version="0.11.0", given="{'model_tag': '/m/t'}", speculative="None", process="EngineCore_DP0"):
    return (
        START.format(version=version)
        + ASKED.format(given=given)
        + CONFIG.format(process=process, speculative=speculative)
        + READY
    )


def test_what_was_asked_and_what_runs():
    given = (
        "{'model_tag': '/m/t', 'api_key': ['sk-abcdefghijklmnop'], 'max_model_len': 512, 'compilation_config': "
        "CompilationConfig(level=3), 'speculative_config': {'method': 'deepseek_mtp', 'num_speculative_tokens': 2}}"
    )
    speculative = "SpeculativeConfig(method='mtp', model='/m/t', num_spec_tokens=2)"
    run = read(start(given=given, speculative=speculative))[0][0]
    arguments = run.arguments
    assert str(run.engine_version) == "0.11.0"
    assert (arguments["model"].requested, arguments["model"].effective) == ("/m/t", "/m/t")
    assert arguments["speculative_config.method"].requested == "deepseek_mtp"
    assert arguments["speculative_config.method"].effective == "mtp"
    assert arguments["speculative_config.num_speculative_tokens"].effective == 2
    assert arguments["dtype"].effective == "bfloat16"
    assert arguments["max_model_len"].effective == 512
    assert arguments["compilation_config.cudagraph_mode"].effective == "PIECEWISE"
    assert arguments["compilation_config.max_cudagraph_capture_size"].effective == 512
    assert arguments["api_key"].requested == "***"
    assert "sk-abc" not in str([event.evidence for event in run.events])
    assert arguments["speculative_config.method"].effective_evidence.line == 3


def test_a_line_with_all_arguments_tells_those_that_are_set():
    line = (
        "INFO 04-20 06:09:02 [api_server.py:1044] args: Namespace(subparser='serve', model_tag='/m/t', host=None, "
        "port=8000, enforce_eager=False, dtype='auto', speculative_config={'method': 'ngram', 'num_speculative_tokens': "
        "5}, dispatch_function=<function ServeSubcommand.cmd at 0x7f>)\n"
    )
    asked = read(line)[0][0].arguments.requested()
    assert asked == {
        "subparser": "serve",
        "model": "/m/t",
        "port": 8000,
        "speculative_config.method": "ngram",
        "speculative_config.num_speculative_tokens": 5,
    }


def test_without_speculation_the_configuration_says_so():
    arguments = read(start())[0][0].arguments
    assert arguments["speculative_config"].effective is None


def test_restarts_are_runs_of_their_own():
    runs, _ = read(start() + engine_line() + start("0.12.0") + engine_line("12:01:00") + engine_line("12:01:10"))
    assert [(str(run.engine_version), len(run.windows)) for run in runs] == [("0.11.0", 1), ("0.11.0", 2)]
    assert all(len(run.events_of("ready")) == 1 for run in runs)


def test_engines_of_one_server_are_one_run():
    both = start() + CONFIG.format(process="EngineCore_DP1", speculative="None")
    assert len(read(both)[0]) == 1


def test_the_configuration_line_begins_a_run_where_no_server_is_named():
    line = CONFIG.format(process="EngineCore", speculative="None")
    assert len(read(line + engine_line() + line)[0]) == 2


def test_a_crash_is_told_by_the_exception_of_the_engine():
    trace = "(EngineCore_DP0 pid=8) ERROR 07-01 12:00:15 [core.py:710] {}\n"
    crash = "".join(
        trace.format(text)
        for text in (
            "EngineCore encountered a fatal error.",
            "Traceback (most recent call last):",
            '  File "/x/vllm/v1/engine/core.py", line 701, in run_engine_core',
            "    engine_core.run_busy_loop()",
            "torch.OutOfMemoryError: CUDA out of memory.",
        )
    )
    after = (
        "(APIServer pid=7) ERROR 07-01 12:00:15 [async_llm.py:480] AsyncLLM output_handler failed.\n"
        "(APIServer pid=7) ERROR 07-01 12:00:15 [async_llm.py:480] Traceback (most recent call last):\n"
        "(APIServer pid=7) ERROR 07-01 12:00:15 [async_llm.py:480] vllm.v1.engine.exceptions.EngineDeadError: "
        "EngineCore encountered an issue. See stack trace (above) for the root cause.\n"
    )
    runs, reading = read(start() + engine_line() + crash + after)
    (event,) = runs[0].events_of("crashed")
    assert event.values["exception"] == "torch.OutOfMemoryError"
    assert event.evidence.line == 10
    assert reading.unread == 0


@pytest.mark.parametrize("process", ["(APIServer pid=7) ", ""])
def test_a_refused_start_names_the_setting(process):
    text = START.format(version="0.17.1") + "".join(
        f"{process}{line}\n"
        for line in (
            "Traceback (most recent call last):",
            '  File "/x/vllm/entrypoints/cli/main.py", line 120, in main',
            "pydantic_core._pydantic_core.ValidationError: 1 validation error for SpeculativeConfig",
            "disable_by_batch_size",
            "  Unexpected keyword argument [type=unexpected_keyword_argument, input_value=4, input_type=int]",
            "    For further information visit https://errors.pydantic.dev/2.12/v/unexpected_keyword_argument",
        )
    )
    runs, _ = read(text + START.format(version="0.17.1"))
    assert len(runs) == 2
    (event,) = runs[0].events_of("refused")
    assert event.values["message"] == "Unexpected keyword argument"
    assert runs[1].events_of("refused") == []


def test_an_exception_while_serving_is_no_crash():
    trace = (
        "(APIServer pid=7) ERROR:    Exception in ASGI application\n"
        "(APIServer pid=7) Traceback (most recent call last):\n"
        '(APIServer pid=7)   File "/x/uvicorn/protocols.py", line 1, in run\n'
        "(APIServer pid=7) ValueError: bad request\n"
    )
    run = read(start() + engine_line() + trace + engine_line("12:00:20"))[0][0]
    assert run.events_of("crashed") == []
    assert [event.values["message"] for event in run.events_of("exception")] == ["bad request"]


def test_the_parser_refuses_an_option():
    run = read(START.format(version="0.8.5") + "vllm serve: error: unrecognized arguments: --speculative-model\n")[0][0]
    assert [event.values["message"] for event in run.events_of("refused")] == [
        "unrecognized arguments: --speculative-model"
    ]


def test_what_the_engine_decides_becomes_effective():
    line = (
        "(APIServer pid=7) WARNING 07-01 12:00:00 [vllm.py:806] Async scheduling not supported with ngram-based "
        "speculative decoding and will be disabled.\n"
    )
    run = read(line + line.replace("APIServer", "EngineCore"))[0][0]
    assert run.arguments["async_scheduling"].effective is False
    (event,) = run.events_of("announcement")
    assert event.values == {"async_scheduling": False, "method": "ngram"}


def test_decoys_and_torn_lines():
    decoy = (
        "(APIServer pid=7) INFO 07-01 12:00:11 [logger.py:1] Received request cmpl-1: prompt: 'Engine 000: Avg prompt"
    )
    torn = engine_line()[:120] + "\n"
    runs, reading = read(engine_line() + decoy + "\n" + torn + "SpecDecoding metrics: Mean acceptance length: 9.99\n")
    assert len(runs[0].windows) == 1
    assert reading.torn_samples == 1
    assert reading.unread == 0


def test_lines_nobody_knows_are_counted_by_shape():
    unknown = "(APIServer pid=7) INFO 07-01 12:00:11 [patch.py:1] Zap 12 quux\n"
    _, reading = read(engine_line() + unknown + unknown.replace("12 quux", "13 quux"))
    assert [(shape.shape, shape.count) for shape in reading.unread_shapes] == [("Zap 0 quux", 2)]


# ---- any bytes

PIECES = [
    b"(APIServer pid=1) ", b"INFO 07-01 12:00:00 [loggers.py:1] ", b"ERROR 07-01 12:00:01 [core.py:1] ",
    b"Engine 000: Avg prompt throughput: 1.0 tokens/s, ",
    b"Avg generation throughput: 1.0 tokens/s, Running: 1 reqs, Waiting: 0 reqs, GPU KV cache usage: 1.0%",
    acceptance_line().encode(), engine_line().encode(), v0(31, 400, 250).encode(),
    b"vLLM API server version 0.9", b"non-default args: {'a': [1, {2: \"x\"", b"args: Namespace(a=1, ",
    b"Initializing a V1 LLM engine (v0) with config: model='m', speculative_config=SpeculativeConfig(method=",
    b"Traceback (most recent call last):\n", b"ValueError: x", b"EngineCore encountered a fatal error.",
    b"Application startup complete.", b"INFO:     ", b"\x1b[1;33m", b"\n", b"\r\n", b"\x00\xff", b'{"levelname": ',
]  # fmt: skip


@given(st.lists(st.one_of(st.sampled_from(PIECES), st.binary(max_size=8)), max_size=40).map(b"".join))
@settings(max_examples=2000 if SOAK else 200, suppress_health_check=[HealthCheck.too_slow])
def test_any_bytes_are_read(data):
    runs, reading = read(data)
    assert reading.understood + reading.unread + reading.torn_samples <= reading.lines + 1
    for run in runs:
        assert len({window.position for window in run.windows}) == len(run.windows)


def test_a_fatal_error_is_one_of_an_engine_that_had_started():
    head = "(EngineCore_DP0 pid=812) ERROR 02-16 10:00:00 [core.py:946] "
    lines = [
        "EngineCore encountered a fatal error.",
        "Traceback (most recent call last):",
        '  File "core.py", line 1, in run',
    ]
    lines.append("AttributeError: 'EagleProposer' object has no attribute 'positions'")
    (run,) = read("".join(f"{head}{line}\n" for line in lines))[0]
    assert [event.kind for event in run.events if event.kind in {"crashed", "refused"}] == ["crashed"]
