"""Pages of the rule catalogue; every word comes from the rules' own classes."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from analysis.base import Rule
from collector.domain.findings import Question
from dashboard.pages.verdicts import QUESTIONS
from dashboard.store import RunRow

Paragraphs = list[list[tuple[str, bool]]]

FAMILIES: Final[Mapping[str, str]] = {
    "FLG": "Flags",
    "DRF": "Drafts",
    "ACC": "Acceptance",
    "PAY": "Pay-off",
    "MEA": "Measurement",
}
INPUTS: Final[Mapping[str, str]] = {
    "acceptance": "pooled acceptance",
    "args": "arguments",
    "baseline": "a run without speculation",
    "case": "whatever else is known",
    "compared_args": "arguments asked and running",
    "depth": "draft depth",
    "draft": "the draft's config.json",
    "events": "lines about the run",
    "findings": "other findings",
    "payoff": "a comparable run without speculation",
    "previous": "an earlier run",
    "printed": "the printed rate",
    "promise": "validation figures",
    "readings": "what was made of each source",
    "resolution": "what the engine is predicted to do",
    "run": "the run",
    "speculating": "a run that speculates",
    "target": "the target's config.json",
    "windows": "decode windows",
}
"""What a rule reads, in words; a name without an entry is shown as it is."""
_CODE: Final = re.compile(r"`([^`]+)`")


@dataclass(frozen=True, slots=True)
class RuleRow:
    """One rule in the catalogue; ``found`` counts runs it spoke about."""

    id: str
    name: str
    says: str
    severity: str
    found: int


@dataclass(frozen=True, slots=True)
class RuleFamily:
    """Rules of one family and the question they answer."""

    title: str
    question: str
    rules: tuple[RuleRow, ...]


@dataclass(frozen=True, slots=True)
class RulePage:
    """One rule: its sections as paragraphs of text and code."""

    id: str
    name: str
    question: str
    severity: str
    confidence: str
    since: str
    reads: tuple[str, ...]
    needs: tuple[str, ...]
    says: Paragraphs
    sections: tuple[tuple[str, Paragraphs], ...]
    runs: tuple[RunRow, ...]


def rules_page(rules: Iterable[Rule], rows: Sequence[RunRow]) -> tuple[RuleFamily, ...]:
    """The catalogue by family."""
    found = Counter(code for row in rows for code in {finding.rule for finding in row.findings})
    families: dict[str, list[Rule]] = {code: [] for code in FAMILIES}
    for rule in rules:
        families.setdefault(rule.id[:3], []).append(rule)
    return tuple(
        RuleFamily(
            FAMILIES.get(code, code),
            QUESTIONS[Question(members[0].question)],
            tuple(
                RuleRow(rule.id, rule.name, rule.page()["Says"].replace("`", ""), rule.severity.word, found[rule.id])
                for rule in members
            ),
        )
        for code, members in families.items()
        if members
    )


def rule_page(rule: Rule, rows: Sequence[RunRow]) -> RulePage:
    """The page of one rule, with the runs it was found in."""
    sections = dict(rule.page())
    says = sections.pop("Says")
    return RulePage(
        id=rule.id,
        name=rule.name,
        question=QUESTIONS[Question(rule.question)],
        severity=rule.severity.word,
        confidence=rule.confidence.word,
        since=rule.since,
        reads=tuple(INPUTS.get(name, name.replace("_", " ")) for name in rule.inputs()),
        needs=rule.needs,
        says=paragraphs(says),
        sections=tuple((title, paragraphs(text)) for title, text in sections.items() if text),
        runs=tuple(row for row in rows if any(finding.rule == rule.id for finding in row.findings)),
    )


def paragraphs(text: str) -> Paragraphs:
    """A docstring's section as paragraphs, each in parts: plain text, and code that stood in backticks."""
    made: Paragraphs = []
    for block in re.split(r"\n\s*\n", text.strip()):
        parts = _CODE.split(" ".join(block.split()))
        made.append([(part, bool(index % 2)) for index, part in enumerate(parts) if part])
    return made
