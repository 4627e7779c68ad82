"""The command line starts, and a launch command is checked, without the heavy packages."""

from __future__ import annotations

import subprocess
import sys

import pytest

HEAVY = ("numpy", "pandas", "scipy", "sqlalchemy", "fastapi", "plotly", "httpx", "alembic")
PROGRAM = """
import sys
from dashboard.cli import main
try:
    main(sys.argv[1:])
except SystemExit:
    pass
print("loaded:", *[name for name in {heavy!r} if name in sys.modules], file=sys.stderr)
"""
COMMAND = ["sglang", "serve", "m", "--speculative-algorithm", "EAGLE3", "--speculative-num-steps", "3"]


@pytest.mark.parametrize(
    "arguments",
    [
        ["--version"],
        ["--help"],
        ["check", "--help"],
        ["check", "--engine-version", "0.5.9", "--", *COMMAND],
        ["check", "--format", "sarif", "--", *COMMAND],
        ["resolve-table", "sglang"],
    ],
    ids=lambda arguments: " ".join(arguments[:3]),
)
def test_nothing_heavy_is_loaded(arguments):
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(heavy=HEAVY), *arguments], capture_output=True, text=True, check=True
    )
    assert ran.stdout
    assert ran.stderr.splitlines()[-1] == "loaded:"
