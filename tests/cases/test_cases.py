"""Situations people met: what a right diagnosis contains, and what it must not claim."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from analysis.diagnosis import schema
from analysis.runner import diagnose
from collector.bundle import BundleOptions, read_bundle
from tests.cases.expectations import check_document, load_expected

HERE = Path(__file__).parent
CASES = sorted(path.parent for path in HERE.glob("*/expected.yaml"))


def document_of(folder: Path, scratch: Path) -> dict[str, Any]:
    """The diagnosis of a copy without answers, through JSON as users get it."""
    bundle = scratch / "bundle"
    shutil.copytree(folder, bundle, ignore=shutil.ignore_patterns("expected.yaml"))
    text = json.dumps(diagnose(read_bundle([bundle], BundleOptions())).document(), allow_nan=False)
    return dict(json.loads(text))


@pytest.mark.parametrize("folder", CASES, ids=lambda path: path.name)
def test_case(folder: Path, tmp_path: Path) -> None:
    document = document_of(folder, tmp_path)
    wrong = [
        f"{check.what}: {check.problem}" for check in check_document(load_expected(folder), document) if not check.right
    ]
    assert not wrong, "\n".join(wrong)
    assert document["crashed"] == []
    jsonschema.validate(document, schema())
