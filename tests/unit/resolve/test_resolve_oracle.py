"""Predictions agree with what the engines' own argument processing did."""

from __future__ import annotations

import gzip
import json
import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis.resolve import Resolution, find_engine, resolve
from collector.domain.drafts import ModelConfig
from collector.domain.versions import Release

DATA = Path(__file__).resolve().parents[2] / "data" / "oracle"
FROM_CHANCE = {"random_seed"}
"""Fields whose value nobody can know before the start."""


@cache
def entries(name: str) -> list[dict[str, Any]]:
    return json.loads(gzip.decompress((DATA / f"{name}.json.gz").read_bytes()))


@cache
def models() -> dict[str, ModelConfig]:
    raw = json.loads((DATA / "models.json").read_text(encoding="utf-8"))
    return {name: ModelConfig(name, config) for name, config in raw.items()}


def exceptions() -> set[tuple[str, str, str]]:
    listed = yaml.safe_load((DATA / "sglang-exceptions.yaml").read_text(encoding="utf-8")) or []
    assert all(item["cause"] for item in listed)
    return {(item["release"], item["name"], item["field"]) for item in listed}


def predict(entry: dict[str, Any]) -> Resolution:
    draft = entry["requested"].get("speculative_draft_model_path")
    return resolve(
        "sglang",
        entry["requested"],
        release=Release.parse(entry["release"]),
        environment=entry["environment"],
        target=models()[entry["model"]],
        draft=models()[Path(draft).name] if draft else None,
        device=entry["device"],
    )


@dataclass
class Comparison:
    """How many predictions agreed, and where one did not: release, name, field."""

    agreed: Counter[str] = field(default_factory=Counter)
    differs: dict[tuple[str, str, str], str] = field(default_factory=dict)

    def add(self, entry: dict[str, Any], what: str, told: Any, predicted: Any) -> None:
        if told == predicted:
            self.agreed[what] += 1
        else:
            self.differs[entry["release"], entry["name"], what] = f"{told!r}, predicted {predicted!r}"


def refusal(resolution: Resolution, *, checked: bool) -> list[str] | None:
    found = [item for item in resolution.rejections if item.checked == checked]
    return [found[0].kind, found[0].message] if found else None


def compare(name: str) -> Comparison:
    comparison = Comparison()
    for entry in entries(name):
        resolution = predict(entry)
        told, said = entry.get("error"), refusal(resolution, checked=False)
        if told and said and told[0] == said[0] == "SystemExit":
            said = told  # the parser's text is its usage, which the entry has not kept
        comparison.add(entry, "error", told, said)
        if "check" in entry:
            comparison.add(entry, "check", entry["check"], refusal(resolution, checked=True))
        for flag, value in entry["effective"].items():
            if flag in FROM_CHANCE:
                comparison.add(entry, flag, "depends", "depends" if flag in resolution.depends else "a value")
            else:
                comparison.add(entry, flag, value, resolution.effective.get(flag, "nothing"))
    return comparison


@cache
def compared(name: str) -> Comparison:
    return compare(name)


def test_every_entry_agrees_but_the_listed() -> None:
    comparison = compared("sglang")
    assert set(comparison.differs) == exceptions(), {
        key: text for key, text in comparison.differs.items() if key not in exceptions()
    }


def test_wide_entries_all_agree() -> None:
    assert compared("sglang-wide").differs == {}


def test_agreement_and_coverage() -> None:
    comparison = compared("sglang")
    total = comparison.agreed.total() + len(comparison.differs)
    assert comparison.agreed.total() / total >= 0.99
    fields = set(comparison.agreed) - {"error", "check"}
    speculative = {flag for flag in fields if flag.startswith("speculative_")}
    assert len(fields) >= 40
    readme = (DATA / "README.md").read_text(encoding="utf-8")
    listed = readme.partition("## Fields compared")[2].partition("## vLLM")[0]
    assert sorted(fields) == re.findall(r"`(\w+)`", listed), "the list of fields in the README"
    assert len(speculative) >= 30
    assert len({entry["release"] for entry in entries("sglang")}) == 15


def lines_of(release: str) -> list[re.Pattern[str]]:
    engine = find_engine("sglang")
    assert engine is not None
    templates = [step.announced for step in engine.steps_of(Release.parse(release)) if step.announced]
    return [re.compile(re.sub(r"\\{[^}]*\\}", ".*", re.escape(template))) for template in templates]


def misannounced(name: str) -> Iterator[tuple[str, str, str]]:
    """Lines predicted and not logged, and logged lines of known steps that were not predicted."""
    known = {release: lines_of(release) for release in {entry["release"] for entry in entries(name)}}
    excepted = {(release, case) for release, case, _ in exceptions()}
    for entry in entries(name):
        if (entry["release"], entry["name"]) in excepted or entry.get("error", [""])[0] == "SystemExit":
            continue
        logged, predicted = Counter(entry["logged"]), Counter(predict(entry).announced)
        for line in (predicted - logged) + (logged - predicted):
            if line in predicted or any(pattern.fullmatch(line) for pattern in known[entry["release"]]):
                yield entry["release"], entry["name"], line


@pytest.mark.parametrize("name", ["sglang", "sglang-wide"])
def test_lines_are_those_the_engine_logged(name: str) -> None:
    assert list(misannounced(name)) == []


def test_changes_lead_from_requested_to_effective() -> None:
    """What is said to change is what differs, and the last word on a flag is its effective value."""
    for entry in entries("sglang")[::7]:
        resolution = predict(entry)
        if not resolution.effective:
            continue
        last = {change.flag: change.after for change in resolution.changes}
        assert {flag: resolution.effective[flag] for flag in last} == last
        for flag, value in entry["requested"].items():
            if flag not in last:
                assert resolution.effective[flag] == value
