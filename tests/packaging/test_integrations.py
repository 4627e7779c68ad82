"""The GitHub Action and the pre-commit hook do what they say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
(HOOK,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
STEP = ACTION["runs"]["steps"][-1]
PATH = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
OVERRIDDEN = (
    "python -m sglang.launch_server --model-path m --speculative-algorithm EAGLE3 --speculative-draft-model-path d "
    "--speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 16\n"
)


@pytest.fixture
def repository(tmp_path):
    """A checkout with scripts in folders, one with a blank in its name."""
    (tmp_path / "deploy" / "gpu").mkdir(parents=True)
    (tmp_path / "deploy" / "gpu" / "over ridden.sh").write_text(OVERRIDDEN)
    (tmp_path / "deploy" / "plain.sh").write_text("sglang serve m\n")
    (tmp_path / "other.yaml").write_text("kind: Service\n")
    return tmp_path


def act(repository: Path, **inputs: str) -> subprocess.CompletedProcess[str]:
    """Run the action's script as a runner does, with its defaults for what is not given."""
    defaults = {name: item.get("default", "") for name, item in ACTION["inputs"].items()}
    given = defaults | {name.replace("_", "-"): value for name, value in inputs.items()}
    variables = {
        name: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda match: given[match[1]], text)
        for name, text in STEP["env"].items()
    }
    files = {"GITHUB_STEP_SUMMARY": str(repository / "summary.md"), "GITHUB_OUTPUT": str(repository / "output")}
    return subprocess.run(
        ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", STEP["run"]],
        cwd=repository,
        env={"PATH": PATH, "HOME": str(repository), **variables, **files},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_action_fails_on_an_override_and_leaves_its_reports(repository):
    ran = act(repository, files="deploy/**/*.sh\n", engine_version="0.5.9", device="h100")
    assert ran.returncode == 1, ran.stderr
    assert "FLG001" in ran.stdout
    assert "It will run as asked." in ran.stdout
    assert "FLG001" in (repository / "summary.md").read_text()
    assert (repository / "output").read_text() == "sarif-file=draftscope.sarif\n"
    results = json.loads((repository / "draftscope.sarif").read_text())["runs"][0]["results"]
    places = {item["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] for item in results}
    assert places == {"deploy/gpu/over%20ridden.sh"}


@pytest.mark.parametrize(
    ("inputs", "code"),
    [
        ({"files": "deploy/plain.sh"}, 0),
        ({"files": "  other.yaml  "}, 0),
        ({"files": "deploy/**/*.sh", "engine_version": "0.5.9", "fail_on": "critical"}, 0),
        ({"files": "absent/*.yaml"}, 2),
        ({"files": "\n"}, 2),
        ({"files": "deploy/plain.sh", "device": "h1000"}, 2),
        ({"files": "$(touch hacked)"}, 2),
    ],
)
def test_exit_codes_of_the_action(repository, inputs, code):
    assert act(repository, **inputs).returncode == code
    assert not (repository / "hacked").exists()


def test_every_input_of_the_action_is_used():
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    for name in ACTION["inputs"]:
        assert f"inputs.{name} " in text


def test_the_hook_looks_at_the_files_that_matter_and_at_several_at_once(repository):
    for name in (
        "launch.sh",
        "deploy/a.yaml",
        "docker-compose.yml",
        "serve.service",
        "serve.container",
        "server_info.json",
    ):
        assert re.search(HOOK["files"], name)
    for name in ("package.json", "models/config.json"):
        assert re.search(HOOK["exclude"], name)
    files = ["other.yaml", "deploy/plain.sh", "deploy/gpu/over ridden.sh"]
    codes = []
    for chosen in (files[:1], files[:2], files):
        ran = subprocess.run(
            [*HOOK["entry"].split(), *HOOK["args"], *chosen],
            cwd=repository,
            env={"PATH": PATH, "HOME": str(repository)},
            capture_output=True,
            text=True,
            check=False,
        )
        codes.append(ran.returncode)
    assert codes == [0, 0, 1]
    (repository / "deploy" / "gpu" / "over ridden.sh").write_text(
        OVERRIDDEN.replace("--speculative-num-draft", "--num-draft")
    )
    ran = subprocess.run(
        [*HOOK["entry"].split(), *HOOK["args"], *files], cwd=repository, env={"PATH": PATH}, check=False
    )
    assert ran.returncode == 1
