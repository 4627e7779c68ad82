"""The study of intervals, tests and detectors, in a short version with fixed seeds and within its tolerances."""

from __future__ import annotations

import importlib.util
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path

import pytest

from analysis.simulation.scenario import CHAT, CODE, MATHS
from tests.unit.theory.repeated import SOAK

_PATH = Path(__file__).parents[3] / "benchmarks" / "theory_study.py"
_SPEC = importlib.util.spec_from_file_location("theory_study", _PATH)
study = importlib.util.module_from_spec(_SPEC)
sys.modules["theory_study"] = study
_SPEC.loader.exec_module(study)

SIZE = study.FULL if SOAK else replace(study.SHORT, replicates=60, request_replicates=200, fleets=4)
SLACK = 0.0 if SOAK else 0.05
"""What few replicates may add to or take from a share (a standard error at 0.95 is 0.03 of 60)."""


@cache
def traffic(profile):
    return study.traffic(profile, SIZE)


@pytest.fixture(params=[MATHS, CHAT, CODE], ids=lambda profile: profile.name)
def known(request):
    return traffic(request.param)


@pytest.mark.soak
def test_coverage_size_and_power(known):
    lowest, highest = (0.86, 0.99) if known.profile is CHAT else (0.90, 0.99)
    for coverage, power in study.intervals_and_power(known, SIZE):
        cell = (coverage.running, coverage.windows)
        assert lowest - SLACK <= coverage.ewc <= highest + SLACK, cell
        assert coverage.binomial < 0.75, cell
        assert power.at_margin <= 0.08 + SLACK, cell
        assert power.healthy <= 0.05 + SLACK, cell
        assert power.broken >= (0.99 if cell[1] >= 60 else 0.8) - SLACK, cell


@pytest.mark.soak
def test_request_level_intervals_cover(known):
    for share in study.jackknife_coverage(known, SIZE).values():
        assert 0.92 - SLACK <= share <= 0.97 + SLACK


@pytest.mark.soak
def test_the_conservative_interval_covers_and_more(known):
    for running in (1, 8):
        assert study.conservative_coverage(known, SIZE, running, 4) >= 0.95


@pytest.mark.soak
@pytest.mark.parametrize("profile", [CODE, CHAT], ids=lambda profile: profile.name)
def test_weak_replicas_are_found_and_healthy_ones_left_alone(profile):
    found = study.discovery(profile, SIZE)
    assert found.false_discovery_rate <= 0.10
    assert found.power >= 0.9
    assert found.alarms_in_healthy_fleets <= 0.10


@pytest.mark.soak
@pytest.mark.parametrize(
    ("profile", "running", "blocks"), [(MATHS, 8, 1_500), (CODE, 1, 1_500), (CODE, 8, 6_000), (CHAT, 8, 500)]
)
def test_drift_is_seen_in_time_and_never_without_cause(profile, running, blocks):
    size = SIZE if SOAK else replace(SIZE, blocks=blocks, streams=max(1, blocks // 500))
    found = study.drift(traffic(profile), size, running)
    assert found.false_alarms == 0
    assert found.healthy_blocks >= 0.8 * size.blocks
    assert found.delay_20[1] <= 20
    assert found.delay_40[1] <= 8
    assert found.dating_error <= 2


@pytest.mark.soak
def test_step_time_within_two_percent():
    for profile in (MATHS, CHAT, CODE):
        assert study.step_time_error(profile, SIZE).steady <= 0.02
