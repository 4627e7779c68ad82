"""Findings as a run page shows them: values with what they compare with, evidence with the match marked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any, Final

from collector.domain.quantities import QUANTITIES
from dashboard.pages import figures
from dashboard.store import RunReport

LONGEST_LINE: Final = 400
"""Characters of an evidence line that are shown; a longer one is cut around its match."""
BEFORE_MATCH: Final = 60

COMPARED: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    "acceptance_length": (
        ("break_even_acceptance_length", "pays from {}"),
        ("realistic_acceptance_length", "healthy {}"),
        ("previous", "before {}"),
    ),
    "conditional_acceptance_rate": (
        ("break_even_conditional_acceptance_rate", "pays from {}"),
        ("validation_accuracy", "validation {}"),
    ),
    "step_cost_ratio": (("usual_step_cost", "usual {}, assumed"),),
    "generation_throughput": (("baseline_throughput", "{} without"),),
    "effective": (("requested", "{} asked"),),
    "draft_ids": (("previous_ids", "before {}"),),
}
"""Which value stands beside which; the first that the finding holds is used and loses its own row."""

LABELS: Final[Mapping[str, str]] = {
    "flag": "Flag",
    "effective": "Runs with",
    "requested": "Asked",
    "previous": "Before",
    "draft_ids": "Layers in this config",
    "previous_ids": "Layers in the earlier config",
    "engine_default_ids": "Engine default",
    "trained_ids": "Layers as trained",
    "layers": "Layers of the target",
    "printed": "Printed",
    "windows": "Windows",
    "p_value": "Chance of this if healthy (p)",
    "steady_throughput": "Throughput of steady windows",
    "usual_step_cost": "Usual step cost, assumed",
    "metric": "Printed as",
    "unit": "Unit",
    "onset": "Since",
    "last": "Of late",
    "lost_share": "Share lost",
    "share": "Share of windows",
    "queued_share": "Share of windows with a queue",
    "graphless_share": "Share of windows without a graph",
    "siblings_acceptance_length": "Acceptance length of its siblings",
    "accepted_per_step_short": "Accepted per step, short contexts",
    "accepted_per_step_long": "Accepted per step, long contexts",
    "context_short": "Short contexts",
    "context_long": "Long contexts",
    "rank_correlation": "Rank correlation with the context",
    "lines": "Lines of the engine",
    "shapes": "Shapes of lines",
    "usual": "Usual definition",
}
"""Words for keys of values that are no quantities; others are their own words."""

INSTANTS: Final = frozenset({"onset"})
"""Values that are seconds since 1970."""
SHARES: Final = frozenset({"lost_share", "share", "queued_share", "graphless_share"})
"""Values that are ratios of like things, told in percent."""
LEAST_CHANCE: Final = 0.0001
"""Chances below are told as that: their digits say nothing."""
DRAWN_ELSEWHERE: Final = re.compile(r"readings|\w+_repaired")
"""Values that a drawing of the page shows."""

_FIGURES_IN_LINES: Final = (
    r"accept len: [\d.]+(?:, accept rate: [\d.]+)?",
    r"gen throughput \(token/s\): [\d.]+",
    r"Mean acceptance length: [\d.]+",
    r"Avg Draft acceptance rate: [\d.]+%",
)
_COMMAND: Final = re.compile(
    r"^(?:\$ |[A-Z_]+=\S+ |draftscope |curl |python3? |sglang |vllm |llama-server |trtllm-serve |grep |docker )"
)
_RULE: Final = re.compile(r"\b([A-Z]{3}\d{3})\b")


@dataclass(frozen=True, slots=True)
class ValueRow:
    """A value of a finding: its name, the figure, and what it compares with."""

    key: str
    label: str
    value: str
    interval: str
    compared: str

    @property
    def defined(self) -> bool:
        """Whether the key is a quantity with a definition."""
        return self.key in QUANTITIES


@dataclass(frozen=True, slots=True)
class EvidenceLine:
    """A line of a source in parts, the marked ones with ``True``; ``gap`` counts lines left out before it."""

    number: int | None
    parts: tuple[tuple[str, bool], ...]
    gap: int = 0


@dataclass(frozen=True, slots=True)
class EvidenceBlock:
    """Lines of one source."""

    source: str
    lines: tuple[EvidenceLine, ...]


@dataclass(frozen=True, slots=True)
class Advice:
    """One thing to do; ``command`` marks what can be pasted into a terminal."""

    text: str
    command: bool


@dataclass(frozen=True, slots=True)
class FindingView:
    """One finding, ready to show. ``anchor`` is unique on the page."""

    anchor: str
    rule: str
    name: str
    severity: str
    confidence: str
    scope: str
    title: str
    why: str
    share: str
    values: tuple[ValueRow, ...]
    evidence: tuple[EvidenceBlock, ...]
    fix: tuple[str, ...]
    verify: tuple[Advice, ...]
    ruled_out: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class RuledOutView:
    """A suspicion that the evidence refutes."""

    rule: str
    name: str
    why: str
    evidence: tuple[EvidenceBlock, ...]


@dataclass(frozen=True, slots=True)
class FindingsSection:
    """What the section shows; ``summary`` counts by severity."""

    summary: str
    findings: tuple[FindingView, ...]
    ruled_out: tuple[RuledOutView, ...]
    skipped: tuple[Mapping[str, str], ...]
    crashed: tuple[Mapping[str, str], ...]


def findings_section(report: RunReport) -> FindingsSection:
    """Everything the rules said about a run, worst first."""
    document = report.document
    views = finding_views(document["findings"], report)
    return FindingsSection(
        summary=_summary([finding["severity"] for finding in document["findings"]]),
        findings=views,
        ruled_out=tuple(
            RuledOutView(
                item["rule"], item["name"], item["why"], evidence_blocks(item["evidence"], _names_in(item["why"]))
            )
            for item in document["ruled_out"]
        ),
        skipped=tuple(document["skipped"]),
        crashed=tuple(document["crashed"]),
    )


def title_of(report: RunReport, rule: str) -> str:
    """What a rule found, "" where it found nothing."""
    return next((finding["title"] for finding in report.document["findings"] if finding["rule"] == rule), "")


def finding_views(
    findings: Iterable[Mapping[str, Any]], report: RunReport | None = None, prefix: str = ""
) -> tuple[FindingView, ...]:
    """Findings as documents have them, worst first; those of a ``report`` say what its figures add.

    Their anchors begin with ``prefix``.
    """
    order = {"critical": 0, "warning": 1, "info": 2}
    anchors: dict[str, int] = {}
    views = []
    for finding in sorted(findings, key=lambda finding: order[finding["severity"]]):
        number = anchors[finding["rule"]] = anchors.get(finding["rule"], 0) + 1
        anchor = prefix + (finding["rule"] if number == 1 else f"{finding['rule']}-{number}")
        views.append(_view(report, finding, anchor))
    return tuple(views)


def linked(text: str, here: Iterable[str]) -> list[tuple[str, str]]:
    """A text in parts with the address that a rule's code leads to: its finding on this page, else its own page."""
    on_page = set(here)
    parts: list[tuple[str, str]] = []
    for index, part in enumerate(_RULE.split(text)):
        if index % 2:
            parts.append((part, f"#{part}" if part in on_page else f"/rules/{part}"))
        elif part:
            parts.append((part, ""))
    return parts


def evidence_blocks(evidence: Sequence[Mapping[str, Any]], patterns: Sequence[str]) -> tuple[EvidenceBlock, ...]:
    """Evidence by source, lines in order, gaps counted, matches marked, long lines cut around the match."""
    blocks = []
    for source, items in groupby(evidence, key=lambda item: item["source"]):
        lines: list[EvidenceLine] = []
        last: int | None = None
        for item in sorted(items, key=lambda item: item["line"] or 0):
            number = item["line"]
            gap = number - last - 1 if number is not None and last is not None else 0
            lines.append(EvidenceLine(number, _marked(item["text"], patterns), max(gap, 0)))
            last = number
        blocks.append(EvidenceBlock(source, tuple(lines)))
    return tuple(blocks)


def _view(report: RunReport | None, finding: Mapping[str, Any], anchor: str) -> FindingView:
    return FindingView(
        anchor=anchor,
        rule=finding["rule"],
        name=finding["name"],
        severity=finding["severity"],
        confidence=finding["confidence"],
        scope="" if finding["scope"] == "run" else finding["scope"],
        title=finding["title"],
        why=finding["why"],
        share=_share_of_loss(report, finding["rule"]),
        values=_values(report, finding),
        evidence=evidence_blocks(finding["evidence"], _patterns(finding)),
        fix=tuple(finding["fix"]),
        verify=tuple(Advice(text.removeprefix("$ "), bool(_COMMAND.match(text))) for text in finding["verify"]),
        ruled_out=tuple((rival["name"], rival["why"]) for rival in finding.get("ruled_out", ())),
    )


def _values(report: RunReport | None, finding: Mapping[str, Any]) -> tuple[ValueRow, ...]:
    values: Mapping[str, Any] = finding["values"]
    beside: dict[str, str] = {}
    taken: set[str] = set()
    for key, candidates in COMPARED.items():
        other = next((pair for pair in candidates if key in values and pair[0] in values), None)
        if other is not None:
            like = other[0] if other[0] in QUANTITIES else key
            beside[key] = _compared(other[1], like, values[other[0]])
            taken.add(other[0])
    rows = []
    for key, value in values.items():
        if key in taken or DRAWN_ELSEWHERE.fullmatch(key) or value is None:
            continue
        label = QUANTITIES[key].label if key in QUANTITIES else LABELS.get(key, key.replace("_", " ").capitalize())
        rows.append(ValueRow(key, label, _value(key, value), _interval(report, finding, key), beside.get(key, "")))
    return tuple(rows)


def _compared(words: str, key: str, value: Any) -> str:
    if value is None:
        return "not asked" if words == "{} asked" else ""
    return words.format(figures.words(key, value))


def _value(key: str, value: Any) -> str:
    if key in INSTANTS and figures.is_number(value):
        return figures.instant(value)
    if key in SHARES and figures.is_number(value):
        return figures.share(value)
    if key == "p_value" and figures.is_number(value) and value < LEAST_CHANCE:
        return f"below {LEAST_CHANCE}"
    text = figures.words(key, value)
    unit = figures.form(key, value).unit if figures.is_number(value) and key in QUANTITIES else ""
    return f"{text} {unit}" if unit and unit != "tokens" else text


def _interval(report: RunReport | None, finding: Mapping[str, Any], key: str) -> str:
    """The interval of the run's own figure where the finding repeats it."""
    estimate = report.quantity(key) if report is not None else None
    if finding["scope"] != "run" or estimate is None or estimate["value"] != finding["values"][key]:
        return ""
    shown = figures.figure(key, estimate)
    return shown.interval if shown else ""


def _share_of_loss(report: RunReport | None, rule: str) -> str:
    payoff = report.document["payoff"] if report is not None else None
    share = payoff and {"ACC001": payoff["loss_share_acceptance"], "PAY002": payoff["loss_share_step_cost"]}.get(rule)
    return f"{figures.percent(share)} of the loss" if share else ""


def _patterns(finding: Mapping[str, Any]) -> list[str]:
    """What to mark in the evidence of a finding: its flag with its value, else the figures that engines print."""
    flag = finding["values"].get("flag")
    if flag:
        return _names_in(str(flag))
    return [*_FIGURES_IN_LINES, *_names_in(finding["title"])]


def _names_in(text: str) -> list[str]:
    """Patterns for every argument named in a text, with its value, as argument lines and commands spell it."""
    names = set(re.findall(r"[a-z0-9]+(?:_[a-z0-9]+)+", text))
    patterns = []
    for name in sorted(names):
        option = re.escape(name.replace("_", "-"))
        patterns += [
            rf"\b{re.escape(name)}=(?:'[^']*'|[^,)\s]*)",
            rf"\b{re.escape(name)}\b",
            rf"--{option}(?:[ =]\S+)?",
        ]
    return patterns


def _marked(text: str, patterns: Sequence[str]) -> tuple[tuple[str, bool], ...]:
    spans = _spans(text, patterns)
    if len(text) > LONGEST_LINE:
        start = max(0, spans[0][0] - BEFORE_MATCH) if spans else 0
        end = start + LONGEST_LINE
        spans = [(max(low, start), min(high, end)) for low, high in spans if low < end and high > start]
        head, tail = "… " if start else "", " …" if end < len(text) else ""
        shift = len(head) - start
        text = head + text[start:end] + tail
        spans = [(low + shift, high + shift) for low, high in spans]
    parts: list[tuple[str, bool]] = []
    at = 0
    for low, high in spans:
        parts += [(text[at:low], False), (text[low:high], True)]
        at = high
    return tuple((part, on) for part, on in [*parts, (text[at:], False)] if part)


def _spans(text: str, patterns: Sequence[str]) -> list[tuple[int, int]]:
    if not patterns:
        return []
    return [match.span() for match in re.finditer("|".join(patterns), text) if match[0]]


def _summary(severities: Sequence[str]) -> str:
    words = (("critical", "critical", "critical"), ("warning", "warning", "warnings"), ("info", "note", "notes"))
    counted = [
        f"{severities.count(key)} {one if severities.count(key) == 1 else many}"
        for key, one, many in words
        if key in severities
    ]
    return ", ".join(counted)
