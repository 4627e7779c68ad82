"""The drift detector: blocks, baseline, alarm, clearing, resuming; and dating a change."""

from __future__ import annotations

import json
import math
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.theory import drift
from analysis.theory.drift import DriftDetector
from analysis.theory.settings import Settings
from collector.domain.errors import DraftscopeError, MalformedInput
from tests.unit.theory.repeated import checks


def feed(detector, values, load=None):
    return [detector.add_block(float(at), float(value), load) for at, value in enumerate(values)]


def learnt(direction="down", level=1.7, spread=0.1, **options):
    detector = DriftDetector(direction, **options)
    random = np.random.default_rng(5)
    feed(detector, level + spread * random.standard_normal(50))
    assert detector.baseline is not None
    return detector


@checks
@given(st.lists(st.floats(-5, 5), min_size=1, max_size=60), st.floats(0.1, 2), st.floats(1, 10))
def test_the_path_follows_its_recursion(scores, allowance, threshold):
    path, alarm = drift.cusum_path(scores, allowance, threshold, 3.0)
    level, first = 0.0, None
    for index, score in enumerate(scores):
        level = max(0.0, level + min(score, 3.0) - allowance)
        assert path[index] == pytest.approx(level, abs=1e-9)
        if first is None and path[index] > threshold:
            first = index
    assert alarm == first


def test_blocks_hold_twenty_requests_and_a_lifetime():
    detector = DriftDetector()
    requests, lifetimes = drift.request_equivalents(320, 8, 260)
    assert (requests, lifetimes) == (pytest.approx(320 / 260), pytest.approx(40 / 260))
    outcomes = [detector.add(at, 1.7 * 320, 320, requests=requests, lifetimes=lifetimes) for at in range(34)]
    finished = [outcome for outcome in outcomes if outcome]
    assert [outcome.at for outcome in finished] == [16, 33]
    assert finished[0].value == pytest.approx(1.7)
    # Many requests at once: the block waits for one of them to live through.
    crowd = DriftDetector()
    requests, lifetimes = drift.request_equivalents(40 * 256, 256, 260)
    assert all(crowd.add(at, 1.0, 1.0, requests=requests, lifetimes=lifetimes) is None for at in range(6))
    assert crowd.add(6, 1.0, 1.0, requests=requests, lifetimes=lifetimes) is not None


def test_an_unknown_request_is_taken_for_a_long_one():
    assert drift.request_equivalents(260, 1, None) == (1.0, 1.0)


def test_the_baseline_widens_for_autocorrelation_and_for_being_estimated():
    random = np.random.default_rng(0)
    white = 1.7 + 0.3 * random.standard_normal(50)
    alike = 1.7 + 0.3 * np.convolve(random.standard_normal(60), np.ones(6) / math.sqrt(6), "valid")[:50]
    plain, sticky = drift.estimate_baseline(white), drift.estimate_baseline(alike)
    assert plain.spread >= white.std(ddof=1) * math.sqrt(1 + 1 / 50)
    assert sticky.autocorrelation == 0.6
    assert sticky.spread == pytest.approx(alike.std(ddof=1) * 2 * math.sqrt(1 + 1 / 50))
    assert plain.allowance == max(0.75, 0.1 * plain.mean / plain.spread)
    with pytest.raises(DraftscopeError, match="two blocks"):
        drift.estimate_baseline([1.7])


def test_a_very_quiet_baseline_does_not_make_the_detector_blind():
    quiet = drift.estimate_baseline([100.0, 100.01] * 25)
    assert quiet.allowance == pytest.approx(1.5)
    detector = DriftDetector(baseline=quiet)
    outcomes = feed(detector, [80.0] * 10)
    assert next(index for index, outcome in enumerate(outcomes, start=1) if outcome.alarm) <= 8


@pytest.mark.parametrize(("direction", "factor"), [("down", 0.8), ("up", 1.2)])
def test_a_change_for_the_worse_alarms_once_and_names_its_beginning(direction, factor):
    detector = learnt(direction)
    outcomes = feed(detector, [1.7] * 5 + [1.7 * factor] * 20)
    alarms = [outcome for outcome in outcomes if outcome.alarm]
    assert len(alarms) == 1
    assert 5 < alarms[0].at <= 25
    assert alarms[0].onset == pytest.approx(5, abs=1)
    assert detector.drifted


@pytest.mark.parametrize(("direction", "factor"), [("down", 1.5), ("up", 0.5), ("down", 0.95), ("up", 1.05)])
def test_changes_for_the_better_and_small_ones_stay_silent(direction, factor):
    detector = learnt(direction)
    assert not any(outcome.alarm for outcome in feed(detector, [1.7 * factor] * 200))


def test_an_alarm_stands_until_the_statistic_is_back_at_zero():
    detector = learnt()
    feed(detector, [1.2] * 20)
    assert detector.drifted
    outcomes = feed(detector, [1.2] * 3 + [1.7] * 20)
    cleared = [outcome.at for outcome in outcomes if outcome.cleared]
    assert len(cleared) == 1
    assert 3 < cleared[0] < 20
    assert not detector.drifted


def test_a_meant_change_is_learnt_anew():
    detector = learnt()
    feed(detector, [1.2] * 20)
    detector.rebaseline()
    assert detector.state() == DriftDetector().state()
    feed(detector, [1.2, 1.25] * 25)
    assert not any(outcome.alarm for outcome in feed(detector, [1.2] * 50))


def test_many_series_raise_the_threshold():
    assert drift.raised_threshold(20) == pytest.approx(8 + 2, abs=0.01)
    alone, crowd = (
        next(o.at for o in feed(learnt(spread=0.25, series=series), [1.2] * 60) if o.alarm) for series in (1, 400)
    )
    assert crowd > alone


def test_only_blocks_of_comparable_load_count():
    detector = DriftDetector()
    random = np.random.default_rng(1)
    for at in range(60):
        detector.add_block(at, 900 + 20 * random.standard_normal(), 8.0 if at % 6 else 2.0)
    assert detector.baseline is not None
    assert (detector.baseline.load, detector.baseline.blocks) == (8.0, 50)
    quiet = [detector.add_block(at, 300.0, 2.0) for at in range(100)]
    assert all(outcome.score is None for outcome in quiet)
    assert any(detector.add_block(at, 600.0, 8.5).alarm for at in range(20))


@checks
@given(st.lists(st.floats(0.5, 3), min_size=2, max_size=120), st.integers(0, 119), st.sampled_from(["down", "up"]))
def test_a_stored_detector_goes_on_as_if_never_stopped(values, stop, direction):
    settings = Settings(drift_baseline_blocks=10)
    whole, first = DriftDetector(direction, settings=settings), DriftDetector(direction, settings=settings)

    def run(detector, part, start):
        return [detector.add(at, value * 40, 40, requests=7.0, load=8.0) for at, value in enumerate(part, start=start)]

    stop = min(stop, len(values))
    before = run(first, values[:stop], 0)
    second = DriftDetector.from_state(json.loads(json.dumps(first.state())), settings)
    after = run(second, values[stop:], stop)
    assert run(whole, values, 0) == before + after
    assert whole.state() == second.state()


@pytest.mark.parametrize(
    "damage",
    [
        lambda state: state.pop("open"),
        lambda state: state.update(form=99),
        lambda state: state.update(baseline={"mean": 1.0}),
        lambda state: state.update(learning=[1.0]),
    ],
)
def test_a_damaged_state_is_reported(damage):
    state = DriftDetector().state()
    damage(state)
    with pytest.raises(MalformedInput, match="drift"):
        DriftDetector.from_state(state)


def test_a_change_is_dated_on_blocks():
    random = np.random.default_rng(2)
    values = np.concatenate([1.7 + 0.1 * random.standard_normal(70), 1.3 + 0.1 * random.standard_normal(30)])
    changes = drift.date_changes(values)
    assert len(changes) == 1
    assert changes[0].index == pytest.approx(70, abs=1)
    assert (changes[0].before, changes[0].after) == (pytest.approx(1.7, abs=0.05), pytest.approx(1.3, abs=0.05))


def test_a_steady_series_has_no_change():
    random = np.random.default_rng(3)
    assert drift.date_changes(1.7 + 0.1 * random.standard_normal(200)) == ()
    assert drift.date_changes([1.7] * 50) == ()
    assert drift.date_changes([1.7, 1.2]) == ()


def test_without_the_extra_the_error_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "ruptures", None)
    with pytest.raises(DraftscopeError, match="ruptures") as caught:
        drift.date_changes([1.0, 2.0, 3.0, 4.0, 5.0])
    assert "draftscope[drift]" in caught.value.hint
