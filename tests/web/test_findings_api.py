"""Findings of all runs over HTTP, and the exact form of comparisons."""

import jsonschema
import pytest

from analysis.compare import schema


def listed(samples, **asked):
    answer = samples.get("/api/v1/findings", params=asked)
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_findings_are_those_of_the_diagnoses_with_their_evidence(samples):
    found = listed(samples, limit=500)
    assert found["total"] == len(found["findings"])
    by_run = {}
    for finding in found["findings"]:
        by_run.setdefault(finding["run"], []).append(finding)
    assert len(by_run) >= 3
    for run, findings in by_run.items():
        document = samples.get(f"/api/v1/runs/{run}/diagnosis").json()
        parts = {(f["rule"], f["title"]): f for f in document["findings"]}
        present = [f for f in findings if (f["rule"], f["title"]) in parts]
        assert {(f["rule"], f["title"]) for f in present} == set(parts)
        for finding in present:
            same = parts[finding["rule"], finding["title"]]
            assert {key: finding[key] for key in same} == same
    severities = [("info", "warning", "critical").index(f["severity"]) for f in found["findings"]]
    assert severities == sorted(severities, reverse=True)


@pytest.mark.parametrize(
    ("asked", "holds"),
    [
        ({"rule": "flg001"}, lambda f: f["rule"] == "FLG001"),
        ({"rule": "acceptance-below-validation"}, lambda f: f["rule"] == "ACC001"),
        ({"severity": "warning"}, lambda f: f["severity"] in ("warning", "critical")),
        ({"state": "open"}, lambda f: f["state"] == "open" and f["resolved_at"] is None),
        ({"state": "resolved"}, lambda f: f["state"] == "resolved" and f["resolved_at"] is not None),
        ({"model": "kimi"}, lambda f: "kimi" in (f["target"] + f["draft"]).lower()),
        ({"run": "1"}, lambda f: f["run"] == "1"),
    ],
)
def test_findings_are_filtered(samples, asked, holds):
    every = listed(samples, limit=500)["findings"]
    some = listed(samples, limit=500, **asked)
    assert [f["id"] for f in some["findings"]] == [f["id"] for f in every if holds(f)]
    assert some["total"] > 0


def test_findings_come_in_pages_and_with_a_tag(samples):
    every = [f["id"] for f in listed(samples, limit=500)["findings"]]
    assert [f["id"] for f in listed(samples, limit=2, offset=1)["findings"]] == every[1:3]
    assert listed(samples, limit=2, offset=10_000)["findings"] == []
    first = samples.get("/api/v1/findings")
    again = samples.get("/api/v1/findings", headers={"if-none-match": first.headers["etag"]})
    assert again.status_code == 304


@pytest.mark.parametrize(
    ("asked", "status"),
    [
        ({"run": "x"}, 404),
        ({"severity": "grave"}, 422),
        ({"limit": 0}, 422),
        ({"model": "%_"}, 200),
        ({"rule": "none"}, 200),
    ],
)
def test_what_matches_nothing_or_cannot_is_told_apart(samples, asked, status):
    answer = samples.get("/api/v1/findings", params=asked)
    assert answer.status_code == status
    assert answer.json().get("findings", []) == []


def test_openapi_describes_comparisons_in_full(samples):
    runs = [row.id for row in samples.app.state.store.list_runs()][:3]
    comparison = samples.get("/api/v1/compare", params={"run": runs}).json()
    jsonschema.validate(comparison, schema())
    document = samples.get("/openapi.json").json()
    answer = document["paths"]["/api/v1/compare"]["get"]["responses"]["200"]
    described = {**answer["content"]["application/json"]["schema"], "components": document["components"]}
    jsonschema.validate(comparison, described)
    comparison["against"][0]["differences"][0]["word"] = "more"
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(comparison, described)
