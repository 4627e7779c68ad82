"""Writes the expected reports of ``golden/manifest.yaml``: ``python tests/cli/rewrite.py``. People read the diff."""

from __future__ import annotations

import io
import os
import re
from contextlib import chdir, redirect_stdout, suppress
from pathlib import Path

GOLDEN = Path(__file__).parent / "golden"
FORMS = {"text": "check.txt", "markdown": "check.md"}
# Grows with every rule that reads a draft's config, and is tested elsewhere.
NOT_JUDGED = re.compile(r"(?m)^(?:## )?Not judged$\n(?:(?!(?:## )?Corrected).*\n)*")


def report(form: str) -> str:
    """What the command prints, with paths as seen from the folder of the manifest."""
    from dashboard.cli import main

    printed = io.StringIO()
    with chdir(GOLDEN), redirect_stdout(printed), suppress(SystemExit):
        main(["check", "--format", form, "--file", "manifest.yaml"])
    text = "".join(line.rstrip() + "\n" for line in printed.getvalue().splitlines())
    return NOT_JUDGED.sub("", text)


if __name__ == "__main__":
    os.environ["COLUMNS"] = "80"
    for form, name in FORMS.items():
        (GOLDEN / name).write_text(report(form), encoding="utf-8")
