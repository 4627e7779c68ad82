"""Runs the command line inside the test's own process."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from dashboard.cli import main


@dataclass
class Ran:
    """What a command printed, and its exit code."""

    code: int
    out: str
    err: str


@pytest.fixture
def draftscope(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    def run(*arguments: object, stdin: str = "") -> Ran:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as stopped:
            main([str(argument) for argument in arguments])
        captured = capsys.readouterr()
        return Ran(int(stopped.value.code or 0), captured.out, captured.err)

    return run
