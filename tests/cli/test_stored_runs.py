"""Stored runs on the command line: listed, shown and compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parents[2] / "dashboard" / "samples"


@pytest.fixture
def stored(draftscope, tmp_path, monkeypatch):
    """The command line over a database with the runs of one sample."""
    settings = tmp_path / "draftscope.toml"
    settings.write_text(f'database_url = "sqlite:///{tmp_path / "runs.db"}"\n')
    monkeypatch.chdir(tmp_path)
    sample = min(folder for folder in SAMPLES.iterdir() if (folder / "baseline.log").exists())
    assert draftscope("ingest", sample).code == 0
    return draftscope


def test_runs_are_listed_and_shown(stored):
    rows = json.loads(stored("runs", "list", "--format", "json").out)["runs"]
    assert len(rows) >= 2
    text = stored("runs", "list").out
    for row in rows:
        shown = stored("runs", "show", row["id"], "--format", "json")
        document = json.loads(shown.out)
        assert document["headline"] == row["headline"]
        assert f"{row['id']}  " in text
        assert shown.code in {0, 1}


def test_an_empty_database_says_what_fills_it(draftscope, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "draftscope.toml").write_text(f'database_url = "sqlite:///{tmp_path / "runs.db"}"\n')
    ran = draftscope("runs", "list")
    assert (ran.code, "draftscope ingest" in ran.out) == (0, True)


@pytest.mark.parametrize("number", ["99", "one", "-1x", "٣", "9" * 40])
def test_a_run_that_is_not_there(stored, number):
    ran = stored("runs", "show", "--", number)
    assert ran.code == 2
    assert ran.out == ""
    assert "no run has the id" in ran.err
    assert "draftscope runs list" in ran.err


def test_stored_runs_are_compared_as_files_are(stored):
    rows = json.loads(stored("runs", "list", "--format", "json").out)["runs"]
    numbers = sorted((row["id"] for row in rows), key=int)[:2]
    compared = stored("compare", *numbers, "--format", "json")
    assert compared.code == 0
    document = json.loads(compared.out)
    assert document["against"][0]["run"] == numbers[1]
    missing = stored("compare", numbers[0], "99")
    assert (missing.code, "no run has the id 99" in missing.err) == (2, True)


def test_differences_have_the_unit_of_the_figures(stored):
    rows = json.loads(stored("runs", "list", "--format", "json").out)["runs"]
    numbers = sorted((row["id"] for row in rows), key=int)[:2]
    lines = [line for line in stored("compare", *numbers).out.splitlines() if line.startswith("Step time")]
    assert lines
    assert lines[0].count("ms") == 3
