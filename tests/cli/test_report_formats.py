"""The forms of a report, for checks and for diagnoses."""

from __future__ import annotations

import json
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import jsonschema
import pytest

from analysis import diagnose
from analysis.base import catalogue
from collector.bundle import read_bundle
from dashboard.formats import formats
from tests.cli.rewrite import FORMS, GOLDEN, report

ROOT = Path(__file__).resolve().parents[2]
BUNDLES = [
    "dashboard/samples/kimi-k25-capture-fixed",
    "dashboard/samples/kimi-k25-first-run",
    "tests/cases/tbo-with-mtp",
    "tests/cases/qwen3-moe-slower",
]
MESSAGE = {"type": "object", "required": ["text"], "properties": {"text": {"type": "string", "minLength": 1}}}
LOCATION = {
    "type": "object",
    "required": ["physicalLocation"],
    "properties": {
        "physicalLocation": {
            "type": "object",
            "required": ["artifactLocation"],
            "properties": {
                "artifactLocation": {
                    "type": "object",
                    "required": ["uri"],
                    "properties": {"uri": {"type": "string", "pattern": r"^[\w.~:/?#@!$&'()*+,;=%-]+$"}},
                },
                "region": {
                    "type": "object",
                    "required": ["startLine"],
                    "properties": {"startLine": {"type": "integer", "minimum": 1}, "snippet": MESSAGE},
                },
            },
        }
    },
}
SARIF = {
    "type": "object",
    "required": ["$schema", "version", "runs"],
    "properties": {
        "version": {"const": "2.1.0"},
        "runs": {
            "type": "array",
            "minItems": 1,
            "maxItems": 1,
            "items": {
                "type": "object",
                "required": ["tool", "results", "invocations"],
                "properties": {
                    "columnKind": {"enum": ["utf16CodeUnits", "unicodeCodePoints"]},
                    "tool": {
                        "type": "object",
                        "required": ["driver"],
                        "properties": {
                            "driver": {
                                "type": "object",
                                "required": ["name", "semanticVersion", "rules"],
                                "properties": {
                                    "rules": {
                                        "type": "array",
                                        "uniqueItems": True,
                                        "items": {
                                            "type": "object",
                                            "required": ["id", "shortDescription", "fullDescription", "help"],
                                            "properties": {"shortDescription": MESSAGE, "fullDescription": MESSAGE},
                                        },
                                    }
                                },
                            }
                        },
                    },
                    "invocations": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["executionSuccessful"],
                            "properties": {
                                "executionSuccessful": {"type": "boolean"},
                                "toolExecutionNotifications": {
                                    "type": "array",
                                    "items": {
                                        "type": "object",
                                        "required": ["message", "level"],
                                        "properties": {
                                            "message": MESSAGE,
                                            "level": {"enum": ["none", "note", "warning", "error"]},
                                        },
                                    },
                                },
                            },
                        },
                    },
                    "results": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "required": ["ruleId", "ruleIndex", "level", "message", "locations", "partialFingerprints"],
                            "properties": {
                                "ruleIndex": {"type": "integer", "minimum": 0},
                                "level": {"enum": ["none", "note", "warning", "error"]},
                                "message": MESSAGE,
                                "locations": {"type": "array", "minItems": 1, "items": LOCATION},
                                "relatedLocations": {"type": "array", "items": LOCATION},
                                "partialFingerprints": {"type": "object", "additionalProperties": {"type": "string"}},
                            },
                        },
                    },
                },
            },
        },
    },
}
"""What the SARIF 2.1.0 schema asks of the parts that are used here."""


def test_every_form_is_found_text_first():
    assert list(formats()) == ["text", "html", "json", "junit", "markdown", "sarif"]


@pytest.mark.parametrize("form", FORMS)
def test_the_report_of_a_manifest(form, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert report(form) == (GOLDEN / FORMS[form]).read_text(encoding="utf-8"), "run: python tests/cli/rewrite.py"


@pytest.fixture(params=BUNDLES)
def bundle(request, monkeypatch):
    monkeypatch.chdir(ROOT)
    return request.param


def test_findings_of_a_run_as_sarif(draftscope, bundle):
    ran = draftscope("diagnose", "--format", "sarif", bundle)
    log = json.loads(ran.out)
    jsonschema.validate(log, SARIF)
    findings = diagnose(read_bundle([Path(bundle)])).findings
    (run,) = log["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [result["ruleId"] for result in run["results"]] == [finding.rule for finding in findings]
    for result, finding in zip(run["results"], findings, strict=True):
        assert rules[result["ruleIndex"]]["id"] == finding.rule
        assert result["level"] == {"info": "note", "warning": "warning", "critical": "error"}[finding.severity.word]
        assert result["message"]["text"].startswith(finding.title)
        places = [place["physicalLocation"] for place in (*result["locations"], *result.get("relatedLocations", []))]
        for place, evidence in zip(places, finding.evidence, strict=False):
            assert place.get("region", {}).get("startLine") == evidence.line
    prints = [result["partialFingerprints"]["draftscopeFinding/v1"] for result in run["results"]]
    assert len(set(prints)) == len(prints)


def test_findings_of_a_run_as_junit(draftscope, bundle):
    root = ET.fromstring(draftscope("diagnose", "--format", "junit", bundle).out)
    diagnosis = diagnose(read_bundle([Path(bundle)]))
    cases = root.findall("testsuite/testcase")
    serious = [finding for finding in diagnosis.findings if finding.severity.word != "info"]
    assert root.get("failures") == str(len(serious)) == str(len(root.findall(".//failure")))
    assert root.get("skipped") == str(len(diagnosis.skipped))
    assert root.get("tests") == str(len(cases))
    assert {case.get("name").split()[0] for case in cases} >= {rule.id for rule in catalogue()}
    assert {failure.get("message") for failure in root.iter("failure")} == {finding.title for finding in serious}


def test_a_run_as_markdown(draftscope, bundle):
    text = draftscope("diagnose", "--format", "markdown", bundle).out
    diagnosis = diagnose(read_bundle([Path(bundle)]))
    for finding in diagnosis.findings:
        assert f"### {finding.rule} {finding.severity.word}: " in text
    assert "CANNOT TELL" in text or all(verdict.state != "cannot_tell" for verdict in diagnosis.verdicts.values())
    tables = re.findall(r"(?m)(?:^\|.*\|$\n?)+", text)
    assert tables
    for table in tables:
        assert len({re.sub(r"\\\|", "", line).count("|") for line in table.splitlines()}) == 1


def test_a_run_that_says_nothing_of_drafts_is_not_said_to_have_none(draftscope, tmp_path):
    log = tmp_path / "run.log"
    log.write_text(
        "[2026-01-01 00:00:00 TP0] Prefill batch. #new-seq: 1, #new-token: 28, #cached-token: 0, token usage: 0.00, "
        "#running-req: 0, #queue-req: 0, \n"
    )
    assert "method not known" in draftscope("diagnose", log).out
    assert "unknown draft" in draftscope("diagnose", "--format", "markdown", log).out


def test_what_a_command_may_say_is_no_markup(draftscope):
    command = "sglang serve m --tp-sise '<b>|`x`|</b>' --served-model-name 'a|b_c_'"
    text = draftscope("check", "--engine-version", "0.5.9", "--format", "markdown", "--", command).out
    outside = re.sub(r"(?s)```.*?```|`+[^`\n]*`+", "", text)
    assert "<b>" not in outside.replace("\\<b\\>", "")
    root = ET.fromstring(draftscope("check", "--format", "junit", "--", command + " \x07\x1b").out)
    assert root.tag == "testsuites"


def test_an_absolute_path_and_a_name_with_blanks_are_uris(draftscope, tmp_path):
    odd = tmp_path / "my launch ünit.sh"
    odd.write_text("sglang serve m \\\n  --tp-sise 2\n")
    log = json.loads(draftscope("check", "--engine-version", "0.5.9", "--format", "sarif", "--file", odd).out)
    jsonschema.validate(log, SARIF)
    place = log["runs"][0]["results"][0]["locations"][0]["physicalLocation"]
    assert place["artifactLocation"]["uri"] == odd.as_uri()
    assert place["region"] == {"startLine": 2, "snippet": {"text": "--tp-sise 2"}}
