"""Tests that need a program of the system: skipped where it cannot be had, and listed by name at the end."""

from __future__ import annotations

import shutil

import pytest

_MISSING: dict[str, str] = {}


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip a test marked ``needs(program, ...)`` where none of the named programs is installed."""
    for mark in item.iter_markers("needs"):
        if not any(shutil.which(program) for program in mark.args):
            wanted = " or ".join(mark.args)
            _MISSING[item.nodeid] = wanted
            pytest.skip(f"{wanted} is not installed")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Name what was not run, so that a green end is not taken for more than it is."""
    if not _MISSING:
        return
    terminalreporter.section("not run: a system program is missing")
    for nodeid, program in sorted(_MISSING.items()):
        terminalreporter.line(f"{program}: {nodeid}")
