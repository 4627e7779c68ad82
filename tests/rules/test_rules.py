"""Every rule against its case file, and what every rule must have."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis.base import SECTIONS, Rule, catalogue
from analysis.case import Case
from analysis.outcomes import in_order, run_rule
from collector.domain.findings import Finding, Severity, Skipped
from tests.rules.build import bundle

HERE = Path(__file__).parent
ALWAYS_THERE = {"run", "case", "thresholds", "findings"}


def case_files() -> dict[str, dict[str, Any]]:
    return {path.stem: yaml.safe_load(path.read_text(encoding="utf-8")) for path in sorted(HERE.glob("*.yaml"))}


def all_cases() -> Iterator[Any]:
    for rule_id, cases in case_files().items():
        for name, case in cases.items():
            if name != "rule":
                yield pytest.param(rule_id, case, id=f"{rule_id}-{name}")


def outcome_of(rule_id: str, given: dict[str, Any]) -> Any:
    case = Case(bundle(given))
    for rule in in_order(catalogue()):
        outcome = run_rule(rule, case)
        if rule.id == rule_id:
            return outcome
        if isinstance(outcome, list):
            case.add(item for item in outcome if isinstance(item, Finding))
    raise AssertionError(f"no rule {rule_id}")


@pytest.mark.parametrize(("rule_id", "case"), list(all_cases()))
def test_case(rule_id: str, case: dict[str, Any]) -> None:
    outcome = outcome_of(rule_id, case["given"])
    if "skip" in case:
        assert isinstance(outcome, Skipped), outcome
        assert case["skip"] in outcome.reason
        return
    assert isinstance(outcome, list), outcome
    findings = [item for item in outcome if isinstance(item, Finding)]
    assert len(findings) == len(case["expect"]), findings
    for finding, expected in zip(findings, case["expect"], strict=True):
        compare(finding, expected)
        assert all(math.isfinite(value) for value in finding.values.values() if isinstance(value, float))
    assert len(outcome) - len(findings) == (1 if case.get("ruled_out") else 0)


def compare(finding: Finding, expected: dict[str, Any]) -> None:
    for key, value in expected.items():
        if key == "severity":
            assert finding.severity is Severity.parse(value)
        elif key == "scope":
            assert finding.scope == value
        elif key == "says":
            assert value in f"{finding.title} {finding.why} {finding.fix} {finding.verify}"
        elif isinstance(value, float):
            assert finding.values[key] == pytest.approx(value, rel=0.01)
        else:
            assert finding.values[key] == value


def test_every_rule_has_a_case_file_and_every_file_a_rule() -> None:
    assert {rule.id for rule in catalogue()} == set(case_files())
    for rule_id, cases in case_files().items():
        assert cases["rule"] == rule_id


@pytest.mark.parametrize("rule", catalogue(), ids=lambda rule: rule.id)
def test_rule_is_complete(rule: Rule) -> None:
    page = rule.page()
    for section in SECTIONS:
        assert page.get(section), f"{rule.id} lacks {section}"
    assert page["Says"].endswith(".")
    assert "\n" not in page["Says"].split(".")[0].strip()
    cases = [case for name, case in case_files()[rule.id].items() if name != "rule"]
    assert any(case.get("expect") for case in cases), "no firing case"
    assert any(case.get("expect") == [] for case in cases), "no silent case"
    assert any("skip" in case for case in cases) or set(rule.inputs()) <= ALWAYS_THERE, "no skipping case"


def test_a_crashing_rule_is_reported_and_the_others_go_on(monkeypatch: pytest.MonkeyPatch) -> None:
    from analysis.rules.flags.shallow_depth import DraftDepthShallow
    from analysis.runner import diagnose

    def broken(self: Rule, speculating: object) -> Iterator[Finding]:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(DraftDepthShallow, "check", broken)
    given = {
        "args": {"speculative_algorithm": "EAGLE3", "speculative_num_draft_tokens": [16, 2], "speculative_num_steps": 1}
    }
    diagnosis = diagnose(bundle(given))
    assert [crash.rule for crash in diagnosis.crashes] == ["FLG007"]
    assert "planted" in diagnosis.crashes[0].error
    assert [finding.rule for finding in diagnosis.findings if finding.rule == "FLG001"]
