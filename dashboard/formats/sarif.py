"""SARIF 2.1.0: findings at the lines of logs and manifests, for code scanning.

Source: OASIS, Static Analysis Results Interchange Format 2.1.0.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final
from urllib.parse import quote

from dashboard.formats.base import ReportFormat

if TYPE_CHECKING:
    from rich.console import Console

    from analysis.base import Rule
    from analysis.check import Check
    from analysis.diagnosis import Diagnosis
    from collector.domain.evidence import Evidence
    from collector.domain.findings import Finding, RuleCrash, Skipped

_SCHEMA: Final = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS: Final = {"critical": "error", "warning": "warning", "info": "note"}
_FINGERPRINT: Final = "draftscopeFinding/v1"


class SarifFormat(ReportFormat):
    """One run of the tool, with the rules that spoke and a result for each finding."""

    name: ClassVar[str] = "sarif"

    def diagnosis(self, diagnosis: Diagnosis, console: Console) -> str:
        """The findings of a run."""
        del console
        log = _Log()
        log.add(diagnosis.findings, diagnosis.subject.record.source)
        log.note(diagnosis.skipped, diagnosis.crashes)
        verdicts = {question.value: verdict.state.value for question, verdict in diagnosis.verdicts.items()}
        return log.text({"headline": diagnosis.headline, "verdicts": verdicts})

    def check(self, checks: Sequence[Check], console: Console) -> str:
        """The findings of every command; without a place of its own one stands at its command."""
        del console
        log = _Log()
        for check in checks:
            log.add(check.findings, check.launch.source, check.launch.line, check.launch.label)
            log.note(check.skipped, check.crashes)
        return log.text({"headlines": [check.headline for check in checks]})


FORMAT: Final = SarifFormat()


class _Log:
    """A SARIF log while it is put together."""

    def __init__(self) -> None:
        self.results: list[dict[str, Any]] = []
        self.rules: dict[str, int] = {}
        self.notifications: list[dict[str, Any]] = []
        self.failed = False

    def add(self, findings: Iterable[Finding], source: str, line: int | None = None, label: str = "") -> None:
        """Results; ``source`` and ``line`` stand in for evidence where a finding has none."""
        for finding in findings:
            index = self.rules.setdefault(finding.rule, len(self.rules))
            places = [_location(item) for item in finding.evidence] or [_place(source, line, "")]
            self.results.append(
                {
                    "ruleId": finding.rule,
                    "ruleIndex": index,
                    "level": _LEVELS[finding.severity.word],
                    "message": {"text": _message(finding)},
                    "locations": places[:1],
                    **({"relatedLocations": places[1:]} if places[1:] else {}),
                    "partialFingerprints": {_FINGERPRINT: "/".join((*finding.identity, label))},
                    "properties": {
                        "name": finding.name,
                        "severity": finding.severity.word,
                        "confidence": finding.confidence.word,
                        "scope": finding.scope,
                    },
                }
            )

    def note(self, skipped: Iterable[Skipped], crashes: Iterable[RuleCrash]) -> None:
        """What could not be judged, and rules that failed: notifications, so that neither looks like a pass."""
        for item in skipped:
            text = f"{item.rule} {item.name} was not judged: {item.reason}."
            text += f" Provide: {item.provide}" if item.provide else ""
            self.notifications.append({"level": "note", "message": {"text": text}, "descriptor": {"id": item.rule}})
        for crash in crashes:
            self.failed = True
            text = f"{crash.rule} {crash.name} failed: {crash.error}"
            self.notifications.append({"level": "error", "message": {"text": text}, "descriptor": {"id": crash.rule}})

    def text(self, properties: dict[str, Any]) -> str:
        """The whole log as JSON."""
        from importlib.metadata import version

        driver = {
            "name": "draftscope",
            "semanticVersion": version("draftscope"),
            "rules": [_descriptor(rule_id) for rule_id in self.rules],
        }
        run = {
            "tool": {"driver": driver},
            "columnKind": "unicodeCodePoints",
            "invocations": [{"executionSuccessful": not self.failed, "toolExecutionNotifications": self.notifications}],
            "results": self.results,
            "properties": properties,
        }
        log = {"$schema": _SCHEMA, "version": "2.1.0", "runs": [run]}
        return json.dumps(log, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def _message(finding: Finding) -> str:
    return "\n".join([f"{finding.title}. {finding.why}", *(f"Fix: {step}" for step in finding.fix)])


def _location(evidence: Evidence) -> dict[str, Any]:
    return _place(evidence.source, evidence.line, evidence.text)


def _place(source: str, line: int | None, text: str) -> dict[str, Any]:
    """A line of a file; what is no file is named as it is, so that viewers show it."""
    physical: dict[str, Any] = {"artifactLocation": _artifact(source)}
    if line is not None:
        region: dict[str, Any] = {"startLine": line}
        if text:
            region["snippet"] = {"text": text}
        physical["region"] = region
    return {"physicalLocation": physical}


def _artifact(source: str) -> dict[str, Any]:
    """A URI: a path relative to where the tool ran, or that of an absolute path."""
    path = source.replace("\\", "/")
    if "://" in path:
        return {"uri": path}
    if path.startswith("/"):
        return {"uri": "file://" + quote(path)}
    return {"uri": quote(path.removeprefix("./")), "uriBaseId": "%SRCROOT%"}


def _descriptor(rule_id: str) -> dict[str, Any]:
    """A rule as its own page describes it."""
    rule = _rule(rule_id)
    page = {heading: " ".join(text.split()) for heading, text in rule.page().items()}
    return {
        "id": rule.id,
        "name": rule.name,
        "shortDescription": {"text": page["Says"]},
        "fullDescription": {"text": f"{page['Says']} {page['Why it matters']}"},
        "help": {
            "text": f"{page['How to fix']} Example: {page['Example']}",
            "markdown": f"{page['How to fix']}\n\n*Example.* {page['Example']}\n\n*Source.* {page['Source']}",
        },
        "defaultConfiguration": {"level": _LEVELS[rule.severity.word]},
        "properties": {"tags": ["speculative-decoding", rule.question.value]},
    }


def _rule(rule_id: str) -> Rule:
    """A rule of the catalogue; those about flags and drafts are found without loading the others."""
    from analysis.base import catalogue, find_rule
    from analysis.check import FAMILIES

    return next((rule for rule in catalogue(*FAMILIES) if rule.id == rule_id), None) or find_rule(rule_id)
