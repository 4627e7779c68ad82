"""Simulated servers with a known fault: the diagnosis names it; healthy ones are left alone.

The logs have the engine's own form and are read like any other log.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from analysis.diagnosis import Diagnosis
from analysis.runner import diagnose
from analysis.simulation.logs import sglang_launch, sglang_log
from analysis.simulation.scenario import CHAT, CODE, IID, MATHS, Fault, Profile, Scenario
from analysis.simulation.serving import Simulation, simulate, simulate_many
from collector.bundle import BundleOptions, read_bundle
from collector.domain.findings import Finding, Severity

SOAK = os.environ.get("DRAFTSCOPE_SOAK") == "1"
SEEDS = range(20) if SOAK else range(2)
HEALTHY = 200 if SOAK else 20

VALIDATION = {IID.name: 0.698, MATHS.name: 0.721, CHAT.name: 0.706, CODE.name: 0.790}
"""Top-1 accuracy averaged over all positions of each profile: what a validation run reports. Source: theory section 6."""

profiles = pytest.mark.parametrize("profile", [MATHS, CHAT, CODE], ids=lambda profile: profile.name)
seeds = pytest.mark.parametrize("seed", SEEDS)


def judged(log: str, scenario: Scenario, folder: Path) -> Diagnosis:
    (folder / "input.log").write_text(log, encoding="utf-8")
    (folder / "launch.txt").write_text(sglang_launch(scenario), encoding="utf-8")
    accuracy = VALIDATION[scenario.profile.name]
    diagnosis = diagnose(read_bundle([folder], BundleOptions(validation_accuracy=(accuracy,), temperature=0.0)))
    assert diagnosis.crashes == ()
    return diagnosis


def serious(diagnosis: Diagnosis) -> dict[str, Finding]:
    return {finding.rule: finding for finding in diagnosis.findings if finding.severity >= Severity.WARNING}


@profiles
@seeds
def test_wiring_fault_is_a_divergence(profile: Profile, seed: int, tmp_path: Path) -> None:
    scenario = Scenario(profile=profile, fault=Fault.WIRING)
    found = serious(judged(sglang_log(simulate(scenario, seed)), scenario, tmp_path))
    assert "ACC001" in found
    assert found["ACC001"].values["retained_share"] < 0.4


@profiles
@seeds
def test_feedback_fault_is_a_divergence_of_less_than_a_wiring_fault(
    profile: Profile, seed: int, tmp_path: Path
) -> None:
    scenario = Scenario(profile=profile, fault=Fault.FEEDBACK)
    found = serious(judged(sglang_log(simulate(scenario, seed)), scenario, tmp_path))
    assert "ACC001" in found
    assert 0.35 < found["ACC001"].values["retained_share"] < 0.65


@profiles
@seeds
def test_context_decay_is_named(profile: Profile, seed: int, tmp_path: Path) -> None:
    scenario = Scenario(profile=profile, fault=Fault.CONTEXT_DECAY, running=1, windows=120, tokens_scale=6)
    found = serious(judged(sglang_log(simulate(scenario, seed)), scenario, tmp_path))
    assert "ACC006" in found
    assert found["ACC006"].values["accepted_per_step_long"] < 0.7 * found["ACC006"].values["accepted_per_step_short"]


@profiles
@seeds
def test_the_slow_replica_and_only_it_is_named(profile: Profile, seed: int, tmp_path: Path) -> None:
    scenario = Scenario(profile=profile, windows=150)
    behind = Scenario(profile=profile, windows=150, fault=Fault.REPLICA)
    runs = {f"DP{i} TP{i}": simulate(behind if i == 2 else scenario, 10 * seed + i) for i in range(4)}
    diagnosis = judged(sglang_log(runs), scenario, tmp_path)
    assert [finding.scope for finding in diagnosis.findings if finding.rule == "ACC007"] == ["DP2 TP2"]


@profiles
@seeds
def test_a_dropped_bonus_is_named_and_acceptance_not_accused(profile: Profile, seed: int, tmp_path: Path) -> None:
    scenario = Scenario(profile=profile, fault=Fault.DROPPED_BONUS)
    found = serious(judged(sglang_log(simulate(scenario, seed)), scenario, tmp_path))
    assert "leaves out the target's own token" in found["MEA003"].why
    assert "ACC001" not in found


@profiles
@seeds
def test_a_swapped_rate_definition_is_recognised(profile: Profile, seed: int, tmp_path: Path) -> None:
    scenario = Scenario(profile=profile, fault=Fault.SWAPPED_RATE)
    diagnosis = judged(sglang_log(simulate(scenario, seed)), scenario, tmp_path)
    assert diagnosis.subject.quantities["printed_rate_definition"].value == "accepted/drafted"
    assert [
        finding for finding in diagnosis.findings if finding.rule == "MEA001" and "accepted/drafted" in finding.title
    ]
    assert "ACC001" not in serious(diagnosis)


@profiles
@seeds
def test_a_misdeclared_depth_is_named_with_the_right_width(profile: Profile, seed: int, tmp_path: Path) -> None:
    scenario = Scenario(profile=profile, fault=Fault.MISDECLARED_DEPTH)
    found = serious(judged(sglang_log(simulate(scenario, seed)), scenario, tmp_path))
    assert found["MEA003"].values["implied_verify_width"] == scenario.depth + 1
    assert "ACC001" not in found


def healthy_runs() -> Iterator[Simulation]:
    for profile in (IID, MATHS, CHAT, CODE):
        yield from simulate_many(Scenario(profile=profile), range(HEALTHY // 4))


def test_healthy_runs_are_left_alone(tmp_path: Path) -> None:
    """At most 4% accused of divergence, none of anything critical."""
    rules: Counter[str] = Counter()
    for run in healthy_runs():
        diagnosis = judged(sglang_log(run), run.scenario, tmp_path)
        assert diagnosis.worst is None or diagnosis.worst < Severity.CRITICAL
        rules.update(serious(diagnosis).keys())
    assert rules["ACC001"] <= 0.04 * HEALTHY
    assert rules["ACC004"] <= 0.10 * HEALTHY, "the rate at which a log's last third is accused by chance"
    assert set(rules) <= {"ACC001", "ACC004"}
