"""Engines that count their drafts: their samples as states, and windows between any two of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collector.domain.arguments import Arguments
from collector.domain.errors import MalformedInput
from collector.domain.windows import Origin, Window
from collector.metrics import engine_of, engines
from collector.metrics.base import EngineInfo, EngineMetrics, EngineState, Taken
from collector.metrics.exposition import parse_exposition
from tests.unit.theory.repeated import checks

GOLDEN = Path(__file__).parents[2] / "golden" / "metrics"
BY_NAME = {engine.engine: engine for engine in engines()}
VLLM, LLAMACPP, TENSORRT = BY_NAME["vllm"], BY_NAME["llamacpp"], BY_NAME["tensorrt-llm"]
NOTHING = EngineInfo()


def state(engine: EngineMetrics, text: str, at: float = 0.0, info: EngineInfo = NOTHING) -> EngineState:
    samples = parse_exposition(text.encode(), wanted=engine.sample_names)
    told = engine.stated(samples, info.arguments, "metrics")
    return engine.state(samples, EngineInfo(arguments=Arguments({**told.by_name, **info.arguments.by_name})), at)


def told(engine: EngineMetrics, text: str) -> dict[str, object]:
    samples = parse_exposition(text.encode(), wanted=engine.sample_names)
    return {name: item.effective for name, item in engine.stated(samples, Arguments(), "metrics").items()}


def windows(engine: EngineMetrics, *states: EngineState) -> list[Window]:
    """All windows of a process that was scraped at these states."""
    found: list[Window] = []
    before = None
    for after in states:
        interval = engine.interval(before, after, NOTHING)
        found += interval.windows
        before = interval.state
    return found


def vllm(
    drafts: float = 100, accepted: tuple[float, ...] = (80, 50, 20), tokens: float = 300, engine: str = "0"
) -> str:
    labels = f'engine="{engine}",model_name="m"'
    lines = [
        f"vllm:spec_decode_num_drafts_total{{{labels}}} {drafts}",
        f"vllm:spec_decode_num_drafts_created{{{labels}}} 1.7852e+09",
        f"vllm:spec_decode_num_draft_tokens_total{{{labels}}} {drafts * len(accepted)}",
        f"vllm:spec_decode_num_accepted_tokens_total{{{labels}}} {sum(accepted)}",
        *(
            f'vllm:spec_decode_num_accepted_tokens_per_pos_total{{{labels},position="{i}"}} {count}'
            for i, count in enumerate(accepted)
        ),
        f"vllm:generation_tokens_total{{{labels}}} {tokens}",
        f"vllm:num_requests_running{{{labels}}} 3.0",
        f"vllm:num_requests_waiting{{{labels}}} 1.0",
        f"vllm:kv_cache_usage_perc{{{labels}}} 0.25",
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    "label", ['position="x"', 'position="²"', 'position="99999999999"', 'position="-1"', 'place="0"']
)
@pytest.mark.parametrize("engine", [VLLM, LLAMACPP], ids=lambda engine: engine.engine)
def test_a_position_that_is_none_is_left_out(engine, label):
    page = vllm() if engine is VLLM else llamacpp(400, decodes=200, drafts=100, accepted=(80, 50, 20), running=1)
    name = "vllm:" if engine is VLLM else "llamacpp:"
    odd = f"{name}spec_decode_num_accepted_tokens_per_pos_total{{{label}}} 7\n"
    if engine is VLLM:
        odd = odd.replace("{", '{engine="0",model_name="m",')
    assert told(engine, page + odd) == told(engine, page)
    (expected,) = state(engine, page).units.values()
    (found,) = state(engine, page + odd).units.values()
    assert found.accepted_at == expected.accepted_at == (80, 50, 20)


# ---- vLLM


def test_a_single_engine_has_no_name_and_several_are_named_as_the_log_names_them():
    assert list(state(VLLM, vllm()).units) == [""]
    several = state(VLLM, "".join(vllm(engine=str(n)) for n in (10, 0, 4)))
    assert list(several.units) == ["engine 0", "engine 4", "engine 10"]
    assert several.units["engine 4"].accepted_at == (80, 50, 20)


def test_engines_are_counted_apart_and_rates_never_averaged():
    before = state(VLLM, vllm(100, (90,), engine="0") + vllm(10, (1,), engine="1"))
    after = state(VLLM, vllm(300, (270,), engine="0") + vllm(20, (2,), engine="1"), at=10.0)
    first, second = VLLM.interval(before, after, NOTHING).windows
    assert (first.unit, first.verify_steps, first.accepted_at) == ("engine 0", 200, (180,))
    assert (second.unit, second.verify_steps, second.accepted_at) == ("engine 1", 10, (1,))


def test_an_engine_that_got_siblings_is_not_counted_twice():
    """Elastic servers add engines; the first one had no name before."""
    found = windows(VLLM, state(VLLM, vllm(100)), state(VLLM, vllm(150) + vllm(30, engine="1"), at=10.0))
    assert sum(window.verify_steps for window in found) == 180


def test_instants_of_birth_are_no_counters():
    only = state(VLLM, vllm())
    assert max(only.counters.values()) < 1_000
    assert not any("_created" in name for name, _ in only.counters)


def test_there_are_as_many_positions_as_draft_tokens():
    assert told(VLLM, vllm(accepted=(5, 4, 3, 2, 1))) == {"speculative_config.num_speculative_tokens": 5}


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('vllm:kv_cache_usage_perc{engine="0"} 0.1\n', {"speculative_config": None}),
        ('vllm:gpu_cache_usage_perc{engine="0"} 0.1\n', {}),  # 0.8.2 counted nothing
    ],
)
def test_no_drafts_means_plain_where_the_release_would_count_them(text, says):
    assert told(VLLM, text) == says


@pytest.mark.parametrize("release", ["old", "new"])
def test_renamed_metrics_are_read_by_either_name(release):
    """0.8.5 to 0.9.1, and 0.10.2 on; in between both names stand beside one another with the same values."""
    old = 'vllm:gpu_cache_usage_perc{engine="0"} 0.5\nvllm:time_per_output_token_seconds_count{engine="0"} 90.0\n'
    new = 'vllm:kv_cache_usage_perc{engine="0"} 0.5\nvllm:inter_token_latency_seconds_count{engine="0"} 90.0\n'
    common = (
        'vllm:time_to_first_token_seconds_count{engine="0"} 10.0\nvllm:iteration_tokens_total_count{engine="0"} 50.0\n'
    )
    for text in ({"old": old, "new": new}[release], old + new):
        unit = state(VLLM, text + common).units[""]
        assert (unit.kv_cache_usage, unit.request_passes, unit.target_passes, unit.prompts) == (0.5, 100, 50, 10)


def test_names_without_colon_are_the_same_names():
    plain, sanitised = state(VLLM, vllm()), state(VLLM, vllm().replace("vllm:", "vllm_"))
    assert sanitised == plain
    assert engine_of(vllm().replace("vllm:", "vllm_").encode()) is VLLM


def test_the_draft_counters_of_the_v0_engine_are_not_believed():
    """They add their own totals up again and again."""
    v0 = (
        'vllm:spec_decode_num_draft_tokens_total{model_name="m"} 84000.0\n'
        'vllm:spec_decode_num_accepted_tokens_total{model_name="m"} 51000.0\n'
        'vllm:spec_decode_num_emitted_tokens_total{model_name="m"} 60000.0\n'
        'vllm:spec_decode_draft_acceptance_rate{model_name="m"} 0.612\n'
        'vllm:generation_tokens_total{model_name="m"} 900.0\n'
        'vllm:gpu_cache_usage_perc{model_name="m"} 0.1\n'
    )
    (window,) = windows(VLLM, state(VLLM, v0))
    assert (window.verify_steps, window.accepted_tokens, window.drafted_tokens) == (None, None, None)
    assert (window.printed_rate, window.generated_tokens) == (0.612, 900)
    assert told(VLLM, v0) == {"speculative_config.method": "unknown"}  # it drafts, and does not say how


ALL_PROMPTS = 'vllm:prompt_tokens_total{engine="0"} 100.0\n'
QUERIES = 'vllm:prefix_cache_queries_total{engine="0"} 100.0\nvllm:prefix_cache_hits_total{engine="0"} 30.0\n'
BY_SOURCE = """\
vllm:prompt_tokens_by_source_total{engine="0",source="local_compute"} 60.0
vllm:prompt_tokens_by_source_total{engine="0",source="local_cache_hit"} 30.0
vllm:prompt_tokens_by_source_total{engine="0",source="external_kv_transfer"} 10.0
"""


@pytest.mark.parametrize(
    ("text", "computed", "cached"),
    [
        (ALL_PROMPTS + QUERIES + BY_SOURCE, 60, 40),  # 0.17 and later say where prompt tokens came from
        (ALL_PROMPTS + QUERIES, 70, 30),  # before, the cache was asked for as many tokens as prompts had
        (ALL_PROMPTS + 'vllm:prefix_cache_queries_total{engine="0"} 0.0\n', 100, 0),  # the cache is off
        (ALL_PROMPTS, None, None),  # not told
    ],
    ids=["by source", "by hits", "off", "not told"],
)
def test_prompt_tokens_are_computed_or_cached(text, computed, cached):
    unit = state(VLLM, text).units[""]
    assert (unit.computed_tokens, unit.cached_tokens) == (computed, cached)
    assert len(VLLM.interval(None, state(VLLM, text), NOTHING).prefills) == (computed is not None)


# ---- llama.cpp


def llamacpp(
    tokens: float,
    *,
    decodes: float,
    drafts: float = 0,
    accepted: tuple[int, ...] = (),
    running: int = 0,
    busy: float = 1.0,
) -> str:
    """As the server prints it: six digits, those by position with all."""
    lines = [
        f"llamacpp:tokens_predicted_total {tokens:.6g}",
        f"llamacpp:n_decode_total {decodes:.6g}",
        f"llamacpp:n_busy_slots_per_decode {busy:.6g}",
        f"llamacpp:requests_processing {running}",
        "llamacpp:requests_deferred 0",
        f"llamacpp:spec_decode_num_drafts_total {drafts:.6g}",
        f"llamacpp:spec_decode_num_draft_tokens_total {drafts * max(len(accepted), 1):.6g}",
        f"llamacpp:spec_decode_num_accepted_tokens_total {sum(accepted):.6g}",
        *(
            f'llamacpp:spec_decode_num_accepted_tokens_per_pos_total{{position="{i}"}} {n}'
            for i, n in enumerate(accepted)
        ),
    ]
    return "\n".join(lines) + "\n"


def test_a_long_request_is_one_window_and_not_three_without_tokens():
    """Tokens are counted when a request ends: 600 of them after a minute are 10 a second, not 40."""
    scrapes = [
        llamacpp(0, decodes=0),
        llamacpp(0, decodes=50, running=1),
        llamacpp(0, decodes=100, running=1),
        llamacpp(0, decodes=150, running=1),
        llamacpp(600, decodes=200, drafts=199, accepted=(190, 120, 91)),
        llamacpp(600, decodes=200, drafts=199, accepted=(190, 120, 91)),
    ]
    found = windows(LLAMACPP, *(state(LLAMACPP, text, at=15.0 * n) for n, text in enumerate(scrapes)))
    assert [(window.seconds, window.generated_tokens) for window in found] == [(None, 0), (60.0, 600), (15.0, 0)]
    assert found[1].generation_throughput == 10.0
    assert (found[1].running_requests, found[2].running_requests) == (1.0, 0.0)


def test_counts_beyond_a_million_are_taken_once_they_tell_more_than_their_rounding():
    """1,234,567 is printed as 1.23457e+06: ten more tokens can look like none, or like ten."""
    tokens, positions = 2_000_000, [1_500_000, 900_000]
    scrapes, drafts = [], 1_700_000
    for _ in range(400):
        tokens, drafts = tokens + 9, drafts + 5
        positions = [positions[0] + 4, positions[1] + 2]
        scrapes.append(llamacpp(tokens, decodes=drafts, drafts=drafts, accepted=tuple(positions), running=1))
    found = windows(LLAMACPP, *(state(LLAMACPP, text, at=15.0 * n) for n, text in enumerate(scrapes)))[1:]
    assert 1 <= len(found) < 10
    for window in found:
        assert window.generated_tokens / window.seconds == pytest.approx(9 / 15, rel=0.02)
        assert window.verify_steps / window.seconds == pytest.approx(5 / 15, rel=0.02)
        assert window.accepted_tokens == sum(window.accepted_at)  # counted exactly by position
        assert window.accepted_at[0] <= window.verify_steps * 1.02
        assert window.accepted_tokens / window.verify_steps == pytest.approx(6 / 5, rel=0.03)


def test_slots_that_decode_together_are_the_running_requests():
    before = state(LLAMACPP, llamacpp(1000, decodes=1000, busy=1.0))
    after = state(LLAMACPP, llamacpp(5000, decodes=2000, busy=2.5), at=15.0)
    (window,) = LLAMACPP.interval(before, after, NOTHING).windows
    assert window.running_requests == 4.0  # 1,000 passes at 1, then 1,000 at 4


def test_a_server_that_counts_drafts_is_known_to_draft():
    """Where its slots are hidden nothing else says so."""
    assert told(LLAMACPP, llamacpp(100, decodes=60, drafts=50, accepted=(30, 10))) == {
        "spec_type": "draft",
        "spec_draft_n_max": 2,
    }
    assert told(LLAMACPP, llamacpp(100, decodes=100)) == {}


# ---- TensorRT-LLM

TRTLLM = """\
trtllm_generation_tokens_total{model_name="m",engine_type="trtllm"} 900.0
trtllm_request_success_total{model_name="m",engine_type="trtllm",finished_reason="length"} 9.0
trtllm_num_requests_running{model_name="m",engine_type="trtllm",pid="7"} 4.0
trtllm_num_requests_waiting{model_name="m",engine_type="trtllm",pid="7"} 2.0
trtllm_kv_cache_utilization{model_name="m",engine_type="trtllm",pid="7"} 0.5
trtllm_spec_decode_num_draft_tokens_total{model_name="m",engine_type="trtllm"} 1200.0
trtllm_spec_decode_num_accepted_tokens_total{model_name="m",engine_type="trtllm"} 500.0
trtllm_spec_decode_acceptance_length{model_name="m",engine_type="trtllm",pid="7"} 2.5
"""
BY_POSITION = """\
trtllm_spec_decode_drafted_tokens_total{model_name="m",token_position="0"} 390.0
trtllm_spec_decode_drafted_tokens_total{model_name="m",token_position="1"} 390.0
trtllm_spec_decode_drafted_tokens_total{model_name="m",token_position="2"} 380.0
trtllm_spec_decode_accepted_tokens_total{model_name="m",token_position="0"} 300.0
trtllm_spec_decode_accepted_tokens_total{model_name="m",token_position="1"} 190.0
"""
CONFIGURED = (
    'trtllm_speculative_config_info{model_name="m",spec_enabled="true",spec_method="Eagle3",spec_num_tokens="3",'
    'spec_draft_model="/models/eagle"} 1.0\n'
)


def test_tensorrt_steps_are_those_that_drafted_a_first_token():
    (window,) = windows(TENSORRT, state(TENSORRT, TRTLLM + BY_POSITION))
    assert (window.verify_steps, window.drafted_tokens, window.accepted_tokens) == (390, 1160, 490)
    assert window.accepted_at == (300, 190, 0)
    assert (window.kv_cache_usage, window.generated_tokens, window.prefills) == (0.5, 900, 9)


def test_tensorrt_totals_alone_give_steps_where_the_length_of_drafts_is_known():
    (unknown,) = windows(TENSORRT, state(TENSORRT, TRTLLM))
    assert (unknown.verify_steps, unknown.printed_length) == (None, 2.5)
    (known,) = windows(TENSORRT, state(TENSORRT, TRTLLM + CONFIGURED))
    assert (known.verify_steps, known.accepted_tokens, known.printed_length) == (400, 500, None)


def test_tensorrt_labels_tell_the_configuration():
    assert told(TENSORRT, CONFIGURED) == {
        "speculative_config.decoding_type": "Eagle3",
        "speculative_config.max_draft_len": 3,
        "speculative_config.speculative_model": "/models/eagle",
    }
    model = 'trtllm_model_config_info{model_name="m",model="/models/t",dtype="auto"} 1.0\n'
    assert told(TENSORRT, model)["speculative_config"] is None


def iteration(number: int, *, requests: int = 4, accepted: int = 6, rank: int | None = None) -> dict:
    row = {
        "iter": number,
        "iterLatencyMS": 20.0,
        "numActiveRequests": requests,
        "numQueuedRequests": 1,
        "inflightBatchingStats": {"numGenRequests": requests, "numContextRequests": 0},
        "kvCacheStats": {"usedNumBlocks": 30, "maxNumBlocks": 100},
        "specDecodingStats": {
            "numDraftTokens": 3 * requests, "numAcceptedTokens": accepted, "numRequestsWithDraftTokens": requests,
            "acceptanceLength": 1 + accepted / requests if requests else 0.0,
        },
    }  # fmt: skip
    return row if rank is None else {**row, "attentionDpRank": rank}


def taken(*rows: object) -> Taken:
    return TENSORRT.taken(json.dumps(rows).encode(), 100.0)


def test_iterations_out_of_the_queue_are_windows_of_counts():
    found = taken(iteration(10), iteration(11, accepted=2), iteration(12, requests=0, accepted=0))
    (window,) = found.windows
    assert (window.verify_steps, window.accepted_tokens, window.drafted_tokens) == (8, 8, 24)
    assert (window.generated_tokens, window.seconds) == (16, pytest.approx(0.06))
    assert (window.waiting_requests, window.kv_cache_usage, window.origin) == (1, 0.3, Origin.COUNTERS)
    assert not found.notes
    assert [(sample.name, sample.value) for sample in found.samples] == [("trtllm_iteration", 12)]


def test_long_queues_are_several_windows_that_differ():
    found = taken(*(iteration(number) for number in range(1000)))
    assert sum(window.verify_steps for window in found.windows) == 4000
    assert len({window.position for window in found.windows}) == len(found.windows) > 1


def test_iterations_of_other_attention_ranks_repeat_the_first():
    found = taken(*(iteration(n, rank=rank) for n in (1, 2) for rank in (0, 1)))
    assert [(window.unit, window.verify_steps) for window in found.windows] == [("", 8), ("rank 1", None)]


def test_iterations_that_somebody_else_took_are_told():
    assert "3 iterations are missing" in taken(iteration(1), iteration(5)).notes[0]


def test_an_empty_queue_gives_nothing():
    assert taken() == Taken(())


@pytest.mark.parametrize("body", [b"{}", b"[1]", b'["{"]', b"[null]", b"", b"trtllm_x 1\n", b'{"iter": 4}'])
def test_what_is_no_list_of_iterations_is_refused(body):
    with pytest.raises(MalformedInput):
        TENSORRT.taken(body, 0.0)


# ---- all of them


def recordings() -> list[str]:
    return [
        f"{engine}/{folder.name}"
        for engine in ("vllm", "llamacpp")
        for folder in sorted((GOLDEN / engine).iterdir())
        if folder.is_dir()
    ]


@checks
@given(st.sampled_from(recordings()), st.data())
def test_whatever_scrapes_were_missed_the_counts_are_the_same(name, data):
    engine = BY_NAME[name.partition("/")[0]]
    bodies = [gzip.decompress(file.read_bytes()) for file in sorted((GOLDEN / name).glob("metrics-*"))]
    seen = [*sorted(data.draw(st.sets(st.integers(0, len(bodies) - 2)))), len(bodies) - 1]
    found = windows(engine, *(state(engine, bodies[n].decode(), at=10.0 * n) for n in seen))
    (whole,) = windows(engine, state(engine, bodies[-1].decode(), at=0.0))
    for field in ("verify_steps", "accepted_tokens", "drafted_tokens", "generated_tokens", "prefills"):
        assert sum(getattr(window, field) or 0 for window in found) == (getattr(whole, field) or 0)


@pytest.mark.parametrize("engine", [VLLM, LLAMACPP, TENSORRT], ids=lambda engine: engine.engine)
def test_a_body_without_any_wanted_sample_is_a_state_without_figures(engine):
    empty = engine.state((), NOTHING, 0.0)
    for window in engine.interval(None, empty, NOTHING).windows:
        assert (window.verify_steps, window.generated_tokens, window.accepted_at) == (None, None, None)
