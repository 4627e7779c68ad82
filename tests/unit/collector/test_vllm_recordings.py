"""Logs of running vLLM servers are read to what the engine itself counted."""

import json
import re
from pathlib import Path

import pytest

from collector.bundle import read_log
from collector.domain.arguments import UNSEEN
from collector.domain.versions import Release
from collector.launch import parse_launch
from tests.golden.logs.expected import as_read, recordings

RECORDINGS = recordings("vllm")
DRAFTING = [folder for folder in RECORDINGS if folder.name not in {"baseline", "refused-async-ngram"}]
GOLDEN = RECORDINGS[0].parent


def facts(folder: Path) -> dict:
    return json.loads((folder / "launch.json").read_text("utf-8"))


def only_run(folder: Path):
    (run,), reading = read_log(folder / "log.txt")
    return run, reading


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)
def test_reads_as_expected(folder):
    assert json.loads(json.dumps(as_read(folder))) == json.loads((folder / "expected.json").read_text("utf-8"))


@pytest.mark.parametrize("folder", DRAFTING, ids=lambda folder: folder.name)
def test_counts_are_those_of_the_engines_counters(folder):
    counters = facts(folder)["counters"]
    windows = only_run(folder)[0].windows
    for name in ("accepted_tokens", "drafted_tokens", "verify_steps"):
        assert sum(getattr(window, name) or 0 for window in windows) == counters[name]
    positions = [window.accepted_at for window in windows if window.accepted_at]
    summed = [sum(counts) for counts in zip(*positions, strict=True)]
    # each line rounds a position to three decimals
    rounding = [0.0005 * sum(window.verify_steps or 0 for window in windows)] * len(summed)
    assert len(summed) == len(counters["accepted_at"])
    for counted, truth, slack in zip(summed, counters["accepted_at"], rounding, strict=True):
        assert abs(counted - truth) <= slack
    assert sum(summed) == counters["accepted_tokens"]


@pytest.mark.parametrize("folder", DRAFTING, ids=lambda folder: folder.name)
def test_generated_tokens_of_known_intervals_lie_within_those_of_the_server(folder):
    counters = facts(folder)["counters"]
    windows = only_run(folder)[0].windows
    known = sum(window.generated_tokens or 0 for window in windows)
    first = windows[0].generation_throughput * windows[0].seconds  # the only interval whose clock is not certain
    assert known < counters["generated_tokens"]
    assert known + first == pytest.approx(counters["generated_tokens"], rel=0.02)


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)
def test_one_window_for_each_engine_line(folder):
    printed = len(re.findall(rb"\] Engine 000: Avg", (folder / "log.txt").read_bytes()))
    assert len(only_run(folder)[0].windows) == printed


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)
def test_nearly_every_engine_line_is_understood(folder):
    reading = only_run(folder)[1]
    assert reading.unread < 0.02 * reading.engine_lines
    assert reading.torn_samples == 0


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)
def test_release_is_stated_and_fits_the_form_of_the_lines(folder):
    run, _ = only_run(folder)
    assert run.engine_version == Release.parse(facts(folder)["release"])
    assert run.engine_version in run.release_range


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)
def test_the_log_tells_what_the_command_asked_for(folder):
    run, _ = only_run(folder)
    asked = parse_launch(facts(folder)["command_line"]).requested
    logged = run.arguments.requested()
    assert {name: value for name, value in asked.items() if name in logged} == {
        name: logged[name] for name in asked if name in logged
    }
    assert {name for name in asked if name.startswith("speculative_config")} <= set(logged)
    assert run.port == asked["port"]


@pytest.mark.parametrize(
    ("name", "changed"),
    [
        ("override-method", {"speculative_config.method": ("draft_model", "eagle3")}),
        ("override-speculators", {"speculative_config.method": ("ngram", "eagle3")}),
        ("eagle3", {}),
    ],
)
def test_silent_overrides_show_in_the_configuration_line(name, changed):
    run, _ = only_run(GOLDEN / name)
    found = {
        argument.name: (argument.requested, argument.effective)
        for argument in run.arguments.values()
        if argument.name.startswith("speculative_config") and argument.effective is not UNSEEN and argument.changed
    }
    assert found == changed


def test_a_refused_start_is_a_run_with_the_reason():
    run, _ = only_run(GOLDEN / "refused-async-ngram")
    (refused,) = run.events_of("refused")
    assert str(refused.values["message"]).startswith("Currently, async scheduling is only supported with EAGLE/MTP")
    assert "ValidationError" in refused.evidence.text
    assert run.windows == []


def test_an_engine_that_is_killed_at_shutdown_did_not_crash():
    for name in ("baseline", "ngram"):
        run, _ = only_run(GOLDEN / name)
        assert b"AsyncLLM output_handler failed" in (GOLDEN / name / "log.txt").read_bytes()
        assert run.events_of("crashed") == []


def test_the_layers_that_feed_the_draft_are_told():
    run, _ = only_run(GOLDEN / "eagle3-wrong-aux")
    assert [event.values for event in run.events_of("aux-layers")] == [{"origin": "config", "layers": [0, 1, 8]}]
