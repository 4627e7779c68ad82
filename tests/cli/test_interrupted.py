"""Ctrl-C while a command still loads."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

SCRIPT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]["scripts"]["draftscope"]
PROGRAM = """
import importlib, os, signal, sys

class Interrupt:
    def find_spec(self, name, path=None, target=None):
        if name == when:
            os.kill(os.getpid(), signal.SIGINT)

script, when, *arguments = sys.argv[1:]
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.meta_path.insert(0, Interrupt())
sys.argv[1:] = arguments
module, _, function = script.partition(":")
getattr(importlib.import_module(module), function)()
"""


@pytest.mark.parametrize("when", ["dashboard.cli", "typer", "dashboard.cli.watch", "dashboard.settings"])
def test_an_interrupt_while_modules_load_ends_without_a_word(when: str, tmp_path: Path) -> None:
    command = [sys.executable, "-c", PROGRAM, SCRIPT, when, "db", "export", "out", "--config", "none.toml"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")
