"""``draftscope formats``: what is understood, as the format modules state it."""

from __future__ import annotations

import json

from collector.formats import formats
from collector.formats.wrappers import wrappers


def test_every_engine_and_wrapping_is_listed(draftscope):
    out = draftscope("formats").out
    for log_format in formats():
        assert any(
            row.split()[0] == log_format.engine and row.split()[-1] == str(len(log_format.lines))
            for row in out.splitlines()
            if row.strip()
        )
    assert all(f"  {wrapper.title}" in out for wrapper in wrappers())
    assert ".zst" in out


def test_a_release_has_its_own_lines(draftscope):
    out = draftscope("formats", "vllm", "0.8.5").out
    assert "\nacceptance-0.8.5  0.8.5 to 0.10.1\n" in out
    assert "\nacceptance  " not in out
    assert "\nacceptance  since 0.10.2\n" in draftscope("formats", "vllm", "0.11.0").out


def test_json_holds_every_line_of_every_engine(draftscope):
    written = json.loads(draftscope("formats", "--format", "json").out)
    assert {engine["engine"]: [line["name"] for line in engine["lines"]] for engine in written["engines"]} == {
        log_format.engine: [line.name for line in log_format.lines] for log_format in formats()
    }
    decode = written["engines"][1]["lines"][0]
    assert (decode["begins"], decode["kept_as"]) == ("Decode batch", "figures")
    assert "printed_length" in decode["values"]


def test_what_is_not_known_is_said(draftscope):
    ran = draftscope("formats", "nothing")
    assert (ran.code, ran.out) == (2, "")
    assert "known engines: llamacpp" in ran.err
    assert "outside the releases read" in draftscope("formats", "sglang", "9.9").err
