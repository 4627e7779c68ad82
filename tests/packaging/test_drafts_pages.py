"""What docs/drafts.md and docs/benchmarks.md show is what is printed and read."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from analysis.published import nearest
from collector.domain.drafts import Measure
from collector.results import read_results
from tests.cli.conftest import draftscope  # noqa: F401 - the fixture

ROOT = Path(__file__).resolve().parents[2]
DRAFTS = (ROOT / "docs" / "drafts.md").read_text(encoding="utf-8")
BENCHMARKS = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", page, re.DOTALL)


def test_the_replay_prints_what_the_page_shows(draftscope, monkeypatch):  # noqa: F811
    monkeypatch.chdir(ROOT)
    (block,) = (block for block in blocks(DRAFTS, "console") if block.startswith("$ "))
    command, shown = block.removeprefix("$ draftscope ").split("\n", 1)
    ran = draftscope(*shlex.split(command))
    assert ran.code == 0
    assert "".join(line.rstrip() + "\n" for line in ran.out.splitlines()) == shown


@pytest.mark.parametrize("command", [line for block in blocks(DRAFTS, "console") for line in block.splitlines()
                                     if line.startswith("draftscope ")])  # fmt: skip
def test_every_command_and_option_exists(command, draftscope):  # noqa: F811
    words = shlex.split(command.partition(">")[0])[1:]
    known = draftscope(*words[:2], "--help")
    assert known.code == 0
    for option in words:
        if option.startswith("--"):
            assert option in known.out


def test_the_range_it_quotes_is_the_one_in_the_table():
    found = nearest("eagle3", 3)
    assert found is not None
    assert found.words in re.sub(r"\s+", " ", DRAFTS)


def test_it_explains_every_measure():
    for measure in set(Measure) - {Measure.UNKNOWN}:
        assert f"*{measure.value}*" in DRAFTS.lower()


def test_the_table_of_the_page_is_understood_in_full():
    (table,) = blocks(BENCHMARKS, "csv")
    results = read_results(table, "bench.csv")
    plain, drafting = results.rows
    assert results.unknown == ()
    assert (plain.speculating, drafting.speculating) == (False, True)
    assert (drafting.depth, drafting.acceptance_length, drafting.throughput) == (3, 2.61, 1490.2)
    assert drafting.time_to_first_token is not None
    assert drafting.time_to_first_token.mean == pytest.approx(0.101)
