"""``draftscope check`` as people use it."""

from __future__ import annotations

import json

import pytest

CHAIN = (
    "python -m sglang.launch_server --model-path m --speculative-algorithm EAGLE3 --speculative-draft-model-path d "
    "--speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens "
)
MANIFEST = """\
kind: Deployment
metadata: {name: decode}
spec:
  template:
    spec:
      containers:
        - name: server
          image: lmsysorg/sglang:v0.5.9
          command: [python3, -m, sglang.launch_server]
          args:
            - --model-path=m
            - --speculative-algorithm=EAGLE3
            - --speculative-draft-model-path=d
            - --speculative-num-steps=1
            - --speculative-eagle-topk=1
            - --speculative-num-draft-tokens=16
"""


def test_an_override_ends_with_one(draftscope):
    ran = draftscope("check", "--engine-version", "0.5.9", "--", *(CHAIN + "16").split())
    assert ran.code == 1
    assert ran.out.startswith("1 of 6 flags will not run as asked, all announced in the log.\n")
    assert "FLG001" in ran.out
    assert "--speculative-num-draft-tokens 2" in ran.out
    assert ran.err == ""


@pytest.mark.parametrize(
    ("options", "code"),
    [((), 1), (("--fail-on", "critical"), 0), (("--fail-on", "info"), 1)],
)
def test_the_severity_that_fails_can_be_chosen(draftscope, options, code):
    assert draftscope("check", "--engine-version", "0.5.9", *options, "--", *(CHAIN + "16").split()).code == code


def test_what_runs_as_asked_ends_with_zero(draftscope):
    ran = draftscope("check", "--engine-version", "0.5.11", *(CHAIN.replace("steps 1", "steps 3") + "4").split())
    assert (ran.code, ran.out.splitlines()[0]) == (0, "All 6 flags will run as asked.")


@pytest.mark.parametrize(
    "arguments",
    [
        ("--", "env", "A=1", *(CHAIN + "16").split()),
        ("--", "A=1", *(CHAIN + "16").split()),
        ("--", "A=1 " + CHAIN + "16"),
        ("--", "bash", "-c", "A=1 " + CHAIN + "16"),
        ("--engine", "SGLang", "--", *(CHAIN + "16").split()[3:]),
    ],
)
def test_forms_of_a_command(draftscope, arguments):
    written = json.loads(draftscope("check", "--engine-version", "0.5.9", "--format", "json", *arguments).out)
    assert written["arguments"]["speculative_num_draft_tokens"]["effective"] == 2
    assert written["command"]["environment"] == ({} if "--engine" in arguments else {"A": "1"})


@pytest.mark.parametrize("arguments", [("-",), ("--file", "-")])
def test_standard_input(draftscope, arguments):
    ran = draftscope("check", "--format", "json", *arguments, stdin=MANIFEST)
    written = json.loads(ran.out)
    assert (ran.code, written["engine_version"]) == (1, "0.5.9")
    assert written["findings"][0]["evidence"][0] == {
        "source": "standard input",
        "line": 16,
        "text": "- --speculative-num-draft-tokens=16",
    }


def test_several_files_and_several_commands(draftscope, tmp_path):
    first, second = tmp_path / "a.yaml", tmp_path / "b.sh"
    first.write_text(MANIFEST)
    second.write_text("sglang serve m\nsglang serve other\n")
    ran = draftscope("check", "--file", first, second)
    assert ran.code == 1
    said = "".join(ran.out.split())  # a long path is wrapped
    assert f"{first}:9,Deploymentdecode,containerserver" in said
    assert f"{second}:2" in said
    written = json.loads(draftscope("check", "--format", "json", "--file", first, second).out)
    assert [item["command"]["source"] for item in written["checks"]] == [str(first), str(second), str(second)]


def test_a_broken_file_does_not_hide_the_others_and_is_no_pass(draftscope, tmp_path):
    good, bad = tmp_path / "good.sh", tmp_path / "bad.sh"
    good.write_text("sglang serve m\n")
    bad.write_text("sglang serve m --tp\n")
    ran = draftscope("check", "--file", good, bad, tmp_path / "absent.sh")
    assert ran.code == 2
    assert "It will run as asked" in ran.out
    assert "--tp has no value" in ran.err
    assert f"{bad}:1" in ran.err
    assert "absent.sh" in ran.err


def test_hooks_pass_over_files_without_a_launch(draftscope, tmp_path):
    other = tmp_path / "other.yaml"
    other.write_text("kind: Service\n")
    assert draftscope("check", "--file", other).code == 2
    assert draftscope("check", "--allow-none", "--file", other).code == 0
    assert draftscope("check", "--allow-none", "--file", tmp_path / "absent.yaml").code == 2


def test_only_one_engine_of_a_file(draftscope, tmp_path):
    both = tmp_path / "both.sh"
    both.write_text("sglang serve m\nvllm serve m\n")
    refused = draftscope("check", "--engine-version", "0.5.9", "--file", both)
    assert (refused.code, "--engine" in refused.err) == (2, True)
    ran = draftscope("check", "--engine", "sglang", "--engine-version", "0.5.9", "--file", both)
    assert (ran.code, "vllm" in ran.out) == (0, False)


def test_a_settings_file_alone(draftscope, tmp_path):
    settings = tmp_path / "run.yaml"
    settings.write_text("model-path: m\nspeculative-num-steps: 3\n")
    ran = draftscope("check", "--engine", "sglang", "--engine-version", "0.5.9", "--file", settings)
    assert ran.code == 1
    assert f"{settings}:2" in ran.out.replace("\n ", "")


def test_the_settings_file_that_a_command_names(draftscope, tmp_path):
    settings = tmp_path / "run.yaml"
    command = ["sglang", "serve", "m", "--config", settings]
    arguments = ["check", "--engine-version", "0.5.11", "--format", "json", "--", *command]
    missing = json.loads(draftscope(*arguments).out)
    assert missing["skipped"][0]["reason"] == f"the file of options {settings} was not found"
    assert "run.yaml" in "".join(draftscope(*arguments[:3], "--", *command).out.split())
    settings.write_text("speculative-num-steps: 3\nspeculative-algorithm: EAGLE3\n")
    found = json.loads(draftscope(*arguments).out)
    assert found["starts"] is False
    assert found["arguments"]["speculative_num_steps"]["requested"] == 3
    assert "FLG009" in [finding["rule"] for finding in found["findings"]]


def test_the_report_goes_to_a_file(draftscope, tmp_path):
    report = tmp_path / "report.md"
    ran = draftscope("check", "--format", "markdown", "--output", report, "--", "sglang", "serve", "m")
    assert (ran.code, ran.out) == (0, "")
    assert report.read_text().startswith("# It will run as asked.")
    assert draftscope("check", "--output", tmp_path / "no" / "r", "--", "sglang", "serve", "m").code == 2


@pytest.mark.parametrize(
    ("arguments", "what", "hint"),
    [
        ((), "no launch command is given", "--file"),
        (("--", "echo", "hello"), "no launch command of a known engine", "SGLang"),
        (("--device", "h1000", "--", "sglang", "serve", "m"), "no GPU named 'h1000'", "h100"),
        (("--engine", "sgl", "--", "sglang", "serve", "m"), "no engine named 'sgl'", "SGLang"),
        (("--engine-version", "new", "--", "sglang", "serve", "m"), "'new' is not a release", "0.5.10"),
        (("--format", "jason", "--", "sglang", "serve", "m"), "no report has the form 'jason'", "did you mean json?"),
        (("--draft-config", "absent.json", "--", "sglang", "serve", "m"), "absent.json", ""),
        (("--engine", "vllm", "--", "sglang", "serve", "m"), "no command launches vllm", "--engine"),
    ],
)
def test_what_cannot_be_done_is_said(draftscope, arguments, what, hint):
    ran = draftscope("check", *arguments)
    assert ran.code == 2
    assert ran.out == ""
    assert what in ran.err
    assert hint in ran.err


def test_a_command_of_which_nothing_can_be_predicted_ends_with_two(draftscope, monkeypatch):
    monkeypatch.setattr("analysis.resolve.find_engine", lambda _: None)
    ran = draftscope("check", "--format", "json", "--", "sglang", "serve", "m")
    assert ran.code == 2
    assert json.loads(ran.out)["starts"] is None
