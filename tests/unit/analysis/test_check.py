"""What a check says about a launch command."""

from __future__ import annotations

import gzip
import json
import os
from pathlib import Path

import jsonschema
import pytest

from analysis.check import Given, check, document, schema
from analysis.flag_releases import releases_in_words, releases_with
from collector.domain.drafts import ModelConfig
from collector.domain.findings import Severity
from collector.domain.versions import Release
from collector.launch import parse_launch, render

DATA = Path(__file__).resolve().parents[2] / "data" / "oracle"
EAGLE3 = (
    "python -m sglang.launch_server --model-path m --speculative-algorithm EAGLE3 --speculative-draft-model-path d "
)
CHAIN_OF_ONE = EAGLE3 + "--speculative-num-steps 1 --speculative-eagle-topk 1 --speculative-num-draft-tokens 16"
SOAK = os.environ.get("DRAFTSCOPE_SOAK") == "1"


def checked(command, release=None, **given):
    return check(parse_launch(command), Given(Release.parse(release) if release else None, **given), render)


def test_an_override_is_shown_with_its_step_line_and_correction():
    found = checked(CHAIN_OF_ONE, "0.5.9")
    written = document([found])
    tokens = written["arguments"]["speculative_num_draft_tokens"]
    assert (tokens["requested"], tokens["effective"], tokens["confidence"]) == (16, 2, "high")
    assert tokens["step"] == "sglang-18"
    assert tokens["announced"].startswith("speculative_num_draft_tokens is adjusted")
    assert tokens["announced"] in written["announced"]
    assert written["arguments"]["speculative_num_steps"]["step"] is None
    assert written["headline"] == "1 of 6 flags will not run as asked, all announced in the log."
    assert [item["rule"] for item in written["findings"]] == ["FLG001", "FLG002", "FLG007"]
    assert "easily missed" in written["findings"][0]["why"]
    assert written["corrected"] == CHAIN_OF_ONE.replace("16", "2").replace(" --", " \\\n  --")
    assert checked(written["corrected"], "0.5.9").headline == "All 6 flags will run as asked."
    jsonschema.validate(written, schema())


def test_what_hangs_on_the_unknown_is_no_guess():
    known = checked(CHAIN_OF_ONE, "0.5.9", device="h100").document()["arguments"]
    unknown = checked(CHAIN_OF_ONE, "0.5.9").document()["arguments"]
    assert known["cuda_graph_max_bs"]["effective"] == 256
    assert unknown["cuda_graph_max_bs"]["effective"] is None
    assert unknown["cuda_graph_max_bs"]["confidence"] is None
    assert "--device" in unknown["cuda_graph_max_bs"]["depends"]


def test_a_variable_of_the_shell_is_not_taken_for_a_value():
    found = checked("sglang serve m --tp $TP", "0.5.9")
    assert found.headline == "Nothing is known to be changed; what becomes of --tp-size cannot be told yet."
    assert found.worst is None
    assert next((item.rule, item.name) for item in found.skipped) == ("resolve", "what-becomes-of---tp-size")


def test_without_a_release_what_the_newest_agree_on_and_where_older_ones_differ():
    found = checked(CHAIN_OF_ONE)
    written = found.document()
    jsonschema.validate(written, schema())
    assert written["engine_version"] is None
    assert (written["releases"][0], written["releases"][-1]) == ("0.4.5.post3", "0.5.23")
    assert written["arguments"]["max_running_requests"]["effective"] == 48
    assert written["arguments"]["max_running_requests"]["confidence"] == "medium"
    assert written["arguments"]["speculative_num_draft_tokens"]["effective"] == 2
    assert written["differences"]["speculative_num_draft_tokens"] == {"0.4.4.post4": "16", "0.4.5.post3 to 0.5.23": "2"}
    assert found.headline == "1 of 6 flags will not run as asked, all announced in the log."
    assert "FLG001" in {finding.rule for finding in found.findings}


@pytest.mark.parametrize(
    ("command", "release", "says", "corrected"),
    [
        (
            EAGLE3 + "--speculative-num-steps 3",
            "0.5.11",
            "'>' not supported between instances",
            EAGLE3 + "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4",
        ),
        ("sglang serve m --tp-sise 2", "0.5.11", "unrecognized arguments: --tp-sise", "sglang serve m --tp-size 2"),
        ("sglang serve m --speculative-adaptive", "0.5.9", "unrecognized arguments", "sglang serve m"),
        ("sglang serve m --attention-backend fa9", "0.5.9", "invalid choice: 'fa9'", "sglang serve m"),
    ],
)
def test_a_refusal_with_the_nearest_command_that_starts(command, release, says, corrected):
    found = checked(command, release)
    written = found.document()
    jsonschema.validate(written, schema())
    assert written["starts"] is False
    assert says in found.headline
    assert written["findings"][0]["rule"] == "FLG009"
    assert found.worst is Severity.CRITICAL
    assert written["corrected"].replace(" \\\n  ", " ") == corrected
    assert not checked(corrected, release).refused


def test_a_misspelt_option_names_the_one_that_was_meant_and_its_releases():
    written = checked("sglang serve m --speculative-num-stepz 2", "0.5.9").document()
    assert written["unknown"] == {"--speculative-num-stepz": "--speculative-num-steps"}
    assert written["findings"][0]["fix"] == ["Was --speculative-num-steps meant? It is in every release read."]


def test_an_option_of_other_releases_names_them():
    written = checked("sglang serve m --speculative-adaptive", "0.5.9").document()
    assert "0.5.11 and later" in written["findings"][0]["fix"][0]
    assert releases_in_words("sglang", "speculative_adaptive") == "0.5.11 and later"
    assert releases_in_words("sglang", "collect_tokens_histogram") == "0.4.6.post5 to 0.5.10.post1"
    assert releases_with("sglang", "no_such_flag") == releases_with("no-such-engine", "tp_size") == ()
    assert releases_in_words("no-such-engine", "tp_size") == ""


def test_what_has_no_effect_is_left_out_of_the_corrected_command():
    found = checked(CHAIN_OF_ONE.replace("16", "2") + " --speculative-token-map x.pt", "0.5.9")
    assert found.flags["speculative_token_map"].ignored
    assert found.headline == "1 of 7 flags will not run as asked, 1 of them without a word."
    assert "token-map" not in found.corrected.text


def test_a_share_of_what_was_asked_is_not_asked_for_again():
    command = "sglang serve m --tp 8 --dp-size 8 --enable-dp-attention --chunked-prefill-size 512"
    found = checked(command, "0.4.8.post1", device="h100")
    assert found.flags["chunked_prefill_size"].effective == 64
    assert "chunked_prefill_size" not in {item.flag for item in found.corrections}


def test_the_releases_that_take_a_command():
    found = checked(EAGLE3 + "--enable-deepep-moe --enable-two-batch-overlap")
    written = found.document()
    jsonschema.validate(written, schema())
    assert list(written["starts_by_release"].items())[1] == ("0.4.7.post1 to 0.5.2", "starts")
    assert found.headline == "It starts only in some releases: 0.4.7.post1 to 0.5.2."
    assert written["starts"] is True
    assert written["releases"] == ["0.4.7.post1", "0.4.8.post1", "0.4.9.post6", "0.4.10.post2", "0.5.1.post3", "0.5.2"]


def test_a_command_that_no_release_takes_is_refused_for_the_newest_reason():
    found = checked("llama-server -m /m.gguf --spec-type mtp")
    assert found.headline.startswith("The engine will refuse to start: error while handling argument")
    assert found.document()["starts"] is False
    assert [span for span, said in found.starts if said.endswith("unknown speculative type: mtp")] == [
        "b9246 to b11549"
    ]
    assert len(found.starts) == 3
    assert {finding.rule for finding in found.findings} >= {"FLG009"}


@pytest.mark.parametrize(
    ("command", "release", "corrected"),
    [
        (
            "vllm serve /m --speculative-model /d --num-speculative-tokens 4 --speculative-draft-tensor-parallel-size 1",
            "0.24.0",
            """--speculative-config '{"model": "/d", "num_speculative_tokens": 4, "draft_tensor_parallel_size": 1}'""",
        ),
        (
            "vllm serve /m --speculative_model [ngram] --num_speculative_tokens 5 --ngram-prompt-lookup-max 4",
            "0.24.0",
            """--speculative-config '{"method": "ngram", "num_speculative_tokens": 5, "prompt_lookup_max": 4}'""",
        ),
        (
            "llama-server -m /m.gguf -md /d.gguf --spec-type draft-simple --draft-max 8 --draft-min 1",
            "b11434",
            "--spec-draft-n-max 8",
        ),
    ],
)
def test_settings_under_their_earlier_names_are_kept_under_those_of_today(command, release, corrected):
    found = checked(command, release)
    assert found.refused
    assert corrected in found.corrected.text.replace(" \\\n ", "")


def test_a_draft_that_is_loaded_and_off():
    command = "llama-server -m /m.gguf -md /d.gguf --spec-draft-n-max 16 --spec-draft-n-min 4"
    found = checked(command, "b11434")
    assert found.headline == "Speculation is configured, and nothing is drafted."
    assert found.worst is Severity.CRITICAL
    without_release = checked(command)
    assert without_release.headline == found.headline
    assert without_release.document()["differences"]["spec_type"] == {
        "b7551 to b9093": "draft-simple",
        "b9246 to b11549": "none",
    }


def test_speculation_that_is_wanted_and_off_has_no_correction_that_drops_it():
    found = checked("sglang serve m --speculative-num-steps 3", "0.5.9")
    assert found.headline == "Speculation is configured, and nothing is drafted."
    assert found.corrected is None


def test_an_engine_of_which_nothing_is_known_is_not_fine():
    launch = parse_launch(CHAIN_OF_ONE)
    from dataclasses import replace

    found = check(replace(launch, engine="some-engine"), Given(), render)
    written = found.document()
    jsonschema.validate(written, schema())
    assert not found.predicted
    assert written["starts"] is None
    assert found.headline.startswith("Nothing can be predicted")
    assert {item["effective"] for item in written["arguments"].values()} == {None}


def test_a_release_newer_than_all_is_predicted_with_caution():
    written = checked(CHAIN_OF_ONE, "0.9.0").document()
    assert "newer than the newest release read" in written["caution"]
    assert written["arguments"]["speculative_num_draft_tokens"]["confidence"] == "medium"


def test_findings_of_drafts_join_in_when_the_configs_are_given():
    draft = ModelConfig("draft.json", {"architectures": ["LlamaForCausalLMEagle3"], "max_position_embeddings": 2048})
    target = ModelConfig("target.json", {"architectures": ["LlamaForCausalLM"], "max_position_embeddings": 8192})
    rules = [finding.rule for finding in checked(CHAIN_OF_ONE, "0.5.9", draft=draft, target=target).findings]
    assert "DRF005" in rules


def test_several_commands_in_one_document():
    checks = [checked(CHAIN_OF_ONE, "0.5.9"), checked("sglang serve m --tp-sise 2", "0.5.9")]
    written = document(checks)
    jsonschema.validate(written, schema())
    assert [item["rule"] for item in written["findings"]] == ["FLG001", "FLG002", "FLG007", "FLG009"]
    assert [item["starts"] for item in written["checks"]] == [True, False]
    assert written["arguments"] == written["checks"][0]["arguments"]


def test_what_the_engines_did_is_what_a_check_of_the_command_says():
    """From the text of the command to the document, against what each release's own code made of it."""
    models = {
        name: ModelConfig(name, raw)
        for name, raw in json.loads((DATA / "models.json").read_text(encoding="utf-8")).items()
    }
    entries = json.loads(gzip.decompress((DATA / "sglang.json.gz").read_bytes()))
    compared = agreed = 0
    for entry in entries if SOAK else entries[::10]:
        path = entry["requested"].get("speculative_draft_model_path")
        given = Given(
            Release.parse(entry["release"]),
            "",
            entry["device"],
            models[Path(path).name] if path else None,
            models[entry["model"]],
        )
        words = [
            f"--{name.replace('_', '-')}" if value is True else f"--{name.replace('_', '-')}='{value}'"
            for name, value in entry["requested"].items()
            if value not in (None, False)
        ]
        variables = [f"{name}={value}" for name, value in entry["environment"].items()]
        command = " ".join([*variables, "python -m sglang.launch_server", *words])
        written = check(parse_launch(command), given, render).document()
        assert written["crashed"] == []
        if "effective" not in entry:
            compared += 1
            agreed += written["starts"] is False
            continue
        for name, effective in entry["effective"].items():
            predicted = written["arguments"].get(name)
            if predicted is None or predicted["confidence"] is None or name == "random_seed":
                continue
            compared += 1
            agreed += predicted["effective"] == effective
    assert compared > 1000
    assert agreed / compared >= 0.99
