"""JUnit XML: a test case for each rule, for CI systems that show tests."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from collector.domain.findings import RUN
from dashboard.formats.base import ReportFormat

if TYPE_CHECKING:
    from xml.etree.ElementTree import Element

    from rich.console import Console

    from analysis.base import Rule
    from analysis.check import Check
    from analysis.diagnosis import Diagnosis
    from collector.domain.findings import Finding, RuleCrash, Skipped

# Characters that XML 1.0 cannot hold.
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


class JunitFormat(ReportFormat):
    """A suite for each run or command. Findings of warning and above are failures; what was not judged is skipped."""

    name: ClassVar[str] = "junit"

    def diagnosis(self, diagnosis: Diagnosis, console: Console) -> str:
        """One suite with every rule of the catalogue."""
        from analysis.base import catalogue

        del console
        source = diagnosis.subject.record.source
        return _text([_suite(source, catalogue(), diagnosis.findings, diagnosis.skipped, diagnosis.crashes)])

    def check(self, checks: Sequence[Check], console: Console) -> str:
        """One suite for each command, with the rules that need no log."""
        from analysis.base import catalogue
        from analysis.check import FAMILIES
        from dashboard.report.flags import place_line

        del console
        rules = catalogue(*FAMILIES)
        return _text(
            [_suite(place_line(check), rules, check.findings, check.skipped, check.crashes) for check in checks]
        )


FORMAT: Final = JunitFormat()


def _suite(
    name: str,
    rules: Sequence[Rule],
    findings: Sequence[Finding],
    skipped: Sequence[Skipped],
    crashes: Sequence[RuleCrash],
) -> Element:
    from xml.etree.ElementTree import Element, SubElement

    suite = Element("testsuite", name=_clean(f"draftscope {name}"))

    def case(rule: str, title: str, question: str = "config") -> Element:
        return SubElement(suite, "testcase", classname=f"draftscope.{question}", name=_clean(f"{rule} {title}"))

    spoken = {finding.rule for finding in findings} | {item.rule for item in skipped} | {item.rule for item in crashes}
    questions = {rule.id: rule.question.value for rule in rules}
    for rule in rules:
        if rule.id not in spoken:
            case(rule.id, rule.name, rule.question)
    for finding in findings:
        _say(case(finding.rule, _title(finding), questions[finding.rule]), finding)
    for item in skipped:
        provide = f" Provide: {item.provide}" if item.provide else ""
        left = case(item.rule, item.name, questions.get(item.rule, "config"))
        SubElement(left, "skipped", message=_clean(f"{item.reason}.{provide}"))
    for crash in crashes:
        SubElement(case(crash.rule, crash.name), "error", message=_clean(crash.error))
    suite[:] = sorted(suite, key=lambda element: element.get("name", ""))
    for attribute, kind in (("failures", "failure"), ("errors", "error"), ("skipped", "skipped")):
        suite.set(attribute, str(len(suite.findall(f"testcase/{kind}"))))
    suite.set("tests", str(len(suite.findall("testcase"))))
    return suite


def _title(finding: Finding) -> str:
    parts = [finding.identity[2], "" if finding.scope == RUN else finding.scope]
    about = ", ".join(part for part in parts if part)
    return f"{finding.name} ({about})" if about else finding.name


def _say(case: Element, finding: Finding) -> None:
    """A finding as a failure; a note as output, because nothing is wrong."""
    from xml.etree.ElementTree import SubElement

    from collector.domain.findings import Severity

    lines = [finding.why, *(f"{item.place}: {item.text}" for item in finding.evidence)]
    lines += [f"Fix: {step}" for step in finding.fix]
    if finding.severity >= Severity.WARNING:
        place = SubElement(case, "failure", type=finding.severity.word, message=_clean(finding.title))
    else:
        place = SubElement(case, "system-out")
        lines.insert(0, finding.title)
    place.text = _clean("\n".join(lines))


def _text(suites: Iterable[Element]) -> str:
    from xml.etree.ElementTree import Element, indent, tostring

    root = Element("testsuites", name="draftscope")
    root.extend(suites)
    for attribute in ("tests", "failures", "errors", "skipped"):
        root.set(attribute, str(sum(int(suite.get(attribute, "0")) for suite in root)))
    indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + tostring(root, encoding="unicode") + "\n"


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
