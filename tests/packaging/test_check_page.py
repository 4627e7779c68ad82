"""The commands of docs/check.md print what it shows."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
import yaml

from tests.cli.conftest import draftscope  # noqa: F401 - the fixture

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "check.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)


@pytest.mark.parametrize("block", blocks("console"))
def test_a_command_prints_what_the_page_shows(block, draftscope, monkeypatch):  # noqa: F811
    monkeypatch.chdir(ROOT)
    command, shown = block.removeprefix("$ draftscope ").split("\n", 1)
    ran = draftscope(*shlex.split(command))
    printed = "".join(line.rstrip() + "\n" for line in ran.out.splitlines())
    assert printed.startswith(shown.removesuffix("...\n"))
    assert ran.code == 1


def test_the_json_it_shows_is_what_is_written(draftscope, monkeypatch):  # noqa: F811
    monkeypatch.chdir(ROOT)
    (shown,) = (json.loads("{" + block + "}") for block in blocks("json"))
    written = json.loads(draftscope("check", "--format", "json", "--file", "docs/examples/decode.yaml").out)
    for flag, entry in shown.items():
        assert entry.items() <= written["arguments"][flag].items()


def test_the_workflow_and_the_hook_fit_the_action_and_the_hook_of_the_repository():
    step, hook = (yaml.safe_load(block) for block in blocks("yaml"))
    action = yaml.safe_load((ROOT / "action.yml").read_text(encoding="utf-8"))
    assert set(step[0]["with"]) <= set(action["inputs"])
    assert set(re.findall(r"outputs\.([\w-]+)", blocks("yaml")[0])) <= set(action["outputs"])
    hooks = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert {item["id"] for item in hook["repos"][0]["hooks"]} <= {item["id"] for item in hooks}


def test_every_option_the_page_names_exists(draftscope):  # noqa: F811
    known = draftscope("check", "--help").out
    for option in set(re.findall(r"`(--[a-z-]+)", PAGE)) - {"--config"}:
        assert option in known
