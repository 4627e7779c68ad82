"""The rules for Prometheus: read, tried on series and held against the metrics that exist."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.out.monitoring import BOARDS, ROOT, RULES, known_names, names_in, rules

TRIED = sorted((Path(__file__).parent / "rules").glob("*.yml"))
WANTED = {
    "SpeculationDraftsNothing", "AcceptanceBelowBreakEven", "AcceptanceFarBelowHealthy", "AcceptanceDrifts",
    "ReplicaOutlier", "RestartedWithChangedFlags", "RunDataStale",
}  # fmt: skip


def promtool(*arguments: str | Path) -> str:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.needs("promtool")
def test_prometheus_takes_the_rules() -> None:
    told = promtool("check", "rules", *RULES)
    assert told.count("SUCCESS") == len(RULES) == 2


@pytest.mark.needs("promtool")
@pytest.mark.parametrize("path", TRIED, ids=lambda path: path.stem)
def test_alerts_fire_and_stay_silent_on_series(path: Path) -> None:
    assert "SUCCESS" in promtool("test", "rules", path)


def test_every_alert_is_tried_and_says_what_to_do() -> None:
    tried = "".join(path.read_text(encoding="utf-8") for path in TRIED)
    alerts = {rule["alert"]: rule for rule in rules() if "alert" in rule}
    assert alerts.keys() >= WANTED
    assert [name for name in alerts if f"alertname: {name}" not in tried] == []
    for name, rule in alerts.items():
        assert rule["labels"]["severity"] in ("info", "warning", "critical"), name
        assert set(rule["annotations"]) == {"summary", "description"}, name


def test_rules_speak_of_metrics_that_exist() -> None:
    known = known_names()
    unknown = {rule.get("alert", rule.get("record")): names_in(rule["expr"]) - known for rule in rules()}
    assert {name: names for name, names in unknown.items() if names} == {}
    assert len(set.union(*(names_in(rule["expr"]) for rule in rules()))) > 20


def test_the_page_names_every_alert_and_board() -> None:
    page = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
    named = set(re.findall(r"`(\w[\w-]+)`", page))
    wanted = {rule["alert"] for rule in rules() if "alert" in rule} | {path.stem for path in BOARDS}
    assert wanted - named == set()
