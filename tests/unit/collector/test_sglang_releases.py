"""The release is told from the form of the lines, and contradictions are said."""

import pytest

from collector.domain.versions import Release, ReleaseRange
from collector.formats.base import ReadOptions
from collector.formats.reader import LogReader
from collector.formats.sglang.releases import rate_range

HEAD = "[2026-01-01 00:00:0{}] "


def read(*lines: str, version: str | None = None):
    reader = LogReader(ReadOptions("log", Release.parse(version) if version else None), "sglang")
    reader.feed("\n".join(HEAD.format(number % 10) + line for number, line in enumerate(lines)).encode())
    reader.finish()
    return reader.take()[0].run, reader.summary()


@pytest.mark.parametrize(
    ("line", "releases"),
    [
        (
            "Decode batch. #running-req: 1, #token: 9, token usage: 0.00, gen throughput (token/s): 1.00, #queue-req: 0",
            "-0.4.1",
        ),
        (
            (
                "Decode batch. #running-req: 1, #token: 9, token usage: 0.00, accept len: 2.00, gen throughput (token/s): 1.00, "
                "largest-len: 0, #queue-req: 0, "
            ),
            "0.4.3",
        ),
        (
            (
                "Decode batch. #running-req: 1, #token: 9, token usage: 0.00, accept len: 2.00, cuda graph: True, "
                "gen throughput (token/s): 1.00, #queue-req: 0"
            ),
            "0.4.6-0.4.8",
        ),
        (
            (
                "Decode batch. #running-req: 1, #token: 9, token usage: 0.00, accept len: 2.00, cuda graph: True, "
                "gen throughput (token/s): 1.00, #queue-req: 0, "
            ),
            "0.4.9-0.5.3.post1",
        ),
        (
            (
                "Decode batch. #running-req: 1, #token: 9, token usage: 0.00, accept len: 2.00, accept rate: 0.50, cuda graph: True, "
                "gen throughput (token/s): 1.00, #queue-req: 0, "
            ),
            "0.5.3.post2-0.5.3",
        ),
        (
            (
                "Decode batch, #running-req: 1, #token: 9, token usage: 0.00, accept len: 2.00, accept rate: 0.50, cuda graph: True, "
                "gen throughput (token/s): 1.00, #queue-req: 0, "
            ),
            "0.5.4-0.5.8",
        ),
        (
            (
                "Decode batch, #running-req: 1, #token: 9, token usage: 0.00, accept len: 2.00, accept rate: 0.50, cap len: 3.00, "
                "cuda graph: True, gen throughput (token/s): 1.00, #queue-req: 0"
            ),
            "0.5.16-",
        ),
        ("server_args={'model_path': 'a'}", "0.5.19-"),
        ("server_args=ServerArgs(model_path='a', enable_beta_spec=False)", "0.5.3"),
    ],
)
def test_forms(line, releases):
    run, reading = read(line)
    assert run.release_range == ReleaseRange.parse(releases)
    assert reading.notes == ()


def test_a_contradiction_keeps_the_surer_clue_and_is_noted():
    run, reading = read(
        "Decode batch. #running-req: 1, #token: 9, token usage: 0.00, accept len: 2.00, cuda graph: True, "
        "gen throughput (token/s): 1.00, #queue-req: 0",
        "Init parallel begin.",
        "Prefill batch, #new-seq: 1, #new-token: 7, #cached-token: 0, token usage: 0.00, #running-req: 0, #queue-req: 0, "
        "#pending-token: 0, cuda graph: False, input throughput (token/s): 1.00",
    )
    assert str(run.release_range) == "0.4.6 to 0.4.8"
    assert any("contradicting" in note and "#pending-token" in note for note in reading.notes)


def test_a_stated_release_wins_and_a_misfit_is_noted():
    line = (
        "Decode batch, #running-req: 1, #token: 9, token usage: 0.00, accept len: 2.00, accept rate: 0.50, cuda graph: True, "
        "gen throughput (token/s): 1.00, #queue-req: 0"
    )
    run, reading = read(line, version="0.4.9")
    assert str(run.engine_version) == "0.4.9"
    assert any("0.4.9 was stated" in note for note in reading.notes)
    run, reading = read(line, version="0.5.10.post1")
    assert not any("was stated" in note for note in reading.notes)


def pairs(width, formula):
    lengths = (1.31, 1.62, 1.8, 2.05, 2.4)
    return [(length, round(formula(length, width), 2)) for length in lengths]


@pytest.mark.parametrize(
    ("printed", "arguments", "releases"),
    [
        (pairs(6, lambda length, width: length / width), {}, "0.5.3.post2-0.5.10"),
        (pairs(6, lambda length, width: (length - 1) / (width - 1)), {}, "0.5.11-"),
        (
            pairs(8, lambda length, width: length / width),
            {"speculative_num_steps": 3, "speculative_num_draft_tokens": 8},
            "0.5.5-0.5.10",
        ),
        (
            pairs(4, lambda length, width: length / width),
            {"speculative_num_steps": 3, "speculative_num_draft_tokens": 8},
            "0.5.3.post2-0.5.4",
        ),
        ([(1.8, 0.3)], {}, None),
        ([(1.8, 0.9), (1.9, 0.1), (2.0, 0.5)], {}, None),
    ],
)
def test_rate_definitions(printed, arguments, releases):
    assert rate_range(printed, arguments) == releases


def test_upper_ends_with_and_without_post_releases():
    narrow = ReleaseRange.parse("-0.5.3.post1")
    assert ReleaseRange.parse("-0.5.3").intersect(narrow) == narrow
    assert narrow.intersect(ReleaseRange.parse("-0.5.3")) == narrow
