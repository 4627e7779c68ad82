"""Reports in the terminal and as Markdown show the causes first, and the experiment as commands."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
KIMI = "tests/cases/kimi-k25-capture-fixed"


def printed(*arguments: str) -> str:
    run = subprocess.run(
        [BIN / "draftscope", "diagnose", KIMI, *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert run.returncode == 1, run.stderr
    return run.stdout


def in_order(text: str, *words: str) -> bool:
    places = [text.find(word) for word in words]
    return -1 not in places and places == sorted(places)


def test_an_interval_has_the_digits_of_its_share() -> None:
    assert "Accepted of drafted  16.0% [12.5, 19.5]" in printed()


def test_the_text_report_shows_causes_before_figures() -> None:
    text = printed()
    assert in_order(
        text,
        "Figures sound?",
        "What could be behind it",
        "1. likely   The draft is fed other layers",
        "None of these explains it",
        "What would tell them apart",
        "$ SGLANG_ENABLE_SPEC_V2=True python3 -m sglang.launch_server",
        "If all stay low:",
        "Known upstream",
        "What each repair would give",
        "Ruled out",
        "Two-batch overlap runs the layers",
    )


def test_markdown_has_them_too() -> None:
    text = printed("--format", "markdown")
    assert in_order(
        text,
        "## What could be behind it",
        "1. likely: **The draft is fed other layers than it was trained on**",
        "None of these explains it",
        "```sh\nSGLANG_ENABLE_SPEC_V2=True",
        "- If one set matches training:",
        "## Known upstream",
        "## Figures",
        "Two-batch overlap runs the layers",
    )
