"""Whole numbers behind published ratios, and windows of a server that is simulated step by step."""

from __future__ import annotations

import math
import random
from dataclasses import dataclass, field

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from collector.domain.arguments import Argument, Arguments
from collector.domain.windows import Origin
from collector.metrics.base import EngineInfo, falls, same_process
from collector.metrics.exposition import Sample
from collector.metrics.sglang import METRICS
from collector.metrics.sglang.acceptance import Definition, counts_of_line, counts_since_start
from tests.unit.theory.repeated import checks

PLAIN, BETA, UNO = Definition(), Definition(surplus=1), Definition(own=2)


def arguments(**values) -> Arguments:
    stated = {"speculative_algorithm": "EAGLE3", "speculative_num_draft_tokens": 4, **values}
    return Arguments({name: Argument(name, effective=value) for name, value in stated.items()})


@checks
@given(st.integers(1, 200), st.integers(1, 64), st.integers(0, 5), st.floats(0.8, 1.25), st.data())
def test_a_gauge_gives_back_its_steps_and_accepted_tokens(interval, batch, depth, doubt, data):
    steps = interval * batch
    accepted = data.draw(st.integers(0, depth * steps))
    length = (accepted + steps) / steps
    exact = counts_of_line(length, float(batch), interval, PLAIN)
    assert (exact.verify_steps, exact.accepted_tokens) == (steps, pytest.approx(accepted, abs=1e-6))
    about = counts_of_line(length, batch * doubt, interval, PLAIN)
    assert about.accepted_tokens / about.verify_steps == pytest.approx(accepted / steps, abs=1e-9)
    factor = math.gcd(accepted + steps, steps)
    assert about.verify_steps % (steps // factor) == 0


@pytest.mark.parametrize("length", [0.0, math.nan, -1.0])
def test_a_gauge_without_a_length_counts_nothing(length):
    assert counts_of_line(length, 3.0, 40, PLAIN) is None


@checks
@given(st.integers(1, 10**7), st.integers(0, 5), st.integers(0, 2_000), st.sampled_from([PLAIN, BETA, UNO]), st.data())
def test_a_mean_since_start_gives_back_all_steps(steps, depth, tail, definition, data):
    accepted = data.draw(st.integers(0, depth * steps))
    tokens = accepted + definition.own * steps
    mean = (tokens + definition.surplus * steps) / steps
    found = counts_since_start(mean, tokens + tail, definition, below=tail)
    assert found.accepted_tokens / found.verify_steps == pytest.approx(accepted / steps, abs=1e-9)
    if tokens // math.gcd(tokens, steps) > tail:  # no other multiple is near
        assert found == (steps, accepted)


@checks
@given(st.integers(100, 10**6), st.integers(0, 500), st.data())
def test_tokens_of_finished_requests_may_lag_behind_the_mean(steps, late, data):
    accepted = data.draw(st.integers(steps // 2, 3 * steps))
    assume((accepted + steps) // math.gcd(accepted, steps) > 2 * late + 100)
    found = counts_since_start((accepted + steps) / steps, accepted + steps - late, PLAIN, below=100, above=late)
    assert found == (steps, accepted)


def test_a_mean_of_another_stretch_gives_nothing():
    assert counts_since_start(4423 / 1949, 4423 * 3 + 2_000, PLAIN, below=200) is None
    assert counts_since_start(0.0, 100.0, PLAIN, below=200) is None
    assert counts_since_start(math.nan, 100.0, PLAIN, below=200) is None


# ---- a server


@dataclass
class Rank:
    """One scheduler: what it counts, and what it publishes at a decode line."""

    interval: int = 40
    tokens: int = 0
    passes: int = 0
    lifetime: list[int] = field(default_factory=lambda: [0, 0])
    line: list[int] = field(default_factory=lambda: [0, 0])
    length: float = 0.0
    throughput: float = 0.0
    running: int = 0
    total: list[int] = field(default_factory=lambda: [0, 0])
    """Steps and accepted drafts up to the last decode line, whatever was flushed."""
    since_line: list[int] = field(default_factory=lambda: [0, 0])

    def step(self, batch: int, accepted: int) -> None:
        self.passes += 1
        self.tokens += accepted + batch
        self.running = batch
        for counts in (self.line, self.since_line):
            counts[0] += batch
            counts[1] += accepted
        if self.passes % self.interval == 0:
            self.length = (self.line[1] + self.line[0]) / self.line[0]
            self.throughput += 1.25
            for index in (0, 1):
                self.lifetime[index] += self.line[index]
                self.total[index] += self.since_line[index]
            self.line, self.since_line = [0, 0], [0, 0]

    def flush(self) -> None:
        self.lifetime, self.line = [0, 0], [0, 0]

    @property
    def mean(self) -> float | None:
        steps, accepted = self.lifetime
        return (accepted + steps) / steps if steps else None


def scrape(ranks: list[Rank], at: float, *, extra: dict[str, str] | None = None, **stated):
    """State and information of a server with these ranks, as releases 0.5.7 to 0.5.12 give them."""
    samples = []
    for number, rank in enumerate(ranks):
        labels = {"tp_rank": "0", "pp_rank": "0", "model_name": "m", **(extra or {})}
        if len(ranks) > 1:
            labels["dp_rank"] = str(number)
        samples += [
            Sample("sglang:realtime_tokens_total", {**labels, "mode": "decode"}, float(rank.tokens)),
            Sample("sglang:cuda_graph_passes_total", {**labels, "mode": "decode_cuda_graph"}, float(rank.passes)),
            Sample("sglang:spec_accept_length", labels, rank.length),
            Sample("sglang:gen_throughput", labels, rank.throughput),
            Sample("sglang:num_running_reqs", labels, float(rank.running)),
        ]
    means = {number: rank.mean for number, rank in enumerate(ranks) if rank.mean is not None}
    info = EngineInfo(arguments=arguments(**stated), mean_lengths=means)
    return METRICS.state(samples, info, at), info


@checks
@given(st.integers(0, 2**32), st.sampled_from([1, 2, 4]), st.integers(2, 12))
def test_windows_hold_every_step_of_every_rank_once(seed, size, scrapes):
    chance = random.Random(seed)
    ranks = [Rank() for _ in range(size)]
    windows = []
    before = None
    for number in range(scrapes):
        for rank in ranks:
            for _ in range(chance.randrange(200)):
                batch = chance.randrange(1, 9)
                rank.step(batch, sum(chance.randrange(4) for _ in range(batch)))
        state, info = scrape(ranks, 15.0 * number)
        interval = METRICS.interval(before, state, info)
        windows += interval.windows
        before = interval.state
    for number, rank in enumerate(ranks):
        unit = "" if size == 1 else f"DP{number}"
        own = [window for window in windows if window.unit == unit]
        counted = [window for window in own if window.origin is Origin.COUNTERS and window.verify_steps]
        assert sum(window.generated_tokens for window in own) == rank.tokens
        # Several multiples of a mean such as 5/2 can fit; what is counted then is off by less than a line.
        steps = sum(window.verify_steps for window in counted)
        assert steps == pytest.approx(rank.total[0], abs=40 * 8)
        if sum(rank.total) > 40 * 8 * 4 * math.gcd(*rank.total):
            assert (steps, sum(window.accepted_tokens for window in counted)) == tuple(rank.total)


def test_a_line_is_counted_once_and_an_idle_server_runs_nothing():
    rank = Rank()
    for _ in range(50):
        rank.step(3, 4)
    first, info = without_mean([rank], 0.0)
    idle = METRICS.interval(first, without_mean([rank], 15.0)[0], info).windows[0]
    assert (idle.verify_steps, idle.generated_tokens, idle.running_requests, idle.printed_length) == (
        None,
        0.0,
        0.0,
        None,
    )


def without_mean(ranks: list[Rank], at: float):
    state, info = scrape(ranks, at)
    plain = EngineInfo(arguments=info.arguments)
    samples = [sample for sample in state.samples if sample.name != "avg_spec_accept_length"]
    return METRICS.state(samples, plain, at), plain


def test_without_a_mean_the_last_line_alone_is_a_sample():
    rank = Rank()
    for _ in range(45):
        rank.step(2, 3)
    first, _ = without_mean([rank], 0.0)
    for _ in range(10):
        rank.step(2, 0)
    second, info = without_mean([rank], 15.0)
    pending = METRICS.interval(first, second, info).windows[0]
    assert (pending.verify_steps, pending.origin) == (None, Origin.COUNTERS)
    for _ in range(30):
        rank.step(2, 3)
    third, info = without_mean([rank], 30.0)
    sampled = METRICS.interval(second, third, info).windows[0]
    assert (sampled.verify_steps, sampled.accepted_tokens, sampled.origin) == (80.0, 25 * 3 + 5 * 3, Origin.GAUGES)
    for _ in range(40):
        rank.step(2, 0)
    for _ in range(40):  # the same length again, in another line
        rank.step(2, 3)
    rank.length = third.units[""].printed_length
    again = METRICS.interval(third, without_mean([rank], 45.0)[0], info).windows[0]
    assert again.verify_steps == 80.0


def test_a_flushed_mean_falls_back_to_the_gauge_and_counts_nothing_twice():
    rank = Rank()
    for _ in range(4_000):
        rank.step(3, 4)
    before, info = scrape([rank], 0.0)
    total = METRICS.interval(None, before, info).windows[0].verify_steps
    assert total == 12_000
    rank.flush()
    chance = random.Random(5)
    for number in range(1, 30):
        for _ in range(chance.randrange(100, 300)):
            rank.step(3, chance.randrange(10))
        state, info = scrape([rank], 15.0 * number)
        interval = METRICS.interval(before, state, info)
        for window in interval.windows:
            if window.verify_steps:
                assert 1 <= 1 + window.accepted_tokens / window.verify_steps <= 4
                if window.origin is Origin.COUNTERS:
                    total += window.verify_steps
        before = interval.state
    assert total <= 12_000 + 3 * (rank.passes - 4_000)


@pytest.mark.parametrize("with_mean", [True, False])
def test_a_draft_that_is_never_right_is_counted_though_no_figure_ever_moves(with_mean: bool):
    rank = Rank()
    steps = 0.0
    before = None
    for number in range(6):
        state, info = (scrape if with_mean else without_mean)([rank], 15.0 * number)
        interval = METRICS.interval(before, state, info)
        for window in interval.windows:
            assert not window.accepted_tokens
            steps += window.verify_steps or 0.0
        before = interval.state
        for _ in range(100):
            rank.step(3, 0)
    assert steps >= (1_400 if with_mean else 4 * 120)


def test_a_scrape_that_could_not_ask_for_the_mean_leaves_the_steps_to_the_next():
    rank = Rank()
    for _ in range(400):
        rank.step(2, 3)
    first, _ = scrape([rank], 0.0)
    for _ in range(410):
        rank.step(2, 1)
    late, info = without_mean([rank], 15.0)
    sampled = METRICS.interval(first, late, info)
    assert [(window.verify_steps, window.origin) for window in sampled.windows] == [(80.0, Origin.GAUGES)]
    for _ in range(390):
        rank.step(2, 1)
    third, info = scrape([rank], 30.0)
    (window,) = METRICS.interval(sampled.state, third, info).windows
    assert (window.verify_steps, window.accepted_tokens, window.origin) == (1_600.0, 800.0, Origin.COUNTERS)


@pytest.mark.parametrize(
    ("stated", "surplus", "own"),
    [
        ({}, 0, 1),
        ({"enable_beta_spec": True}, 1, 1),
        ({"speculative_algorithm": "UNO"}, 0, 2),
        ({"speculative_algorithm": None, "enable_beta_spec": True}, 0, 1),
    ],
)
def test_definition_of_the_length_follows_the_arguments(stated, surplus, own):
    assert Definition.of(arguments(**stated)) == Definition(own, surplus)


# ---- counters of the server, units, names


def counters(at: float, generated: float, finished: float, calls: float | None, **labels):
    samples = [
        Sample("sglang:generation_tokens_total", {"model_name": "m", "is_streaming": "true"}, generated / 2),
        Sample("sglang:generation_tokens_total", {"model_name": "m", "is_streaming": "false"}, generated / 2),
        Sample("sglang:num_requests_total", {"model_name": "m"}, finished),
        Sample("sglang:spec_accept_length", {"tp_rank": "0", **labels}, 2.5),
    ]
    if calls is not None:
        samples.append(Sample("sglang:spec_verify_calls_total", {"model_name": "m"}, calls))
    return METRICS.state(samples, EngineInfo(arguments=arguments()), at)


def test_counted_verify_steps_are_taken_as_they_are():
    info = EngineInfo(arguments=arguments())
    before, after = counters(0.0, 300.0, 5.0, 100.0), counters(15.0, 460.0, 7.0, 160.0)
    window = METRICS.interval(before, after, info).windows[0]
    assert (window.verify_steps, window.accepted_tokens) == (60.0, 160.0 - 2.0 - 60.0)
    assert window.generated_tokens == 158.0  # a request's first token comes from its prefill
    assert window.generation_throughput == pytest.approx(158.0 / 15.0)
    assert not METRICS.needs_info(after, info)
    assert METRICS.needs_info(counters(0.0, 1.0, 1.0, None), info)
    assert not METRICS.needs_info(
        counters(0.0, 1.0, 1.0, None), EngineInfo(arguments=arguments(speculative_algorithm=None))
    )


def test_impossible_counts_are_not_hidden():
    info = EngineInfo(arguments=arguments())
    window = METRICS.interval(counters(0.0, 100.0, 1.0, 40.0), counters(15.0, 1_000.0, 2.0, 50.0), info).windows[0]
    assert window.accepted_tokens / window.verify_steps > 3


@pytest.mark.parametrize(
    ("stated", "labels", "unit"),
    [
        ({}, {"tp_rank": "0", "pp_rank": "0"}, ""),
        ({"tp_size": 2}, {"tp_rank": "0", "pp_rank": "0"}, "TP0"),
        ({"tp_size": 8, "dp_size": 2}, {"tp_rank": "4", "pp_rank": "0", "dp_rank": "1"}, "DP1 TP4"),
        ({"pp_size": 2, "tp_size": 2}, {"tp_rank": "0", "pp_rank": "1"}, "PP1 TP0"),
        ({}, {}, ""),
    ],
)
def test_units_are_named_as_the_log_names_them(stated, labels, unit):
    state = METRICS.state(
        [Sample("sglang:num_running_reqs", labels, 3.0)], EngineInfo(arguments=arguments(**stated)), 0.0
    )
    assert list(state.units) == [unit]


def test_only_the_lowest_tensor_rank_of_a_unit_counts():
    samples = [
        Sample("sglang:num_running_reqs", {"tp_rank": str(tp), "dp_rank": str(tp // 2)}, float(10 + tp))
        for tp in (3, 2, 1, 0)
    ]
    state = METRICS.state(samples, EngineInfo(arguments=arguments(tp_size=4)), 0.0)
    assert {name: unit.running_requests for name, unit in state.units.items()} == {"DP0 TP0": 10.0, "DP1 TP2": 12.0}


def test_sanitised_names_and_priorities_are_read():
    samples = [
        Sample("sglang_num_running_reqs", {"tp_rank": "0", "priority": "1"}, 2.0),
        Sample("sglang_num_running_reqs", {"tp_rank": "0", "priority": "2"}, 3.0),
        Sample("sglang_num_queue_reqs", {"tp_rank": "0", "priority": ""}, 9.0),
        Sample("sglang_num_queue_reqs", {"tp_rank": "0", "priority": "2"}, 4.0),
    ]
    assert {sample.name for sample in samples} <= METRICS.sample_names
    unit = METRICS.state(samples, EngineInfo(arguments=arguments()), 0.0).units[""]
    assert (unit.running_requests, unit.waiting_requests) == (5.0, 9.0)


@pytest.mark.parametrize(
    ("modes", "gauge", "graph"),
    [
        ({"decode_cuda_graph": 90.0, "decode_none": 10.0}, 0.0, True),
        ({"decode_cuda_graph": 10.0, "decode_none": 90.0, "prefill_none": 5.0}, 1.0, False),
        ({"prefill_none": 5.0}, 1.0, None),
        ({}, 1.0, True),  # 0.5.4 to 0.5.6 have the gauge alone
        ({}, None, None),
    ],
)
def test_a_window_says_whether_most_of_it_ran_from_a_graph(modes, gauge, graph):
    samples = [Sample("sglang:cuda_graph_passes_total", {"tp_rank": "0", "mode": mode}, n) for mode, n in modes.items()]
    samples += [Sample("sglang:is_cuda_graph", {"tp_rank": "0"}, gauge)] if gauge is not None else []
    state = METRICS.state(
        [*counters(15.0, 500.0, 5.0, 100.0).samples, *samples], EngineInfo(arguments=arguments()), 15.0
    )
    before = counters(0.0, 300.0, 5.0, 60.0)
    assert METRICS.interval(before, state, EngineInfo(arguments=arguments())).windows[0].graph is graph


def test_a_printed_nan_is_kept_and_counts_nothing():
    rank = Rank()
    for _ in range(40):
        rank.step(1, 1)
    first, info = without_mean([rank], 0.0)
    rank.length, rank.tokens, rank.passes = math.nan, rank.tokens + 90, rank.passes + 45
    window = METRICS.interval(first, without_mean([rank], 15.0)[0], info).windows[0]
    assert math.isnan(window.printed_length)
    assert window.verify_steps is None


def test_a_clock_that_goes_back_gives_no_throughput():
    info = EngineInfo(arguments=arguments())
    window = METRICS.interval(counters(100.0, 10.0, 1.0, 3.0), counters(90.0, 20.0, 2.0, 6.0), info).windows[0]
    assert (window.seconds, window.generation_throughput, window.verify_steps) == (None, None, 3.0)


@pytest.mark.parametrize(
    ("earlier", "later", "same"),
    [
        ((None, ["7"]), (None, ["7", "8"]), True),
        ((None, ["7"]), (None, ["8"]), False),
        ((None, []), (None, ["8"]), None),
        ((100.0, ["7"]), (100.4, ["8"]), True),
        ((100.0, ["7"]), (160.0, ["7"]), False),
    ],
)
def test_processes_are_told_apart_by_start_or_ids(earlier, later, same):
    def state(started, pids):
        samples = [Sample("sglang:num_retracted_reqs", {"tp_rank": "0", "pid": pid}, 0.0) for pid in pids]
        samples += [Sample("process_start_time_seconds", {}, started)] if started else []
        return METRICS.state(samples, EngineInfo(), 0.0)

    assert same_process(state(*earlier), state(*later)) is same


def test_counters_that_fall_are_named():
    fallen = falls(counters(0.0, 300.0, 5.0, 100.0), counters(15.0, 300.0, 2.0, 100.0))
    assert [(fall.name, fall.before, fall.after) for fall in fallen] == [("sglang:num_requests_total", 5.0, 2.0)]
