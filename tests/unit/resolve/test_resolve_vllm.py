"""Predictions for vLLM agree with what its own configuration classes make of the same settings."""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from analysis.resolve import Resolution, known_releases, resolve
from analysis.resolve.vllm.engine import FIELDS
from collector.domain.drafts import ModelConfig
from collector.domain.versions import Release

DATA = Path(__file__).resolve().parents[2] / "data" / "oracle" / "vllm.json.gz"
LINES = {
    "settings": (
        "method `",
        "Defaulted num",
        "Overriding draft model",
        "Enabling num_spec",
        "MTP models",
        "cannot currently be run",
    ),
    "schedule": ("Async sched", "max_num_scheduled", "Dynamic spec"),
}
"""What the part of the engine that ran for an entry may say."""


@cache
def data() -> dict[str, Any]:
    return json.loads(gzip.decompress(DATA.read_bytes()))


def model(name: str | None) -> ModelConfig | None:
    return ModelConfig(name, data()["models"][name]) if name is not None else None


def predict(entry: dict[str, Any]) -> Resolution:
    return resolve(
        "vllm",
        entry["requested"],
        release=Release.parse(entry["release"]),
        environment=entry.get("environment", {}),
        target=model(entry["target"]),
        draft=model(entry["draft"]),
        device=entry["device"],
    )


def differences(entry: dict[str, Any]) -> list[str]:
    resolution = predict(entry)
    refused = [[item.kind, item.message] for item in resolution.rejections]
    told = [entry["error"]] if "error" in entry else []
    if refused != told:
        return [f"refused {refused}, told {told}"]
    found = [
        f"{flag}: {value!r}, predicted {resolution.effective.get(flag, 'nothing')!r}"
        for flag, value in entry.get("effective", {}).items()
        if resolution.effective.get(flag, "nothing") != value
    ]
    said = [line for line in resolution.announced if any(part in line for part in LINES[entry["part"]])]
    if not told and sorted(said) != sorted(entry["logged"]):
        found.append(f"said {said}, logged {entry['logged']}")
    return found


@pytest.mark.parametrize("release", [str(release) for release in known_releases("vllm")])
def test_every_entry_agrees(release: str) -> None:
    entries = [entry for entry in data()["entries"] if entry["release"] == release]
    assert len(entries) >= 8
    assert [(entry["requested"], found) for entry in entries if (found := differences(entry))] == []


def test_every_setting_is_compared() -> None:
    fields = {flag for entry in data()["entries"] for flag in entry.get("effective", {})}
    assert set(FIELDS) - fields <= {
        "speculative_config.draft_load_config",  # passed on as it is
        "speculative_config.synthetic_acceptance_rate",  # of one release
    }
