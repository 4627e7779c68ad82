"""Logs of running llama.cpp servers are read to what the server itself counted."""

import json
from pathlib import Path

import pytest

from collector.bundle import read_log
from collector.launch import launches_of_words
from tests.golden.logs.expected import as_read, recordings

RECORDINGS = recordings("llamacpp")
GOLDEN = RECORDINGS[0].parent
COUNTED = [
    folder
    for folder in RECORDINGS
    if "verify_steps" in json.loads((folder / "launch.json").read_text("utf-8"))["counters"]
]


def facts(folder: Path) -> dict:
    return json.loads((folder / "launch.json").read_text("utf-8"))


def only_run(name: str):
    (run,), reading = read_log(GOLDEN / name / "log.txt")
    return run, reading


def summed(run, name: str) -> float:
    return sum(getattr(window, name) or 0 for window in run.windows)


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)
def test_reads_as_expected(folder):
    assert json.loads(json.dumps(as_read(folder))) == json.loads((folder / "expected.json").read_text("utf-8"))


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)
def test_counts_are_those_of_the_responses(folder):
    run, _ = only_run(folder.name)
    counters = facts(folder)["counters"]
    for name in ("accepted_tokens", "drafted_tokens", "generated_tokens"):
        assert summed(run, name) == counters[name]


@pytest.mark.parametrize("folder", COUNTED, ids=lambda folder: folder.name)
def test_drafts_and_positions_are_those_of_the_servers_counters(folder):
    run, _ = only_run(folder.name)
    counters = facts(folder)["counters"]
    assert summed(run, "verify_steps") == counters["verify_steps"]
    listed = [window.accepted_at for window in run.windows if window.accepted_at]
    if listed and "accepted_at" in counters:
        positions = [sum(counts) for counts in zip(*listed, strict=True)]
        assert positions[: len(counters["accepted_at"])] == counters["accepted_at"]


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)
def test_nearly_every_engine_line_is_understood(folder):
    _, reading = only_run(folder.name)
    assert reading.unread <= 0.02 * reading.engine_lines
    assert reading.torn_samples == 0


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)
def test_the_build_is_within_the_range(folder):
    from collector.domain.versions import Release

    run, _ = only_run(folder.name)
    assert Release.parse(facts(folder)["build"]) in run.release_range


@pytest.mark.parametrize("folder", RECORDINGS, ids=lambda folder: folder.name)
def test_every_option_of_the_commands_is_known(folder):
    (launch,) = launches_of_words(facts(folder)["command"], "launch.json")
    assert launch.engine == "llamacpp"
    assert set(launch.unknown) <= {"--no-ui"}


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("draft-far", "draft-simple"),
        ("draft-near-default-verbosity", "draft"),
        ("b7551-draft-near", "draft-simple"),
        ("eagle3-synth", "draft-eagle3"),
        ("mixed-ngram-draft", "ngram-map-k,draft-simple"),
        ("override-spec-type-without-md", "none"),
        ("override-vocab-content", "none"),
    ],
)
def test_how_a_server_drafts_as_far_as_its_lines_say(name, kind):
    assert only_run(name)[0].arguments.value("spec_type") == kind


def test_a_loaded_draft_alone_says_nothing_about_speculation():
    run, _ = only_run("override-md-without-spec-type-default-verbosity")
    assert run.events_of("draft-loading")
    assert not run.arguments.seen("spec_type")
    assert all(window.verify_steps is None for window in run.windows)


@pytest.mark.parametrize(
    ("name", "kind", "message"),
    [
        (
            "removed-draft-max",
            "refused",
            "the argument has been removed. use --spec-draft-n-max or --spec-ngram-mod-n-max",
        ),
        ("override-mtp-without-heads", "refused", "failed to create MTP context"),
        ("override-vocab-size-ok", "crashed", "get_sub_batch: failed to add token 496 at index 2 (error -2, n = 4)"),
        (
            "b7551-override-vocab-content",
            "crashed",
            'GGML_ASSERT(n_chars < 0 && "failed to detokenize id_last") failed',
        ),
        (
            "override-vocab-content",
            "speculation-failed",
            "draft model vocab type must match target model to use speculation",
        ),
        ("override-spec-type-without-md", "speculation-failed", "draft-simple requires a draft context"),
    ],
)
def test_what_went_wrong_is_told(name, kind, message):
    assert [event.values["message"] for event in only_run(name)[0].events_of(kind)] == [message]


def test_the_vocabulary_is_named_where_it_does_not_fit():
    assert only_run("override-vocab-content")[0].events_of("vocabulary-mismatch")
    assert only_run("b8672-override-vocab-content")[0].events_of("vocabulary-translated")


def test_settings_that_run_are_told():
    run, _ = only_run("draft-mid-pmin")
    assert run.arguments.value("spec_draft_p_min") == 0.9
    assert only_run("mixed-ngram-draft")[0].arguments.value("spec_ngram_map_k_size_m") == 8


def test_a_build_that_prints_no_number_of_drafts_says_so():
    run, reading = only_run("b7551-draft-near")
    assert str(run.engine_version) == "b7551"
    assert any("prints no number of drafts" in note for note in reading.notes)
    for window in run.windows:  # each pass after the prompt's yields one token of the target and the accepted drafts
        assert window.verify_steps == window.generated_tokens - 1 - window.accepted_tokens


def test_a_known_draft_model_does_not_change_how_short_drafts_are_counted():
    run, _ = only_run("b7551-override-vocab-content")
    for window in run.windows:
        assert window.verify_steps == window.generated_tokens - 1 - window.accepted_tokens


def test_json_lines_tell_the_same_as_plain_ones():
    run, _ = only_run("json-log")
    assert summed(run, "verify_steps") == 336
    assert {window.unit for window in run.windows} == {"slot 0", "slot 1"}
