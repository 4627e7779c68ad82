"""Simulated servers with a known fault: its cause leads the differential; healthy ones are offered none."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from analysis.causes.weighing import NONE_OF_THESE, WeighedCause
from analysis.diagnosis import Diagnosis
from analysis.runner import diagnose
from analysis.simulation.logs import sglang_launch, sglang_log, vllm_launch, vllm_log
from analysis.simulation.scenario import CHAT, CODE, IID, MATHS, Fault, Profile, Scenario
from analysis.simulation.serving import simulate
from collector.bundle import BundleOptions, read_bundle
from tests.simulated.test_faults import VALIDATION

SOAK = os.environ.get("DRAFTSCOPE_SOAK") == "1"
SEEDS = 20 if SOAK else 2
PROFILES = (MATHS, CHAT, CODE)

WIRING = ("wiring",)
TRAFFIC = ("traffic",)

FAULTS: dict[str, tuple[Callable[[Profile], Scenario], bool, tuple[str, ...]]] = {
    "wiring": (lambda p: Scenario(profile=p, fault=Fault.WIRING), False, WIRING),
    "wiring-with-positions": (lambda p: Scenario(profile=p, fault=Fault.WIRING, windows=150), True, WIRING),
    "feedback": (lambda p: Scenario(profile=p, fault=Fault.FEEDBACK, windows=150), True, ("feedback-broken",)),
    "context-decay": (
        lambda p: Scenario(profile=p, fault=Fault.CONTEXT_DECAY, running=1, windows=120, tokens_scale=6),
        False,
        ("draft-window-exceeded",),
    ),
    "mix-change-on-the-way": (
        lambda p: Scenario(profile=p, fault=Fault.MIX_CHANGE, windows=90, onset=45),
        False,
        TRAFFIC,
    ),
    "mix-change-before-the-start": (lambda p: Scenario(profile=p, fault=Fault.MIX_CHANGE), False, TRAFFIC),
    "dropped-bonus": (lambda p: Scenario(profile=p, fault=Fault.DROPPED_BONUS), False, ("reporter-faulty",)),
    "dropped-bonus-beside-counts": (
        lambda p: Scenario(profile=p, fault=Fault.DROPPED_BONUS, windows=150),
        True,
        ("reporter-faulty",),
    ),
    "swapped-rate": (lambda p: Scenario(profile=p, fault=Fault.SWAPPED_RATE), False, ("definition-misread",)),
    "misdeclared-depth": (lambda p: Scenario(profile=p, fault=Fault.MISDECLARED_DEPTH), False, ("reporter-faulty",)),
}
"""The scenario, whether it is a vLLM log (with counts by position), and the causes or kind that are right."""


def judged(log: str, launch: str, profile: Profile, folder: Path) -> Diagnosis:
    (folder / "input.log").write_text(log, encoding="utf-8")
    (folder / "launch.txt").write_text(launch, encoding="utf-8")
    options = BundleOptions(validation_accuracy=(VALIDATION[profile.name],), temperature=0.0)
    diagnosis = diagnose(read_bundle([folder], options))
    assert diagnosis.crashes == ()
    return diagnosis


def right(causes: tuple[WeighedCause, ...], names: tuple[str, ...]) -> int:
    """The place of the first right cause, counted from 1; 99 where none is right."""
    return next((i for i, cause in enumerate(causes, 1) if cause.id in names or cause.kind in names), 99)


def assert_places(places: list[int]) -> None:
    found = Counter(places)
    assert found[1] >= 0.80 * len(places), found
    assert found[1] + found[2] >= 0.95 * len(places), found


@pytest.mark.parametrize("name", FAULTS)
def test_the_right_cause_leads(name: str, tmp_path: Path) -> None:
    make, positions, names = FAULTS[name]
    places = []
    for profile in PROFILES:
        scenario = make(profile)
        for seed in range(SEEDS):
            run = simulate(scenario, seed)
            log = vllm_log(run) if positions else sglang_log(run)
            launch = vllm_launch(scenario) if positions else sglang_launch(scenario)
            diagnosis = judged(log, launch, profile, tmp_path)
            places.append(right(diagnosis.causes, names))
            assert not any(cause.established for cause in diagnosis.causes)
    assert_places(places)


def test_the_slow_replica_is_the_cause(tmp_path: Path) -> None:
    places = []
    for profile in PROFILES:
        scenario = Scenario(profile=profile, windows=150)
        behind = Scenario(profile=profile, windows=150, fault=Fault.REPLICA)
        for seed in range(SEEDS):
            runs = {f"DP{i} TP{i}": simulate(behind if i == 2 else scenario, 10 * seed + i) for i in range(4)}
            diagnosis = judged(sglang_log(runs), sglang_launch(scenario), profile, tmp_path)
            places.append(right(diagnosis.causes, ("faulty-unit",)))
    assert_places(places)


@pytest.mark.parametrize("profile", [IID, MATHS, CHAT, CODE], ids=lambda profile: profile.name)
def test_healthy_runs_are_offered_no_cause(profile: Profile, tmp_path: Path) -> None:
    for seed in range(50 if SOAK else 5):
        scenario = Scenario(profile=profile)
        run = simulate(scenario, seed)
        assert judged(sglang_log(run), sglang_launch(scenario), profile, tmp_path).causes == ()
        longer = simulate(Scenario(profile=profile, windows=150), seed)
        assert judged(vllm_log(longer), vllm_launch(scenario), profile, tmp_path).causes == ()


def test_an_open_differential_ends_with_none_of_these(tmp_path: Path) -> None:
    scenario = Scenario(profile=CHAT, fault=Fault.WIRING)
    causes = judged(sglang_log(simulate(scenario, 1)), sglang_launch(scenario), CHAT, tmp_path).causes
    assert causes[-1].id == NONE_OF_THESE
