"""The registry of drafts on its page and over HTTP."""

import json

import pytest

from dashboard.api.guard import HEADERS
from dashboard.drafts import drafts_in
from tests.web.pages_read import Page

PARTS = {"what", "why", "where", "try"}
TOKEN = "a-token-of-tests"
DRAFTS = "/api/v1/drafts"
EAGLE3 = {
    "name": "org/model-eagle3",
    "config": {"architectures": ["LlamaForCausalLMEagle3"], "num_hidden_layers": 1, "draft_vocab_size": 32000},
    "validations": [
        {
            "accuracy_at": [0.8, 0.75, 0.7],
            "measure": "conditional",
            "trainer": "SpecForge",
            "dataset": "held-out chats",
            "vocabulary": "left out",
            "source": "training.log:12",
        }
    ],
}
HOSTILE = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'{{7*7}}"


@pytest.fixture
def client(client_of, kimi):
    return client_of(kimi)


def post(client, document, **headers):
    return client.request("POST", DRAFTS, json=document, headers=headers)


def test_an_empty_registry_says_how_to_fill_it(client):
    page = Page(client.get("/drafts").text)
    assert "No draft is registered" in page.said("main")
    for command in ("drafts add", "--measure conditional", "drafts replay"):
        assert command in page.said("main")


def test_every_page_leads_to_the_registry(client):
    for path in ("/", "/rules", "/runs/17"):
        assert "/drafts" in Page(client.get(path).text).values("href"), path
    current = [values for tag, values in Page(client.get("/drafts").text).tags if values.get("aria-current") == "page"]
    assert [values["href"] for values in current] == ["/drafts"]


def test_a_draft_is_added_listed_shown_and_removed(client):
    added = post(client, EAGLE3)
    assert added.status_code == 201
    number = added.json()["id"]
    assert client.get(DRAFTS).json()["drafts"] == [added.json()]
    text = Page(client.get("/drafts").text).said("main")
    assert "org/model-eagle3" in text
    assert "0.800, 0.750, 0.700" in text
    assert "given that all earlier drafts are right" in text
    assert "held-out chats" in text
    assert "training.log:12" in text
    assert "tokens outside the draft's vocabulary left out" in text
    assert client.request("DELETE", f"{DRAFTS}/{number}").json() == {"removed": number}
    assert client.get(DRAFTS).json() == {"drafts": []}


def test_the_page_says_what_figures_promise(client):
    """1 + 0.8 + 0.8 x 0.75 + 0.8 x 0.75 x 0.7 = 2.82 at depth 3."""
    post(client, EAGLE3)
    assert " 2.82 " in Page(client.get("/drafts").text).said("main")


def test_what_a_figure_counts_is_never_guessed(client):
    post(client, {"name": "org/unclear", "validations": [{"accuracy": 0.7}]})
    html = client.get("/drafts").text
    assert "not stated what it counts" in Page(html).said("main")
    assert 'class="unknown"' in html.partition("not stated what it counts")[0].rpartition("<td>")[2]


def test_a_draft_without_figures_says_so(client):
    post(client, {"name": "org/bare"})
    text = Page(client.get("/drafts").text).said("main")
    assert "1 draft, 1 without validation figures" in text
    assert "draftscope drafts add org/bare --training FILE" in text


def test_hostile_names_stay_text(client):
    document = {"name": HOSTILE, "config": {HOSTILE: HOSTILE, "model_type": HOSTILE}}
    figures = {"accuracy": 0.5, "trainer": HOSTILE, "dataset": HOSTILE, "source": HOSTILE, "remarks": [HOSTILE]}
    assert post(client, {**document, "validations": [figures]}).status_code == 201
    response = client.get("/drafts")
    page = Page(response.text)
    assert HOSTILE in page.text
    assert not [tag for tag, values in page.tags if "onerror" in values]
    for name in HEADERS:
        assert name in response.headers


@pytest.mark.parametrize(
    ("document", "status"),
    [
        ({"name": "a", "validations": [{"accuracy": 1.5}]}, 422),
        ({"name": "a", "validations": [{"accuracy_at": [0.5, 1.5]}]}, 400),
        ({"name": "a", "validations": [{"measure": "prefix"}]}, 400),
        ({"name": "a", "validations": [{"accuracy": 0.5, "measure": "guessed"}]}, 422),
        ({"name": "a", "validations": [{"accuracy": 0.5, "length": 1e400}]}, 422),
        ({"name": "a", "validations": [{"accuracy_at": [0.5] * 2000}]}, 422),
        ({"name": "a", "extra": 1}, 422),
        ({"name": ""}, 422),
        ({"name": " "}, 422),
        ({"name": "a" * 2000}, 422),
        ({"name": "a", "config": [1]}, 422),
        ({}, 422),
        ([], 422),
        ("text", 422),
    ],
)
def test_wrong_documents_are_refused_in_our_shape(client, document, status):
    body = json.dumps(document).replace("Infinity", "1e400")
    response = client.request("POST", DRAFTS, content=body, headers={"content-type": "application/json"})
    assert response.status_code == status, response.text
    assert set(response.json()["error"]) == PARTS
    assert client.get(DRAFTS).json() == {"drafts": []}


@pytest.mark.parametrize("number", ["99", "0", "-1", "one", "9" * 30])
def test_removing_what_is_not_there(client, number):
    response = client.request("DELETE", f"{DRAFTS}/{number}")
    assert response.status_code in {404, 422}
    assert set(response.json()["error"]) == PARTS


def test_writing_needs_the_token_and_reading_does_not(client_of, kimi):
    client = client_of(kimi, token=TOKEN)
    assert client.get(DRAFTS).status_code == 200
    assert client.get("/drafts").status_code == 200
    for headers in ({}, {"authorization": "Bearer wrong"}, {"authorization": TOKEN}):
        assert post(client, EAGLE3, **headers).status_code == 401
        assert client.request("DELETE", f"{DRAFTS}/1", headers=headers).status_code == 401
    assert client.get(DRAFTS).json() == {"drafts": []}
    added = post(client, EAGLE3, authorization=f"Bearer {TOKEN}")
    assert added.status_code == 201
    removed = client.request("DELETE", f"{DRAFTS}/{added.json()['id']}", headers={"authorization": f"Bearer {TOKEN}"})
    assert removed.status_code == 200


def test_without_a_token_other_sites_may_not_write(client):
    for headers in ({"origin": "http://evil.test"}, {"sec-fetch-site": "cross-site"}):
        assert post(client, EAGLE3, **headers).status_code == 403
        assert client.request("DELETE", f"{DRAFTS}/1", headers=headers).status_code == 403


def test_what_is_listed_can_be_registered_again(client):
    first = post(client, EAGLE3).json()
    (again,) = drafts_in(client.get(DRAFTS).json(), "file")
    assert again.model_dump() == {key: first[key] for key in again.model_dump()}


def test_openapi_describes_the_form(client):
    document = client.get("/openapi.json").json()
    paths = document["paths"]
    assert {"get", "post"} <= set(paths[DRAFTS])
    assert {"401", "403", "404"} <= set(paths[f"{DRAFTS}/{{draft_id}}"]["delete"]["responses"])
    measures = document["components"]["schemas"]["Measure"]["enum"]
    assert set(measures) == {"prefix", "conditional", "marginal", "unknown"}
