"""Published acceptance lengths are context, with their sources, and never a verdict."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analysis.published import FEW, METHODS, NEAR, TASKS, nearest, published_rows, task_kind
from analysis.runner import diagnose
from collector.bundle import read_bundle

CASES = sorted(path.parent for path in (Path(__file__).parents[2] / "cases").glob("*/input.log"))


def test_every_row_says_where_it_was_published() -> None:
    assert len(published_rows()) > 300
    for row in published_rows():
        assert row.source.strip(), row
        assert row.length > 0
        assert row.depth is None or 1 <= row.depth <= 64


def test_every_method_of_ours_is_among_the_published() -> None:
    published = {row.method for row in published_rows()}
    for names in METHODS.values():
        assert published & set(names)


def test_the_range_encloses_the_middle_eight_tenths() -> None:
    found = nearest("eagle3", 3)
    assert found is not None
    names = METHODS["eagle3"]
    lengths = sorted(row.length for row in published_rows() if row.method in names and row.depth == 3 and row.chain)
    assert found.rows == len(lengths)
    inside = [length for length in lengths if found.low <= length <= found.high]
    assert 0.7 * len(lengths) <= len(inside) <= 0.9 * len(lengths)
    assert 1.5 < found.low < found.high < 4
    assert found.words == f"published for eagle3 at depth 3: {found.low:.2f} to {found.high:.2f} ({found.rows} rows)"
    assert found.sources


@pytest.mark.parametrize(
    ("method", "depth"), [*product([*METHODS, "ngram", "", None], [None, 0, 1, 3, 5, 8, 16, 1000])]
)
@pytest.mark.parametrize("task", ["", *TASKS, "unheard of"])
@pytest.mark.parametrize("chain", [True, False])
def test_a_range_is_near_or_there_is_none(method: str | None, depth: int | None, task: str, chain: bool) -> None:
    found = nearest(method, depth, task, chain=chain)
    if found is None:
        return
    assert method in METHODS
    assert depth is not None
    assert abs(found.depth - depth) <= NEAR
    assert found.rows >= FEW
    assert found.task in ("", task)
    assert 0 < found.low <= found.high
    if chain:
        assert found.high <= found.depth + 1, "no step accepts more than was drafted"


@pytest.mark.parametrize("method", ["ngram", "suffix", "", None, "standalone"])
def test_nothing_is_claimed_of_other_methods(method: str | None) -> None:
    assert nearest(method, 3) is None


@pytest.mark.parametrize(
    ("dataset", "kind"),
    [
        ("mtbench", "chat"),
        ("MT-Bench (80)", "chat"),
        ("gsm8k", "maths"),
        ("Math500", "maths"),
        ("HumanEval", "code"),
        ("cnn_dailymail", "text"),
        ("ShareGPT unknown", ""),
        ("", ""),
    ],
)
def test_kinds_of_task(dataset: str, kind: str) -> None:
    assert task_kind(dataset) == kind


def test_most_rows_have_a_kind() -> None:
    rows = published_rows()
    assert sum(bool(row.task) for row in rows) > 0.6 * len(rows)


@given(st.text())
def test_any_data_set_has_a_known_kind_or_none(name: str) -> None:
    assert task_kind(name) in {"", *TASKS}


def test_words_name_the_task() -> None:
    found = nearest("eagle3", 3, "code")
    assert found is not None
    assert re.fullmatch(
        r"published for eagle3 at depth \d+, code: \d\.\d\d to \d\.\d\d \(\d+ rows\)", replace(found, task="code").words
    )
    assert found.document()["text"] == found.words


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_a_range_never_changes_what_is_judged(case: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    bundle = read_bundle([case])
    told = diagnose(bundle).document()
    monkeypatch.setattr("analysis.published.nearest", lambda *_, **__: None)
    silent = diagnose(bundle).document()
    assert silent.get("published") is None
    for key in ("findings", "runs", "ruled_out"):
        assert told[key] == silent[key]
    for name, verdict in told["verdicts"].items():
        assert verdict["state"] == silent["verdicts"][name]["state"]


def test_an_acceptance_that_cannot_be_judged_is_placed_among_the_published() -> None:
    """Without a validation figure and without an earlier run nothing can be said, but where it stands."""
    folder = Path(__file__).parents[2] / "cases" / "kimi-k25-first-run"
    document = diagnose(read_bundle([folder / "input.log"])).document()
    acceptance = document["verdicts"]["acceptance"]
    assert acceptance["state"] == "cannot_tell"
    assert document["published"]["text"].removeprefix("published") in str(acceptance)
    assert document["published"]["sources"]
