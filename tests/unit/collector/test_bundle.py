"""Files and folders become runs in their roles; what cannot be read is said and hides nothing."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from collector.bundle import BundleOptions, read_bundle, read_log
from collector.domain.drafts import Measure
from collector.domain.errors import InputError, MalformedInput, UnreadableInput
from collector.domain.versions import Release

CASES = Path(__file__).parents[2] / "cases"
LOGS = Path(__file__).parents[2] / "golden" / "logs" / "sglang"


def length(run) -> float:
    windows = [window for window in run.windows if window.verify_steps]
    return 1 + sum(window.accepted_tokens for window in windows) / sum(window.verify_steps for window in windows)


def steps(run) -> float:
    return sum(window.verify_steps for window in run.windows)


def test_kimi_first_run():
    bundle = read_bundle([CASES / "kimi-k25-first-run"])
    run = bundle.subject
    assert bundle.problems == []
    assert (bundle.previous, bundle.baseline) == (None, None)
    assert length(run) == pytest.approx(1.48, abs=0.005)
    tokens = run.arguments["speculative_num_draft_tokens"]
    assert (tokens.requested, tokens.effective, tokens.changed) == (16, 2, True)
    assert tokens.effective_evidence.text == "speculative_num_draft_tokens=2"
    assert tokens.requested_evidence.place == "launch.txt:9"
    assert tokens.requested_evidence.text == "--speculative-num-draft-tokens 16"
    assert run.arguments.value("enable_two_batch_overlap") is False
    assert run.launch.environment == {"SGLANG_ENABLE_SPEC_V2": "True"}
    assert [event.evidence.line for event in run.events_of("announcement")] == [1, 2, 3]
    assert str(run.release_range) == "0.5.10"
    assert run.draft_config.raw["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [2, 30, 58]
    assert run.target_config.layers == 61
    assert {window.unit for window in run.windows} == {"TP0"}


def test_kimi_capture_fixed():
    bundle = read_bundle([CASES / "kimi-k25-capture-fixed"])
    subject, previous, baseline = bundle.subject, bundle.previous, bundle.baseline
    assert bundle.problems == []
    assert length(subject) == pytest.approx(1.8, abs=0.01)
    assert steps(subject) == 19 * 40
    assert length(previous) == pytest.approx(1.9, abs=0.01)
    assert [window.printed_length for window in baseline.windows] == [None] * 15
    assert baseline.arguments["speculative_algorithm"].effective is None
    assert previous.draft_config.raw["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [2, 30, 58]
    assert subject.draft_config.raw["eagle_config"]["eagle_aux_hidden_state_layer_ids"] == [-1, 2, 30]
    assert (subject.validation.accuracy, subject.validation.measure) == (0.747, Measure.CONDITIONAL)
    assert subject.validation.measure_stated
    assert previous.launch is None
    assert not previous.arguments.any_requested
    assert {reading.source: reading.role for reading in bundle.readings} == {
        "baseline.log": "baseline",
        "draft_config.json": "subject",
        "input.log": "subject",
        "launch.txt": "subject",
        "previous.log": "previous",
        "previous_draft_config.json": "previous",
        "target_config.json": "subject",
        "training.txt": "subject",
    }


@pytest.mark.parametrize(
    ("case", "windows", "subject", "previous", "units", "releases"),
    [
        ("qwen3-8b-tp2-warmup", 6, 1.89, None, {"TP0"}, "0.5.3.post2 to 0.5.3"),
        ("qwen25vl-aux-states-lost", 15, 1.038, 2.197, {""}, "0.5.4 to 0.5.6"),
        (
            "dp-attention-accept-drop",
            32,
            1.4925,
            2.338,
            {"DP0 TP0", "DP1 TP1", "DP2 TP2", "DP3 TP3"},
            "0.5.7 to 0.5.8",
        ),
        ("pd-mtp-lower-accept", 13, 1.98, 3.19, {"TP0"}, "0.4.9 to 0.5.3.post1"),
    ],
)
def test_other_cases(case, windows, subject, previous, units, releases):
    bundle = read_bundle([CASES / case])
    assert bundle.problems == []
    assert len(bundle.subject.windows) == windows
    assert length(bundle.subject) == pytest.approx(subject, abs=0.002)
    assert {window.unit for window in bundle.subject.windows} == units
    assert str(bundle.subject.release_range) == releases
    assert (length(bundle.previous) if bundle.previous else None) == pytest.approx(previous, abs=0.002)
    for reading in bundle.readings:
        assert (reading.unread, reading.torn_samples) == (0, 0)
        assert reading.understood == reading.lines or "log" not in reading.kind


def test_a_recording_with_restarts_is_subject_and_previous():
    bundle = read_bundle([LOGS / "0.5.11-restarts"])
    assert bundle.problems == []
    assert bundle.subject.arguments.value("speculative_num_draft_tokens") == 5
    assert bundle.previous.arguments.value("speculative_num_draft_tokens") == 2


def test_a_refused_start_is_the_subject():
    bundle = read_bundle([LOGS / "0.5.11-refused-steps-only"])
    assert [event.kind for event in bundle.subject.events] == ["announcement", "announcement", "refused"]


def test_options_name_the_roles(tmp_path):
    case = CASES / "kimi-k25-capture-fixed"
    for name, target in (("input.log", "a.txt"), ("previous.log", "b.txt"), ("baseline.log", "c.txt")):
        shutil.copy(case / name, tmp_path / target)
    options = BundleOptions(
        launch=case / "launch.txt",
        previous=tmp_path / "b.txt",
        baseline=tmp_path / "c.txt",
        draft_config=case / "draft_config.json",
        validation_accuracy=(0.747, 0.7),
        engine_version=Release.parse("0.5.10"),
        temperature=0.6,
    )
    bundle = read_bundle([tmp_path / "a.txt"], options)
    assert length(bundle.subject) == pytest.approx(1.8, abs=0.01)
    assert length(bundle.previous) == pytest.approx(1.9, abs=0.01)
    assert len(bundle.baseline.windows) == 15
    assert bundle.subject.validation.accuracy_at == (0.747, 0.7)
    assert bundle.subject.validation.evidence[0].place == "--validation-accuracy"
    assert bundle.subject.temperature == 0.6
    assert str(bundle.subject.engine_version) == "0.5.10"
    assert bundle.previous.engine_version is None
    assert bundle.subject.source == str(tmp_path / "a.txt")


def test_a_given_previous_wins_over_the_run_before_in_the_log():
    options = BundleOptions(previous=LOGS / "0.5.11-eagle3" / "log.txt")
    bundle = read_bundle([LOGS / "0.5.11-restarts" / "log.txt"], options)
    assert bundle.previous.source.endswith("0.5.11-eagle3/log.txt")


def test_files_without_usual_names_are_told_by_their_content(tmp_path):
    case = CASES / "kimi-k25-capture-fixed"
    names = {
        "input.log": "tuesday.txt",
        "baseline.log": "plain.txt",
        "draft_config.json": "one.json",
        "target_config.json": "two.json",
        "launch.txt": "start.sh",
        "training.txt": "notes.txt",
    }
    for name, other in names.items():
        shutil.copy(case / name, tmp_path / other)
    bundle = read_bundle([tmp_path])
    assert bundle.problems == []
    assert bundle.subject.source == "tuesday.txt"
    assert bundle.baseline.source == "plain.txt"
    assert bundle.subject.draft_config.source == "one.json"
    assert bundle.subject.target_config.source == "two.json"
    assert bundle.subject.launch.source == "start.sh"
    assert bundle.subject.validation.accuracy == 0.747


def test_a_command_alone_is_a_run(tmp_path):
    bundle = read_bundle([CASES / "kimi-k25-first-run" / "launch.txt"])
    assert bundle.subject.engine == "sglang"
    assert bundle.subject.arguments["speculative_num_draft_tokens"].requested == 16
    assert not bundle.subject.arguments.any_effective
    assert bundle.subject.windows == []


def test_a_config_alone_is_a_run():
    bundle = read_bundle([], BundleOptions(draft_config=CASES / "kimi-k25-first-run" / "draft_config.json"))
    assert bundle.subject.draft_config is not None
    assert bundle.subject.engine == ""


def test_one_unreadable_part_hides_nothing(tmp_path):
    for path in (CASES / "kimi-k25-first-run").iterdir():
        shutil.copy(path, tmp_path)
    (tmp_path / "launch.txt").write_text("python -m sglang.launch_server --model 'm")
    (tmp_path / "draft_config.json").write_text("{\n broken")
    (tmp_path / "training.txt").write_text("nothing here")
    (tmp_path / "metrics-1.prom").write_text("# HELP x\n")
    (tmp_path / "holiday.jpg").write_bytes(b"\xff\xd8" + bytes(range(256)) * 8)
    bundle = read_bundle([tmp_path])
    assert length(bundle.subject) == pytest.approx(1.48, abs=0.005)
    assert bundle.subject.target_config is not None
    problems = "\n".join(bundle.problems)
    assert len(bundle.problems) == 4
    assert "metrics-1.prom" in problems
    assert "launch.txt:1" in problems
    assert "draft_config.json:2" in problems
    assert "training.txt" in problems
    kinds = {reading.source: (reading.kind, reading.notes) for reading in bundle.readings}
    assert kinds["metrics-1.prom"] == ("metrics", ("these are not the metrics of an engine that is read",))
    assert kinds["holiday.jpg"] == ("not recognised", ())


def test_a_command_of_another_engine_than_the_log_is_said(tmp_path):
    shutil.copy(CASES / "kimi-k25-first-run" / "input.log", tmp_path)
    (tmp_path / "previous_launch.txt").write_text("python -m sglang.launch_server --model m")
    bundle = read_bundle([tmp_path])
    assert bundle.previous is None
    assert any("previous_launch.txt" in problem for problem in bundle.problems)


BAD = {
    "empty.log": (b"", "the input is empty"),
    "random.bin": (os.urandom(20_000), "binary data"),
    "page.log": (b"<!doctype html>\n<html><body>502</body></html>\n", "an HTML page"),
    "nginx.log": (b'10.0.0.7 - - [29/Nov/2026:18:20:00 +0000] "GET / HTTP/1.1" 200 12 "-" "curl"\n' * 5, "web server"),
    "letter.txt": (b"Dear all,\nthe server is slow.\n", "no line of it has the form"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name, tmp_path):
    data, words = BAD[name]
    path = tmp_path / name
    path.write_bytes(data)
    with pytest.raises(UnreadableInput) as error:
        read_bundle([path])
    assert words in str(error.value)
    assert error.value.where == str(path)
    with pytest.raises(InputError):
        read_bundle([tmp_path])


def test_missing_file_and_empty_folder(tmp_path):
    with pytest.raises(UnreadableInput) as missing:
        read_bundle([tmp_path / "none.log"])
    assert missing.value.what == "there is no such file"
    with pytest.raises(UnreadableInput) as empty:
        read_bundle([tmp_path])
    assert empty.value.where == str(tmp_path)
    with pytest.raises(UnreadableInput):
        read_bundle([], BundleOptions(launch=tmp_path / "none.txt"))


def test_several_bad_inputs_are_all_named(tmp_path):
    with pytest.raises(UnreadableInput) as error:
        read_bundle([tmp_path / "one.log", tmp_path / "two.log"])
    assert "one.log" in error.value.why
    assert "two.log" in error.value.why


def test_a_log_cut_in_its_argument_line(tmp_path):
    text = (CASES / "kimi-k25-first-run" / "input.log").read_text()
    path = tmp_path / "input.log"
    path.write_text(text[: text.index("speculative_num_draft_tokens=2") + 10])
    bundle = read_bundle([path])
    assert bundle.subject.arguments.value("speculative_num_steps") == 1
    assert not bundle.subject.arguments.seen("speculative_num_draft_tokens")
    assert any("cut off" in note for note in bundle.readings[0].notes)


def test_a_forced_engine_on_other_text(tmp_path):
    path = tmp_path / "letter.txt"
    path.write_text("Dear all,\n")
    with pytest.raises(UnreadableInput) as error:
        read_bundle([], BundleOptions(previous=path, engine="sglang"))
    assert "--engine" in error.value.hint


def test_standard_input(tmp_path):
    code = (
        "from pathlib import Path\nfrom collector.bundle import read_bundle\n"
        "run = read_bundle([Path('-')]).subject\nprint(run.source, len(run.windows))"
    )
    with (CASES / "kimi-k25-first-run" / "input.log").open("rb") as stream:
        done = subprocess.run([sys.executable, "-c", code], stdin=stream, capture_output=True, text=True, check=True)
    assert done.stdout == "standard input 15\n"


def test_a_pipe_is_read_once(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    log = CASES / "kimi-k25-first-run" / "input.log"
    with subprocess.Popen([sys.executable, "-c", f"open({str(pipe)!r}, 'wb').write(open({str(log)!r}, 'rb').read())"]):
        bundle = read_bundle([pipe])
    assert len(bundle.subject.windows) == 15


PERMISSIONS = """
import os, sys
from pathlib import Path
from collector.bundle import read_bundle
from collector.domain.errors import UnreadableInput
if os.getuid() == 0:
    os.setuid(65534)
for name in ("folder", "file.log"):
    try:
        read_bundle([Path(sys.argv[1]) / name])
    except UnreadableInput as error:
        print(error.what, "|", error.why, "|", error.hint.split(":")[-1].strip().split()[0])
"""


def test_what_may_not_be_read_is_said(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder").chmod(0o000)
    (tmp_path / "file.log").write_text("x")
    (tmp_path / "file.log").chmod(0o000)
    for folder in (tmp_path, *tmp_path.parents):
        if folder == tmp_path or folder.name.startswith(("pytest-", "popen-")):
            folder.chmod(folder.stat().st_mode | 0o055)
    done = subprocess.run([sys.executable, "-c", PERMISSIONS, tmp_path], capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "the folder may not be listed | permission denied | chmod",
        "the file may not be read | permission denied | chmod",
    ], done.stderr


def test_malformed_parts_that_were_asked_for(tmp_path):
    path = tmp_path / "launch.txt"
    path.write_text("python -m sglang.launch_server --tp")
    with pytest.raises(MalformedInput) as error:
        read_bundle([path])
    assert error.value.where == f"{path}:1"


def test_runs_of_a_log():
    runs, reading = read_log(LOGS / "0.5.11-restarts" / "log.txt", engine_version=Release.parse("0.5.11"), source="log")
    assert [len(run.windows) for run in runs] == [22, 26, 10]
    assert {run.source for run in runs} == {"log"} == {reading.source}
    assert {str(run.engine_version) for run in runs} == {"0.5.11"}


def test_the_settings_file_that_a_command_names(tmp_path):
    (tmp_path / "launch.txt").write_text("sglang serve --config /etc/sglang/run.yaml --tp 4")
    (tmp_path / "run.yaml").write_text(
        "model-path: /models/a\ntp-size: 8\nspeculative-num-steps: 3\ntrust-remote-code: true\n"
        "enable-metrics: false\ncuda-graph-bs: [1, 2]\napi_key: sk-secret\n"
    )
    requested = read_bundle([tmp_path / "launch.txt"]).subject.launch.requested
    assert requested == {
        "model_path": "/models/a",
        "tp_size": 4,
        "speculative_num_steps": 3,
        "trust_remote_code": True,
        "cuda_graph_bs": [1, 2],
        "api_key": "***",
        "config": "/etc/sglang/run.yaml",
    }
    (tmp_path / "run.yaml").write_text("a: [\nb: ]\n: {")
    with pytest.raises(MalformedInput) as error:
        read_bundle([tmp_path / "launch.txt"])
    assert error.value.where.startswith("run.yaml:")
