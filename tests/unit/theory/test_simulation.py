"""The simulator agrees with the formulas, and its faults do what they say."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from analysis.simulation import logs
from analysis.simulation.scenario import CHAT, CODE, IID, MATHS, PROFILES, Fault, Scenario
from analysis.simulation.serving import simulate, simulate_many
from analysis.theory.chain import accepted_variance, expected_length
from analysis.theory.intervals import request_interval
from analysis.theory.positions import list_convention
from analysis.theory.rates import RateDefinition, infer_rate_definition
from analysis.theory.steps import clock_step_seconds, step_time
from analysis.theory.trees import best_tree, tree_length
from collector.domain.drafts import Measure
from collector.domain.errors import InputError

ENDLESS = replace(IID, steps=1e5)
"""Requests so long that none ends inside a run."""
RATE = 1 / (1 + math.exp(-IID.mean))


@pytest.mark.parametrize("depth", [1, 3, 5, 7])
def test_independent_tokens_give_the_chain_formula(depth):
    runs = simulate_many(Scenario(profile=ENDLESS, depth=depth, windows=25), range(10))
    accepted = np.concatenate([run.walk.accepted.ravel() for run in runs])
    error = math.sqrt(accepted_variance(RATE, depth) / accepted.size)
    assert abs(1 + accepted.mean() - expected_length(RATE, depth)) <= 4 * error
    assert accepted.var() == pytest.approx(accepted_variance(RATE, depth), rel=0.02)


def test_independent_ranks_give_the_tree_formula():
    wrong = 1 - RATE
    ranks = (RATE, 0.35 * wrong, 0.15 * wrong)
    expected, nodes = best_tree(ranks, 9, 5)
    scenario = Scenario(profile=ENDLESS, tree=nodes, windows=25)
    runs = simulate_many(scenario, range(10))
    accepted = np.concatenate([run.walk.accepted.ravel() for run in runs])
    assert expected == pytest.approx(tree_length(ranks, nodes))
    assert abs(1 + accepted.mean() - expected) <= 4 * accepted.std() / math.sqrt(accepted.size)
    assert (scenario.width, scenario.branching) == (10, sum(len(node) == 1 for node in nodes))


def test_a_chain_written_as_a_tree_is_the_chain():
    chain = Scenario(windows=10)
    tree = replace(chain, tree=tuple((0,) * level for level in range(1, 6)))
    assert (simulate(chain, 3).walk.accepted == simulate(tree, 3).walk.accepted).all()


@pytest.mark.parametrize(
    ("profile", "first", "prefix", "length"),
    [(IID, 0.698, 0.697, 2.94), (MATHS, 0.721, 0.686, 2.96), (CHAT, 0.706, 0.622, 2.69), (CODE, 0.790, 0.722, 3.21)],
)
def test_profiles_reproduce_what_they_were_made_from(profile, first, prefix, length):
    runs = simulate_many(Scenario(profile=profile, running=32, windows=100), range(5))
    found = {
        "first": np.mean([run.walk.first_accuracy for run in runs]),
        "prefix": np.mean([(run.walk.accepted > 0).mean() for run in runs]),
        "length": np.mean([run.length for run in runs]),
    }
    # The last step of a request is cut, which takes up to a token per request off the published figures.
    assert found["first"] == pytest.approx(first, abs=0.015)
    assert found["prefix"] == pytest.approx(prefix, abs=0.02)
    assert found["length"] == pytest.approx(length, abs=0.08)


def test_steps_oversample_hard_text_and_survivors_are_easy():
    runs = simulate_many(Scenario(profile=CHAT, running=32, windows=50), range(4))
    accepted = np.concatenate([run.walk.accepted.ravel() for run in runs])
    prefix = [1.0, *((accepted > position).mean() for position in range(5))]
    conditional = [after / before for before, after in pairwise(prefix)]
    first_accuracy = np.mean([run.walk.first_accuracy for run in runs])
    assert conditional[0] < 0.95 * first_accuracy
    assert conditional[1] > conditional[0] + 0.03
    promised = expected_length(float(first_accuracy), 5) - 1
    assert 0.75 < accepted.mean() / promised < 0.92


def test_heterogeneous_requests_agree_within_their_cluster_error():
    runs = simulate_many(Scenario(profile=CHAT, running=32, windows=200), range(4))
    pairs = [run.requests() for run in runs]
    accepted, steps = (np.concatenate([pair[part] for pair in pairs]) for part in (0, 1))
    pooled = accepted.sum() / steps.sum()
    first = request_interval(accepted[:300], steps[:300])
    assert abs(first.accepted_per_step - pooled) <= 4 * first.error
    assert 4 * first.error == pytest.approx(0.14, abs=0.05)


def test_the_same_seed_gives_the_same_run_alone_or_among_others():
    scenario = Scenario(windows=10)
    alone, among = simulate(scenario, 7), simulate_many(scenario, [3, 7, 11])[1]
    assert (alone.walk.accepted == among.walk.accepted).all()
    assert (alone.iteration_end == among.iteration_end).all()
    assert logs.sglang_log(alone) == logs.sglang_log(among)
    assert (alone.walk.accepted != simulate(scenario, 8).walk.accepted).any()


def test_windows_and_requests_count_what_happened():
    run = simulate(Scenario(profile=CODE, running=4, windows=30), 1)
    windows = run.windows()
    assert windows.accepted.sum() == run.walk.accepted.sum()
    assert (windows.steps == 160).all()
    assert windows.accepted_at.sum(axis=1) == pytest.approx(windows.accepted)
    assert (np.diff(windows.accepted_at, axis=1) <= 0).all()
    assert windows.prefills.sum() == 4 + (np.diff(run.walk.request, axis=0) > 0).sum()
    assert windows.seconds.sum() == pytest.approx(run.iteration_end[-1])
    accepted, steps = run.requests()
    assert 0 < accepted.sum() <= run.walk.accepted.sum()
    assert accepted.size == run.walk.request[-1].sum() == steps.size
    by_time = run.windows(2.0)
    assert by_time.accepted.sum() <= run.walk.accepted.sum()
    assert (by_time.seconds == 2.0).all()


def test_step_time_is_recovered_within_two_percent_despite_prefills_and_pauses():
    for profile in PROFILES:
        scenario = Scenario(profile=profile, running=4, windows=80, idle=((20, 30.0), (50, 5.0)))
        windows = simulate(scenario, 4).windows()
        steady = windows.steady
        assert not steady[[0, 20, 50]].any()
        found = step_time(windows.running[steady], windows.length[steady], windows.throughput[steady])
        assert found.seconds == pytest.approx(scenario.step_seconds, rel=0.02)
        every = windows.running * windows.length / windows.throughput
        assert every.mean() > 1.3 * scenario.step_seconds


def faulty(fault, **options):
    return Scenario(profile=CHAT, fault=fault, windows=60, running=16, **options)


def halves(fault):
    """Mean accepted before and after the onset half-way, over a few runs."""
    runs = simulate_many(faulty(fault, onset=30), range(4))
    before = np.concatenate([run.walk.accepted[:1200].ravel() for run in runs])
    after = np.concatenate([run.walk.accepted[1200:].ravel() for run in runs])
    return before, after


def test_a_wiring_fault_leaves_a_sixth_of_the_drafts():
    before, after = halves(Fault.WIRING)
    assert after.mean() / before.mean() == pytest.approx(0.16, abs=0.03)


def test_a_feedback_fault_spares_the_first_position():
    before, after = halves(Fault.FEEDBACK)
    assert (after > 0).mean() == pytest.approx((before > 0).mean(), abs=0.03)
    conditional = (after > 1).sum() / (after > 0).sum()
    assert conditional < 0.6 * (after > 0).mean()


def test_context_decay_grows_with_the_context():
    run = simulate(faulty(Fault.CONTEXT_DECAY), 2)
    context = run.walk.prompt + run.walk.age
    low, high = np.quantile(context, [1 / 3, 2 / 3])
    short, long = run.walk.accepted[context <= low].mean(), run.walk.accepted[context >= high].mean()
    assert long < 0.6 * short


def test_a_weak_replica_accepts_seven_tenths():
    before, after = halves(Fault.REPLICA)
    assert after.mean() / before.mean() == pytest.approx(0.70, abs=0.04)


def test_a_harder_mix_lowers_acceptance_and_breaks_nothing():
    before, after = halves(Fault.MIX_CHANGE)
    assert 0.3 < after.mean() / before.mean() < 0.8


@pytest.mark.parametrize("fault", [Fault.DROPPED_BONUS, Fault.SWAPPED_RATE, Fault.MISDECLARED_DEPTH])
def test_faults_of_printing_change_nothing_that_happens(fault):
    assert (simulate(faulty(fault), 1).walk.accepted == simulate(faulty(None), 1).walk.accepted).all()


def decode_lines(text):
    pattern = r"#running-req: (\d+).*?accept len: ([\d.]+), accept rate: ([\d.]+).*?\(token/s\): ([\d.]+)"
    return np.array([[float(part) for part in groups] for groups in re.findall(pattern, text)])


def test_sglang_lines_print_what_happened():
    run = simulate(Scenario(windows=20), 5)
    lines = decode_lines(logs.sglang_log(run))
    windows = run.windows()
    assert len(lines) == 20
    assert lines[:, 1] == pytest.approx(windows.length, abs=0.005001)
    assert lines[:, 3] == pytest.approx(windows.throughput, abs=0.005001)
    match = infer_rate_definition(lines[:, 1], lines[:, 2], 5, 6)
    assert match.definition is RateDefinition.LENGTH_WIDTH


def test_a_swapped_rate_is_named_from_its_lines():
    lines = decode_lines(logs.sglang_log(simulate(faulty(Fault.SWAPPED_RATE), 5)))
    assert infer_rate_definition(lines[:, 1], lines[:, 2], 5, 6).definition is RateDefinition.ACCEPTED_DRAFTED


def test_a_misdeclared_depth_shows_in_rates_of_another_width():
    text = logs.sglang_log(simulate(faulty(Fault.MISDECLARED_DEPTH), 5))
    assert "speculative_num_steps=3" in text
    lines = decode_lines(text)
    assert infer_rate_definition(lines[:, 1], lines[:, 2], 3, 4).definition is None
    assert infer_rate_definition(lines[:, 1], lines[:, 2], 5, 6).definition is RateDefinition.LENGTH_WIDTH
    assert "--speculative-num-steps 3 " in logs.sglang_launch(faulty(Fault.MISDECLARED_DEPTH))


def test_a_dropped_bonus_shows_in_the_clock():
    """The throughput counts every token, so a length without the bonus makes steps look too quick."""
    run = simulate(Scenario(profile=ENDLESS, fault=Fault.DROPPED_BONUS, windows=100, running=1), 5)
    lines, windows = decode_lines(logs.sglang_log(run)), run.windows()
    steady = windows.steady
    printed = step_time(lines[steady, 0], lines[steady, 1], lines[steady, 3]).seconds
    clock = clock_step_seconds(np.floor(windows.at), steady, 40)
    assert clock == pytest.approx(run.scenario.step_seconds, rel=0.02)
    assert printed / clock == pytest.approx((run.length - 1) / run.length, rel=0.03)


def test_ranks_share_one_log_in_order_of_time():
    runs = {f"DP{rank} TP{rank}": simulate(Scenario(windows=5), rank) for rank in range(3)}
    text = logs.sglang_log(runs)
    stamps = re.findall(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?: DP\d TP\d)?\]", text, flags=re.MULTILINE)
    assert stamps == sorted(stamps)
    assert len(stamps) == len(text.splitlines())
    for tag in runs:
        assert text.count(f" {tag}] Decode batch") == 5
    assert "dp_size=3" in text


def test_plain_decoding_prints_no_acceptance():
    run = simulate(Scenario(depth=0, windows=10), 1)
    text = logs.sglang_log(run)
    assert "accept len" not in text
    assert run.length == 1
    windows = run.windows()
    found = step_time(*(part[windows.steady] for part in (windows.running, windows.length, windows.throughput)))
    assert found.seconds == pytest.approx(run.scenario.plain_step_seconds, rel=0.02)
    assert "speculative" not in logs.sglang_launch(run.scenario)
    assert "SpecDecoding" not in logs.vllm_log(simulate(Scenario(depth=0, windows=60), 1))
    assert "speculative" not in logs.vllm_launch(run.scenario)


@pytest.mark.parametrize("fault", [None, Fault.DROPPED_BONUS])
def test_vllm_lines_contradict_themselves_only_where_the_bonus_is_dropped(fault):
    text = logs.vllm_log(simulate(Scenario(windows=100, fault=fault), 2))
    assert "num_spec_tokens=5" in text
    found = re.findall(r"length: ([\d.]+), .*? rate: ([\d., ]+), Avg Draft acceptance rate: ([\d.]+)%", text)
    assert len(found) >= 3
    for length, positions, share in found:
        prefix = [float(value) for value in positions.split(", ")]
        conventions = list_convention(prefix, float(length))
        assert (Measure.PREFIX in conventions) == (fault is None)
        assert sum(prefix) / 5 == pytest.approx(float(share) / 100, abs=0.001)


def test_what_cannot_be_simulated_is_refused():
    with pytest.raises(InputError, match="deeper"):
        Scenario(depth=1, tree=((0,), (0, 0)))
    with pytest.raises(InputError, match="at least one"):
        Scenario(running=0)
