"""The registry of drafts on the command line."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[1] / "golden" / "training"
CONFIG = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "num_hidden_layers": 1,
    "draft_vocab_size": 32000,
    "vocab_size": 128256,
}
HELD_OUT = "1110110\n# a remark\n[1, 0, 1, 1, 1, 1]\n" + json.dumps({"accepted": [3, 2, 1, 0, 1, 0]}) + "\n"


@pytest.fixture
def drafts(draftscope, tmp_path, monkeypatch):
    """``draftscope drafts`` over an empty database."""
    (tmp_path / "draftscope.toml").write_text(f'database_url = "sqlite:///{tmp_path / "runs.db"}"\n')
    monkeypatch.chdir(tmp_path)
    return lambda *arguments: draftscope("drafts", *arguments)


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "draft" / "config.json"
    path.parent.mkdir()
    path.write_text(json.dumps(CONFIG))
    return path


def listed(drafts):
    return json.loads(drafts("list", "--format", "json").out)["drafts"]


def test_an_empty_registry_says_what_fills_it(drafts):
    ran = drafts("list")
    assert (ran.code, "draftscope drafts add" in ran.out) == (0, True)
    assert listed(drafts) == []


def test_a_draft_is_added_shown_and_removed(drafts, config):
    figures = ("--validation-accuracy", "0.80,0.75,0.70", "--measure", "conditional", "--dataset", "chats")
    added = drafts("add", "org/draft", "--model", config, *figures, "--temperature", "0.6")
    assert added.code == 0, added.err
    assert "0.800, 0.750, 0.700: given that all earlier drafts are right" in added.out
    assert added.err == ""
    for name in ("org/draft", "DRAFT", "1"):
        shown = drafts("show", name)
        assert shown.code == 0, shown.err
        assert "chats, temperature 0.6" in shown.out
        assert "kind EAGLE-3" in shown.out
    (entry,) = listed(drafts)
    assert json.loads(drafts("show", "1", "--format", "json").out) == entry
    assert entry["config"] == CONFIG
    assert entry["validations"][0]["measure"] == "conditional"
    removed = drafts("remove", "org/draft")
    assert (removed.code, "no longer registered" in removed.out) == (0, True)
    assert drafts("show", "org/draft").code == 2


def test_the_commands_of_the_page_exist(draftscope):
    page = (Path(__file__).parents[2] / "dashboard" / "templates" / "drafts.html").read_text("utf-8")
    commands = re.findall(r"draftscope drafts (\w+)([^<\"]*)", page)
    assert {command for command, _ in commands} == {"add", "replay"}
    for command, options in commands:
        known = draftscope("drafts", command, "--help").out
        for option in set(re.findall(r"--[\w-]+", options)):
            assert option in known
            assert "Settings file" not in known.partition(f"{option} ")[2].partition("--")[0]


@pytest.mark.parametrize("folder", [False, True])
def test_a_model_is_a_config_or_a_folder(drafts, config, folder):
    assert drafts("add", "org/draft", "--model", config.parent if folder else config).code == 0
    assert listed(drafts)[0]["config"] == CONFIG


def test_a_training_log_is_read_as_its_trainer_counts(drafts):
    log = min(path for path in GOLDEN.rglob("*") if path.is_file() and "torchspec" in str(path).lower())
    ran = drafts("add", "org/draft", "--training", log)
    assert ran.code == 0, ran.err
    (entry,) = listed(drafts)
    assert entry["validations"][0]["trainer"]
    assert log.name in entry["validations"][0]["source"]


def test_what_a_figure_counts_is_asked_for(drafts):
    ran = drafts("add", "org/draft", "--validation-accuracy", "0.7")
    assert ran.code == 0
    assert "--measure prefix, conditional or marginal says it" in ran.err
    assert listed(drafts)[0]["validations"][0]["measure"] == "unknown"


def test_a_list_is_imported_as_it_was_printed(drafts, config, tmp_path):
    drafts("add", "org/draft", "--model", config, "--validation-accuracy", "0.8", "--measure", "prefix")
    drafts("add", "org/other", "--validation-accuracy", "0.5", "--measure", "marginal")
    before = listed(drafts)
    file = tmp_path / "drafts.json"
    file.write_text(drafts("list", "--format", "json").out)
    for _ in range(2):
        ran = drafts("import", file)
        assert ran.code == 0, ran.err
    after = listed(drafts)
    assert [entry["name"] for entry in after] == [entry["name"] for entry in before]
    assert [entry["config"] for entry in after] == [entry["config"] for entry in before]
    for old, new in zip(before, after, strict=True):
        assert {json.dumps(item) for item in new["validations"]} == {json.dumps(item) for item in old["validations"]}


def test_a_replay_is_told_and_registered(drafts, tmp_path):
    """What is registered is what was printed."""
    file = tmp_path / "held-out.txt"
    file.write_text(HELD_OUT)
    ran = drafts("replay", file, "--depth", "2", "--add", "org/draft")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("Length ")
    assert "3 texts, 19 tokens" in ran.out
    document = json.loads(drafts("replay", file, "--depth", "2", "--format", "json").out)
    assert [item["depth"] for item in document["depths"]] == [1, 2]
    (entry,) = listed(drafts)
    (validation,) = entry["validations"]
    assert (validation["replayed"], validation["length_depth"]) == (True, 2)
    assert validation["length"] == pytest.approx(document["depths"][-1]["acceptance_length"])
    assert "counted along verify steps" in drafts("show", "1").out


def test_a_deep_replay_is_one_row_more(drafts, tmp_path):
    file = tmp_path / "held-out.txt"
    file.write_text("1" * 400 + "\n")
    document = json.loads(drafts("replay", file, "--depth", "20", "--format", "json").out)
    assert [item["depth"] for item in document["depths"]] == [*range(1, 9), 20]
    assert document["depths"][-1]["acceptance_length"] == 21


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("add", "org/draft"), "nothing is said about the draft"),
        (("add", " ", "--validation-accuracy", "0.5"), "a draft needs a name"),
        (("add", "org/draft", "--validation-accuracy", "1.5"), "1.5"),
        (("add", "org/draft", "--validation-accuracy", "high"), "high"),
        (("add", "org/draft", "--model", "nowhere"), "nowhere"),
        (("add", "org/draft", "--training", "nowhere"), "nowhere"),
        (("add", "org/draft", "--training", "empty.txt"), "empty.txt"),
        (("show", "org/draft"), "no draft is registered as 'org/draft'"),
        (("remove", "1"), "no draft is registered as '1'"),
        (("import", "nowhere"), "nowhere"),
        (("import", "empty.txt"), "empty.txt"),
        (("import", "broken.json"), "broken.json"),
        (("import", "wrong.json"), "wrong.json, draft 2"),
        (("replay", "nowhere"), "nowhere"),
        (("replay", "empty.txt"), "no correctness of tokens"),
        (("replay", "wrong.json"), "wrong.json:1"),
        (("replay", "short.txt", "--depth", "9"), "no text is long enough"),
    ],
)
def test_errors_say_what_to_do(drafts, tmp_path, arguments, said):
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "broken.json").write_text('{"drafts": [')
    (tmp_path / "wrong.json").write_text('[{"name": "a"}, {"name": "b", "validations": [{"accuracy": 7}]}]')
    (tmp_path / "short.txt").write_text("111\n")
    ran = drafts(*arguments)
    assert ran.code == 2
    assert said in ran.err
    assert "Traceback" not in ran.err
    assert listed(drafts) == []


def test_a_refused_import_registers_none(drafts, tmp_path):
    file = tmp_path / "drafts.json"
    file.write_text('[{"name": "a"}, {"name": "b", "validations": [{"accuracy_at": [2]}]}]')
    assert drafts("import", file).code == 2
    assert listed(drafts) == []
