"""POST /api/v1/requests: responses are put to the run they are of, and stored once."""

import gzip
import json
from pathlib import Path

import pytest

from collector.bundle import BundleOptions
from collector.ingest import ingest
from collector.storage.requests import count_requests
from dashboard.api.bodies import LARGEST_BODY
from dashboard.diagnoses import Diagnoses
from dashboard.masked import Secret
from dashboard.service import build_app
from dashboard.settings import Service, Settings
from tests.web.conftest import Client

GOLDEN = Path(__file__).parents[1] / "golden"
LOG = GOLDEN / "logs" / "vllm" / "eagle3" / "log.txt"
LINES = (GOLDEN / "responses" / "vllm" / "eagle3-mixed-temperature.jsonl").read_bytes()
REQUESTS = "/api/v1/requests"
PARTS = {"what", "why", "where", "try"}


@pytest.fixture
def run_id(database):
    (found,) = ingest(database, [LOG], BundleOptions(), deployment="chat", labels={"cluster": "a"}).subjects
    return found


@pytest.fixture
def service(database, run_id):
    return Client(build_app(Diagnoses(database), Settings()))


def post(service, content=LINES, query="", **headers):
    return service.request("POST", f"{REQUESTS}{query}", content=content, headers=headers)


def test_responses_are_stored_once_and_judge_the_run(service, database, run_id):
    first = post(service, query=f"?run={run_id}")
    assert first.status_code == 200, first.text
    assert first.json() == {"run": str(run_id), "responses": 20, "stored": 20, "problems": []}
    listed = json.dumps([json.loads(line) for line in LINES.splitlines()]).encode()
    assert post(service, listed, f"?run={run_id}").json()["stored"] == 0
    with database.reading() as connection:
        assert count_requests(connection, run_id) == 20
    run = service.get(f"/api/v1/runs/{run_id}/diagnosis").json()["runs"][0]
    assert run["requests"]["count"] == 20
    assert run["quantities"]["verify_steps"]["value"] == 1217
    assert run["quantities"]["acceptance_length"]["method"] == "jackknife"
    page = service.get(f"/runs/{run_id}").text
    assert "By request" in page
    assert "Temperature 0.7" in page


@pytest.mark.parametrize("query", ["?deployment=chat", "?cluster=a", "?deployment=chat&cluster=a"])
def test_a_run_is_named_by_its_deployment_and_labels(service, run_id, query):
    assert post(service, query=query).json()["run"] == str(run_id)


def test_a_packed_body_is_read(service, run_id):
    answer = post(service, gzip.compress(LINES), f"?run={run_id}", **{"content-encoding": "gzip"})
    assert answer.json()["stored"] == 20


def test_what_cannot_be_used_is_told_beside_what_is_stored(service, run_id):
    broken = b'{"id": "x", "metrics": {"speculative_decoding": {"num_spec_steps": -1}}}\nno JSON\n'
    answer = post(service, LINES + broken, f"?run={run_id}").json()
    assert answer["stored"] == 20
    told = " ".join(answer["problems"])
    assert "num_spec_steps is -1" in told
    assert f"POST {REQUESTS}, line 21" in told


@pytest.mark.parametrize(
    ("content", "query", "status", "what"),
    [
        (LINES, "", 400, "nothing says of which run"),
        (LINES, "?run=999", 404, "no run has the id"),
        (LINES, "?run=x", 404, "no run has the id"),
        (LINES, "?deployment=other", 404, "no run of vllm is known with deployment other"),
        (LINES, "?cluster=b", 404, "no run of vllm is known with cluster=b"),
        (b"", "?cluster=a", 400, "no response with figures"),
        (b'{"choices": []}', "?cluster=a", 400, "no response with figures"),
        (b'{"timings": {"predicted_n": 3, "draft_n": 1}}', "?run={run}", 400, "these are responses of llamacpp"),
        (b'{"timings": {"predicted_n": -3}}', "?run={run}", 400, "no response has figures that are possible"),
        (b" " * (LARGEST_BODY + 1), "?cluster=a", 413, "too large"),
    ],
)
def test_errors_have_one_shape(service, run_id, content, query, status, what):
    answer = post(service, content, query.replace("{run}", str(run_id)))
    assert answer.status_code == status
    error = answer.json()["error"]
    assert set(error) == PARTS
    assert what in error["what"]


def test_writing_needs_the_token(sqlite_database):
    settings = Settings(service=Service(token=Secret("a-token-of-tests")))
    service = Client(build_app(Diagnoses(sqlite_database), settings))
    assert post(service, query="?run=1").status_code == 401
    assert post(service, query="?run=1", authorization="Bearer a-token-of-tests").status_code == 404


def test_the_api_description_shows_an_example_that_is_taken(service, run_id):
    described = service.get("/openapi.json").json()["paths"][REQUESTS]["post"]
    bodies = described["requestBody"]["content"]
    line = bodies["application/x-ndjson"]["example"].encode()
    assert post(service, line, f"?run={run_id}").json()["stored"] == 1
    wrong = post(service, json.dumps(bodies["application/json"]["example"]).encode(), f"?run={run_id}")
    assert "responses of sglang" in wrong.json()["error"]["what"]
    assert {"401", "403", "404", "413"} <= set(described["responses"])
