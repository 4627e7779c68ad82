"""What recorded engines said they run with is what their launch command lets expect."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml

from analysis.resolve import Resolution, resolve
from collector.bundle import read_log
from collector.domain.arguments import UNSEEN
from collector.domain.drafts import ModelConfig
from collector.domain.runs import RunRecord
from collector.domain.versions import Release
from collector.launch import parse_launch
from tests.golden.logs.expected import recordings

ENGINES = ("sglang", "vllm", "llamacpp")
FOLDERS = [folder for engine in ENGINES for folder in recordings(engine)]
HIDDEN = ("***", "<redacted>", "draft")
"""What a log shows of values that it or the reader hides, or tells no closer (a draft of some type)."""
KNOWN = yaml.safe_load(Path(__file__).with_name("recorded.yaml").read_text(encoding="utf-8"))


def model(engine: str, name: str) -> ModelConfig | None:
    config = KNOWN["models"][engine].get(Path(name).name)
    return ModelConfig(f"{name}/config.json", config) if config is not None else None


def launched(folder: Path) -> tuple[RunRecord, Resolution]:
    """The recorded run and what its command was predicted to become. The recordings ran without a GPU."""
    facts: dict[str, Any] = json.loads((folder / "launch.json").read_text("utf-8"))
    engine = folder.parent.name
    command = shlex.join(facts["command"]) if "command" in facts else facts.get("command_line")
    launch = parse_launch(command or facts["starts"][-1]["command_line"])
    runs, _ = read_log(folder / "log.txt")
    names = KNOWN["named"][engine]
    resolution = resolve(
        engine,
        launch.requested,
        release=Release.parse(facts.get("release") or facts["build"]),
        environment={**facts.get("env", {}), **launch.environment},
        target=model(engine, str(launch.requested.get(names["target"]))),
        draft=model(engine, str(launch.requested.get(names["draft"]))),
        device="cpu",
    )
    return runs[-1], resolution


@pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: f"{folder.parent.name}-{folder.name}")
def test_recorded_engine_runs_as_predicted(folder: Path) -> None:
    run, resolution = launched(folder)
    stated = {name: item.effective for name, item in run.arguments.items() if item.effective is not UNSEEN}
    expected = KNOWN["expected"].get(f"{folder.parent.name}-{folder.name}", {})
    unseen = expected.get("unseen", ())
    differing = {
        name: (value, resolution.effective[name])
        for name, value in stated.items()
        if name in resolution.effective and resolution.effective[name] != value and value not in HIDDEN
    }
    assert set(differing) == set(unseen), differing
    assert set(unseen) <= {remark.flag for remark in resolution.remarks}
    assert {name: resolution.effective.get(name) for name in expected.get("effective", {})} == expected.get(
        "effective", {}
    )
    for line in expected.get("announced", ()):
        assert line in resolution.announced
        assert line in (folder / "log.txt").read_text("utf-8")
    assert [item.message for item in resolution.rejections] == expected.get("refused", [])
    for message in expected.get("refused", ()):
        assert message in (folder / "log.txt").read_text("utf-8")
