"""The JSON API: the document as it is, one shape of errors, who may write."""

from typing import Annotated

import jsonschema
import pytest
from fastapi import Depends

from analysis.diagnosis import schema
from collector.domain.errors import InputError, RefusedError, SourceError, StorageError
from dashboard.api.security import is_loopback, refuse_open_bind, require_token
from tests.web.pages_read import Page

PARTS = {"what", "why", "where", "try"}


@pytest.fixture
def client(client_of, kimi, first_run):
    return client_of(kimi, first_run)


def test_diagnosis_is_the_document(client, kimi):
    assert client.get("/api/v1/runs/17/diagnosis").json() == kimi.document


def test_list_has_verdicts_figures_and_findings(client, kimi):
    answer = client.get("/api/v1/runs").json()
    assert (answer["total"], len(answer["runs"])) == (2, 2)
    row = answer["runs"][0]
    assert row["id"] == "17"
    assert row["verdicts"]["payoff"]["state"] == "problem"
    assert row["quantities"]["acceptance_length"] == kimi.quantity("acceptance_length")
    assert row["baseline_throughput"] == pytest.approx(89.95, abs=0.01)
    assert (row["target"], row["draft"]) == ("Kimi-K2.5", "kimi-k25-eagle3")
    assert {finding["rule"] for finding in row["findings"]} >= {"PAY001", "ACC001"}


def test_list_is_cut_into_pages(client):
    second = client.get("/api/v1/runs", params={"limit": 1, "offset": 1}).json()
    assert [row["id"] for row in second["runs"]] == ["16"]
    assert second["total"] == 2


def test_list_is_filtered_by_state(client):
    answer = client.get("/api/v1/runs", params={"state": "cannot_tell"}).json()
    assert [row["id"] for row in answer["runs"]] == ["16"]


def test_health(client):
    assert client.get("/healthz").json()["status"] == "ok"


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/api/v1/runs/none/diagnosis", 404),
        ("/api/v1/nothing", 404),
        ("/api/v1/runs?limit=0", 422),
        ("/api/v1/runs?limit=many", 422),
        ("/api/v1/runs?state=fine", 422),
        ("/api/v1/runs?order=random", 422),
    ],
)
def test_errors_of_the_api_have_one_shape(client, path, status):
    response = client.get(path)
    assert response.status_code == status
    error = response.json()["error"]
    assert set(error) == PARTS
    assert error["what"]
    assert path.partition("?")[0] in error["where"]


@pytest.mark.parametrize(("path", "status"), [("/runs/none", 404), ("/rules/XYZ999", 404), ("/nowhere", 404)])
def test_errors_of_pages_say_the_same_parts_and_a_way_on(client, path, status):
    response = client.get(path)
    assert response.status_code == status
    page = Page(response.text)
    assert "Where" in page.said("main")
    assert "Try" in page.said("main")
    assert "/" in page.values("href")


def test_wrong_method_is_405_in_our_shape(client):
    response = client.request("POST", "/api/v1/runs")
    assert response.status_code == 405
    assert set(response.json()["error"]) == PARTS
    assert response.headers["allow"] == "GET"


def test_recorded_documents_are_of_the_published_form(kimi, first_run):
    for report in (kimi, first_run):
        jsonschema.validate(report.document, schema())


def test_openapi_describes_the_diagnosis_in_full(client, kimi):
    document = client.get("/openapi.json").json()
    answer = document["paths"]["/api/v1/runs/{run_id}/diagnosis"]["get"]["responses"]["200"]
    described = {**answer["content"]["application/json"]["schema"], "components": document["components"]}
    jsonschema.validate(kimi.document, described)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**kimi.document, "verdicts": {}}, described)


def test_openapi_documents_the_error_shape(client):
    document = client.get("/openapi.json").json()
    parts = document["components"]["schemas"]["ErrorParts"]
    assert set(parts["properties"]) == PARTS
    diagnosis = document["paths"]["/api/v1/runs/{run_id}/diagnosis"]["get"]["responses"]
    assert {"200", "404", "422", "500"} <= set(diagnosis)
    assert "HTTPValidationError" not in document["components"]["schemas"]


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (InputError("bad"), 400),
        (RefusedError("no"), 403),
        (SourceError("gone"), 502),
        (StorageError("locked", why="another process writes", hint="try again"), 503),
    ],
)
def test_our_errors_get_an_honest_status(client_of, kimi, error, status):
    client = client_of(kimi)
    client.app.state.store = Failing(error)
    for path in ("/api/v1/runs", "/"):
        response = client.get(path)
        assert response.status_code == status
        assert error.why in response.text


class Failing:
    """A store that fails."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def list_runs(self):
        raise self.error


def test_an_unexpected_fault_leaks_nothing_and_gets_a_number(client_of, kimi, caplog):
    client = client_of(kimi)
    client.app.state.store = Failing(ValueError("the secret path /home/somebody"))
    response = client.get("/api/v1/runs")
    assert response.status_code == 500
    error = response.json()["error"]
    number = error["where"].rpartition(" ")[2]
    assert number in caplog.text
    assert "the secret path" in caplog.text
    page = client.get("/")
    assert page.status_code == 500
    for text in (response.text, page.text):
        assert "secret" not in text
        assert "Traceback" not in text


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "::1", "[::1]", "127.3.2.1"])
def test_loopback_needs_no_token(host):
    assert is_loopback(host)
    refuse_open_bind(host, None)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.4", "draftscope.example", "", "127.0.0.1.example"])
def test_open_bind_without_token_is_refused(host):
    with pytest.raises(RefusedError) as refused:
        refuse_open_bind(host, None)
    assert "DRAFTSCOPE_TOKEN" in refused.value.hint
    refuse_open_bind(host, "a-token")


@pytest.fixture
def writing(client_of, kimi):
    """A client of an app with one writing endpoint."""

    def make(token):
        client = client_of(kimi, token=token)

        @client.app.post("/api/v1/write")
        def write(_: Annotated[None, Depends(require_token)]) -> dict[str, str]:
            return {"written": "yes"}

        return client

    return make


@pytest.mark.parametrize(
    "given", ["", "Bearer", "Bearer wrong", "Basic right", "right", "Bearer rightx", "Bearer ünïcode"]
)
def test_writing_without_the_token_is_refused(writing, given):
    headers = {"authorization": given.encode()} if given else {}
    response = writing("right").request("POST", "/api/v1/write", headers=headers)
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert set(response.json()["error"]) == PARTS


def test_writing_with_the_token_works_and_reading_needs_none(writing):
    client = writing("right")
    assert client.request("POST", "/api/v1/write", headers={"authorization": "Bearer right"}).status_code == 200
    assert client.get("/api/v1/runs").status_code == 200


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"origin": "http://draftscope.test"}, 200),
        ({"origin": "http://elsewhere.test"}, 403),
        ({"origin": "null"}, 403),
        ({"sec-fetch-site": "same-origin"}, 200),
        ({"sec-fetch-site": "cross-site"}, 403),
    ],
)
def test_without_a_token_other_sites_may_not_write(writing, headers, status):
    assert writing(None).request("POST", "/api/v1/write", headers=headers).status_code == status
