"""``draftscope resolve-table``: all known steps of an engine."""

from __future__ import annotations

import json

from analysis.resolve import find_engine
from analysis.resolve.table import COLUMNS
from collector.domain.versions import Release


def test_the_steps_of_a_release_in_order(draftscope):
    written = json.loads(draftscope("resolve-table", "sglang", "0.5.9", "--format", "json").out)
    steps = [step.id for step in find_engine("sglang").steps_of(Release.parse("0.5.9"))]
    assert [step["id"] for step in written["steps"]] == steps
    assert all(set(step) == set(COLUMNS) for step in written["steps"])
    assert (written["engine"], written["release"]) == ("sglang", "0.5.9")


def test_all_releases_in_text(draftscope):
    ran = draftscope("resolve-table", "sglang")
    assert ran.code == 0
    for step in find_engine("sglang").steps:
        assert f"{step.id} " in ran.out
    assert "  prints silent" in ran.out


def test_markdown_is_one_table(draftscope):
    lines = draftscope("resolve-table", "sglang", "0.5.9", "--format", "markdown").out.splitlines()
    assert lines[1] == "| --- | --- | --- | --- | --- | --- |"
    assert all(line.startswith("| ") for line in lines)
    assert len(lines) > 50


def test_a_release_that_was_not_read_is_said(draftscope):
    assert "lies outside the releases that were read" in draftscope("resolve-table", "sglang", "9.9").err
    assert draftscope("resolve-table", "sglang", "0.5.10.post1").err == ""


def test_what_is_not_known_is_said(draftscope):
    ran = draftscope("resolve-table", "nothing")
    assert (ran.code, ran.out) == (2, "")
    assert "sglang" in ran.err
    assert draftscope("resolve-table", "sglang", "new").code == 2
