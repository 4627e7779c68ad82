"""Logs of running SGLang servers are read to what their requests counted."""

import json
import re
from pathlib import Path

import pytest

from collector.bundle import read_log
from collector.domain.runs import RunRecord
from collector.domain.versions import Release
from collector.formats.sglang.releases import rate_range
from collector.launch import parse_launch
from tests.golden.logs.expected import as_read, recordings

GOLDEN = Path(__file__).parents[2] / "golden" / "logs"
RECORDINGS = recordings("sglang")
DRAFTING = [folder for folder in RECORDINGS if "baseline" not in folder.name and "refused" not in folder.name]


def facts(folder: Path) -> dict:
    return json.loads((folder / "launch.json").read_text("utf-8"))


def runs_of(folder: Path) -> list[RunRecord]:
    return [run for run in read_log(folder / "log.txt")[0] if run.windows]


def length(windows) -> float:
    steps = sum(window.verify_steps for window in windows)
    return 1 + sum(window.accepted_tokens for window in windows) / steps


def requests_length(stages: list[dict]) -> float:
    """What the engine counted request by request; where it counts no drafts, tokens without the prompt's own."""
    rounds = accepted = 0
    for stage in stages:
        sums = stage["sums"]
        histogram = sums.get("spec_correct_drafts_histogram") or sums.get("spec_accept_histogram")
        rounds += sums["spec_verify_ct"]
        if histogram:
            accepted += sum(index * count for index, count in enumerate(histogram))
        else:
            accepted += sums["completion_tokens"] - stage["requests"] - sums["spec_verify_ct"]
    return 1 + accepted / rounds


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)
def test_reads_as_expected(folder):
    assert json.loads(json.dumps(as_read(folder))) == json.loads((folder / "expected.json").read_text("utf-8"))


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)
def test_every_decode_line_is_a_window(folder):
    printed = len(re.findall(rb"(?m)\] Decode batch", (folder / "log.txt").read_bytes()))
    assert sum(len(run.windows) for run in read_log(folder / "log.txt")[0]) == printed


@pytest.mark.parametrize("folder", DRAFTING, ids=lambda folder: folder.name)
def test_length_is_that_of_the_requests(folder):
    stages = facts(folder)["stages"]
    for number, run in enumerate(runs_of(folder)):
        own = [stage for stage in stages if stage["start_no"] == number]
        logged = [
            window for window in run.windows if any(stage["start"] <= window.at <= stage["end"] + 3 for stage in own)
        ]
        assert length(logged) == pytest.approx(requests_length(own), abs=0.1)


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)
def test_what_runs_is_what_the_command_asked_for_or_what_the_engine_made_of_it(folder):
    overridden = {"0.5.9-override-draft-tokens": 2, "0.5.11-override-draft-tokens": 2}
    for start, run in zip(facts(folder)["starts"], runs_of(folder), strict=False):
        requested = parse_launch(start["command_line"]).requested
        for name in ("speculative_algorithm", "speculative_num_steps", "speculative_num_draft_tokens", "port"):
            if name in requested:
                expected = requested[name]
                if name == "speculative_num_draft_tokens":
                    expected = overridden.get(folder.name, expected)
                assert run.arguments[name].effective == expected


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)
def test_release_is_within_the_range(folder):
    release = Release.parse(facts(folder)["release"])
    for run in read_log(folder / "log.txt")[0]:
        assert Release(release.base) in run.release_range or release in run.release_range
        assert run.release_range.first is not None


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)
def test_nearly_every_engine_line_is_understood(folder):
    reading = read_log(folder / "log.txt")[1]
    assert reading.unread < 0.02 * max(reading.engine_lines, 1)
    assert reading.torn_samples == 0


@pytest.mark.parametrize(
    ("name", "releases"),
    [
        ("0.5.3.post3-eagle3-beta-spec", "0.5.3.post2-0.5.10"),
        ("0.5.9-eagle3-tree", "0.5.5-0.5.10"),
        ("0.5.9-override-draft-tokens", "0.5.3.post2-0.5.10"),
        ("0.5.11-eagle3", "0.5.11-"),
        ("0.5.19-ngram", "0.5.11-"),
        ("0.5.23-eagle3", "0.5.11-"),
    ],
)
def test_rate_definition_shows_in_the_pairs(name, releases):
    run = runs_of(GOLDEN / "sglang" / name)[0]
    pairs = [(window.printed_length, window.printed_rate) for window in run.windows if window.printed_length > 1]
    arguments = {argument: run.arguments.value(argument) for argument in run.arguments}
    assert rate_range(pairs, arguments) == releases


def test_restarts_are_three_runs_with_their_own_arguments():
    runs = runs_of(GOLDEN / "sglang" / "0.5.11-restarts")
    assert [run.arguments.value("speculative_num_draft_tokens") for run in runs] == [4, 2, 5]
    assert [run.arguments.value("max_running_requests") for run in runs] == [48, 48, 6]
    assert [len(run.events_of("shutdown")) for run in runs] == [2, 2, 2]
    # what the argument stage says stands after the line that ends the run before
    third = runs[2]
    first_line = min(event.evidence.line for event in third.events)
    assert first_line > max(event.evidence.line for event in runs[1].events)
    assert third.started_at > runs[1].ended_at


def test_refused_start_is_a_run_with_the_reason():
    runs, _ = read_log(GOLDEN / "sglang" / "0.5.11-refused-steps-only" / "log.txt")
    (refused,) = runs[0].events_of("refused")
    assert len(runs) == 1
    assert refused.values["exception"] == "TypeError"
    assert "'>' not supported between instances of 'NoneType' and 'int'" in refused.evidence.text
    assert not runs[0].arguments.any_effective


def test_beta_spec_is_corrected_and_said():
    runs, reading = read_log(GOLDEN / "sglang" / "0.5.3.post3-eagle3-beta-spec" / "log.txt")
    window = runs[0].windows[0]
    assert window.printed_length == 3.55
    assert window.accepted_tokens == pytest.approx((3.55 - 2) * window.verify_steps)
    assert window.generated_tokens == pytest.approx((3.55 - 1) * window.verify_steps)
    assert any("--enable-beta-spec" in note for note in reading.notes)
    # the clock: windows without a pause end as far apart as they are long
    clocks = [
        (late.at - early.at, late.seconds) for early, late in zip(runs[0].windows, runs[0].windows[1:], strict=False)
    ]
    assert sum(apart for apart, _ in clocks) == pytest.approx(sum(seconds for _, seconds in clocks), rel=0.1)
