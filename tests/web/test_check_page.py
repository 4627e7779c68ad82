"""The page and the API that check launch commands: one answer, and nothing of the machine is looked at."""

import re

import jsonschema
import pytest

from analysis.check import Given, check, schema
from analysis.release_matrix import Standing, release_matrix
from collector.domain.versions import Release
from collector.launch import find_launches, render
from tests.web.pages_read import Page

KIMI = (
    "python3 -m sglang.launch_server --model-path /m/kimi --tp 8 --speculative-algorithm EAGLE3 "
    "--speculative-draft-model-path /m/draft --speculative-num-steps 1 --speculative-eagle-topk 1 "
    "--speculative-num-draft-tokens 16"
)
HOSTILE = "</textarea><script>alert(1)</script><img src=x onerror=alert(1)>"


@pytest.fixture
def client(client_of):
    return client_of()


def matrix_of(text, **given):
    return release_matrix(check(find_launches(text)[0], Given(**given), render))


def test_bars_cover_every_release_that_was_read():
    matrix = matrix_of(KIMI)
    widths = {sum(span.columns for span in row.spans) for row in matrix.rows}
    assert widths == {len(matrix.columns)}
    tokens = next(row for row in matrix.rows if row.flag == "speculative_num_draft_tokens")
    assert [(span.text, span.standing) for span in tokens.spans] == [
        ("16", Standing.AS_ASKED),
        ("2", Standing.AGAINST),
    ]
    assert matrix.rows[0] is tokens
    assert "tp_size" in matrix.alike


def test_matrix_marks_the_stated_release_and_says_what_each_says_alone():
    matrix = matrix_of(KIMI, release=Release.parse("0.5.9"))
    assert [column.chosen for column in matrix.columns].count(True) == 1
    for column in matrix.columns:
        alone = check(find_launches(KIMI)[0], Given(release=Release.parse(column.last)), render)
        place = matrix.columns.index(column)
        for row in matrix.rows:
            span = at(row.spans, place)
            if span.standing in (Standing.AS_ASKED, Standing.AGAINST):
                assert span.text == str(alone.flags[row.flag].effective)


def at(spans, place):
    for span in spans:
        if place < span.columns:
            return span
        place -= span.columns
    raise AssertionError(place)


def test_page_shows_what_the_command_line_says(client):
    page = Page(client.request("POST", "/check", data={"command": KIMI}).text)
    checked = check(find_launches(KIMI)[0], Given(), render)
    assert checked.headline in page.text
    assert " ".join(checked.corrected.text.split()) in page.said()
    for finding in checked.findings:
        assert finding.title in page.text


def test_a_release_is_picked_and_kept_in_the_form(client):
    answer = client.request("POST", "/check", data={"command": KIMI, "pick": "0.5.9"})
    assert 'name="engine_version" value="0.5.9"' in answer.text
    assert "SGLang 0.5.9" in Page(answer.text).text
    assert len(re.findall(r'aria-pressed="true"', answer.text)) == 1


def test_configs_that_come_with_the_form_are_used(client):
    files = {"target_config": ("config.json", b'{"architectures": ["DeepseekV3ForCausalLM"], "num_hidden_layers": 61}')}
    without = client.request("POST", "/check", data={"command": KIMI, "engine_version": "0.5.23"})
    given = client.request("POST", "/check", data={"command": KIMI, "engine_version": "0.5.23"}, files=files)
    assert "the target&#39;s config.json (--target-config)" in without.text
    assert "the target&#39;s config.json (--target-config)" not in given.text


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"command": "echo hello"}, "launch"),
        ({"command": KIMI, "engine": "nonsense"}, "no engine named"),
        ({"command": KIMI, "engine_version": "newest"}, "is not a release"),
        ({"command": KIMI, "device": "abacus"}, "no GPU named"),
        ({"command": KIMI + " --port 'open"}, "quote"),
    ],
)
def test_what_is_wrong_stands_where_the_answer_would(client, data, says):
    answer = client.request("POST", "/check", data=data)
    assert answer.status_code == 400
    page = Page(answer.text)
    assert says.lower() in page.text.lower()
    assert data["command"] in page.text


def test_hostile_commands_stay_text(client):
    for command in (HOSTILE, f"{KIMI} --served-model-name '{HOSTILE}'"):
        page = Page(client.request("POST", "/check", data={"command": command}).text)
        assert HOSTILE in page.text
        assert not [attributes for tag, attributes in page.tags if tag == "img"]


def test_files_that_a_command_names_are_not_opened(client, tmp_path):
    named = tmp_path / "options.yaml"
    named.write_text("speculative-num-steps: 7\n")
    command = f"python3 -m sglang.launch_server --config {named} --model-path m --speculative-algorithm EAGLE3"
    answer = client.request("POST", "/api/v1/check", json={"command": command})
    assert "speculative_num_steps" not in {name for name, flag in answer.json()["arguments"].items() if flag["asked"]}


def test_api_answers_with_the_document(client):
    answer = client.request("POST", "/api/v1/check", json={"command": KIMI, "engine_version": "0.5.10"})
    jsonschema.validate(answer.json(), schema())
    assert answer.json()["arguments"]["speculative_num_draft_tokens"]["effective"] == 2


def test_too_much_is_refused(client):
    answer = client.request("POST", "/api/v1/check", content=b"x" * (5 << 20))
    assert (answer.status_code, set(answer.json()["error"])) == (413, {"what", "why", "where", "try"})
    many = "\n".join(KIMI.replace("16", str(number)) for number in range(20, 40))
    answer = client.request("POST", "/api/v1/check", json={"command": many})
    assert (answer.status_code, "20 launch commands" in answer.json()["error"]["what"]) == (400, True)
