"""The README's commands do what it shows."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
BIN = Path(sys.executable).parent


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def console(command: str) -> str:
    """What the README shows below a command, up to its closing dots."""
    block = next(block for block in blocks("console") if block.startswith(f"$ {command}"))
    return block.split("\n", 1)[1].removesuffix("...\n")


def test_the_diagnosis_prints_what_the_readme_shows() -> None:
    command = "draftscope diagnose dashboard/samples/kimi-k25-capture-fixed"
    run = subprocess.run(
        [BIN / "draftscope", *command.split()[1:]], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 1
    printed = "".join(line.rstrip() + "\n" for line in run.stdout.splitlines())
    assert printed.startswith(console(command))


def test_the_python_example_runs() -> None:
    (example,) = blocks("python")
    run = subprocess.run([sys.executable, "-c", example], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.startswith("Two faults: drafts are accepted too rarely")
    assert "first window" in run.stdout


def test_every_file_the_readme_points_to_exists() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (ROOT / target).exists(), target


def test_every_command_the_readme_names_exists() -> None:
    named = {match.split()[0] for match in re.findall(r"^\| `draftscope ([^`]+)`", README, re.MULTILINE)}
    assert len(named) >= 8
    for command in named:
        help_text = subprocess.run([BIN / "draftscope", command, "--help"], capture_output=True, text=True, check=True)
        assert "Usage" in help_text.stdout


def test_make_run_starts_the_service_and_prints_its_address(tmp_path: Path) -> None:
    process = subprocess.Popen(
        ["make", "run", "PORT=0", f"VENV={sys.prefix}"],
        cwd=ROOT,
        env=os.environ | {"XDG_DATA_HOME": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        address = wait_for_address(process)
        page = httpx.get(address, timeout=30.0)
        assert page.status_code == httpx.codes.OK
        assert "Kimi-K2.5" in page.text
    finally:
        os.killpg(process.pid, signal.SIGTERM)
        process.communicate(timeout=30)


def wait_for_address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    deadline = time.monotonic() + 240
    seen = []
    while time.monotonic() < deadline:
        line = process.stdout.readline()
        if not line and process.poll() is not None:
            break
        seen.append(line)
        found = re.search(r"http://127\.0\.0\.1:\d+", line)
        if found:
            return found[0]
    pytest.fail("no address printed: " + "".join(seen))
