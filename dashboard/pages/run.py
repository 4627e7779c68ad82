"""The page of one run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote

from collector.domain.findings import State
from dashboard import names
from dashboard.charts.drawn import Seen
from dashboard.pages import figures
from dashboard.pages.acceptance import AcceptanceSection, acceptance_section
from dashboard.pages.causes import CausesSection, causes_section
from dashboard.pages.configuration import ConfigurationSection, configuration_section
from dashboard.pages.data import DataSection, data_section
from dashboard.pages.drawing import drawn_of
from dashboard.pages.findings import FindingsSection, findings_section, linked
from dashboard.pages.over_time import RANGES
from dashboard.pages.payoff import PayoffSection, payoff_section, repair
from dashboard.pages.verdicts import Tile, tiles
from dashboard.store import RunReport

_SENTENCE_END = re.compile(r"(?<=[.?])\s+")
_STATEMENT = re.compile(r"(?P<say>[^(]*?[.:?])(?:\s+(?P<rest>.*))?")
_RULE_AT_END = re.compile(r"(?P<text>.*?)\s*\((?P<rule>[A-Z]{3}\d{3})\)")


@dataclass(frozen=True, slots=True)
class NextStep:
    """What to do first: a short statement, and the rest in smaller type with links to findings."""

    say: str
    rest: list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class RunPage:
    """Everything the template shows."""

    id: str
    title: str
    when: str
    sample: bool
    watched: bool
    over_time: str
    facts: tuple[tuple[str, str], ...]
    headline: str
    say: tuple[tuple[str, bool], ...]
    next_steps: tuple[NextStep, ...]
    tiles: tuple[Tile, ...]
    states: Mapping[str, str]
    causes: CausesSection
    acceptance: AcceptanceSection
    payoff: PayoffSection
    configuration: ConfigurationSection
    findings: FindingsSection
    data: DataSection


def run_page(report: RunReport, chosen: str = "") -> RunPage:
    """The page of a diagnosed run; ``chosen`` is the range of its figures over time, "" for the usual one."""
    document, subject, drawn = report.document, report.subject, drawn_of(report)
    here = {finding["rule"] for finding in document["findings"]}
    started = subject["started_at"]
    headline, rest = _parted(document["headline"])
    return RunPage(
        id=report.id,
        title=_title(report),
        when=figures.instant(started) if started is not None else "start not stated",
        sample=report.sample,
        watched=report.watched,
        over_time=_with_range(report, chosen),
        facts=tuple(_facts(report, drawn.seen)),
        headline=headline,
        say=((f"{rest} ", False), *_say(document)) if rest else tuple(_say(document)),
        next_steps=tuple(_step(text, here) for text in document["next"]),
        tiles=tiles(report),
        states={question: verdict["state"] for question, verdict in document["verdicts"].items()},
        causes=causes_section(report),
        acceptance=acceptance_section(report, drawn),
        payoff=payoff_section(report, drawn),
        configuration=configuration_section(report),
        findings=findings_section(report),
        data=data_section(report, drawn),
    )


def _with_range(report: RunReport, chosen: str) -> str:
    """Where the figures over time come from; "" for a run that is not watched."""
    if not report.watched:
        return ""
    return f"/runs/{quote(report.id, safe='')}/over-time{f'?range={chosen}' if chosen in RANGES else ''}"


def _title(report: RunReport) -> str:
    target, draft = names.target(report.runs_with), names.draft(report.runs_with)
    title = target or f"{names.engine(report.subject['engine'])} run"
    return f"{title} with {draft}" if draft else title


def _facts(report: RunReport, seen: Seen | None) -> list[tuple[str, str]]:
    subject = report.subject
    release = subject["engine_version"]
    if release is None:
        span = subject["engine_release_range"]
        release = "release not printed" if span == "every release" else f"release not printed, {span} fits its lines"
    facts = [("Engine", f"{names.engine(subject['engine'])}, {release}"), ("Method", _method(report))]
    running = figures.figure("running_requests", report.quantity("running_requests"))
    if running is not None:
        facts.append(("Load", str(running)))
    if seen is not None:
        facts.append(("Seen", f"{figures.span(seen.first, seen.last)}, {figures.plural(seen.windows, 'window')}"))
    if report.watched and report.judged_at is not None:
        facts.append(("Judged", figures.instant(report.judged_at)))
    facts += [(key, value) for key, value in report.labels.items()]
    return facts


def _method(report: RunReport) -> str:
    off = report.document["verdicts"]["acceptance"]["state"] == State.NOT_APPLICABLE
    parts = [names.method(report.subject["method"], speculates=False if off else None)]
    depth, width = report.number("draft_depth"), report.number("verify_width")
    if depth is not None:
        parts.append(figures.plural(int(depth), "step") if depth.is_integer() else f"{depth:g} steps on average")
    if depth is not None and width is not None:
        parts.append("chain" if width == depth + 1 else f"{width:g} tokens verified")
    return ", ".join(parts)


def _say(document: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """What it costs and what repairs would bring, in parts; ``True`` marks figures.

    Without a comparable run it is the reason that the first finding gives.
    """
    payoff: Mapping[str, Any] | None = document["payoff"]
    if payoff is None:
        serious = (finding["why"] for finding in document["findings"] if finding["severity"] != "info")
        return [(why, False) for why in [next(serious, "")] if why]
    parts = [
        ("The server makes ", False),
        (f"{figures.significant(payoff['throughput'])} tok/s", True),
        ("; without speculation it makes ", False),
        (figures.significant(payoff["baseline_throughput"]), True),
        (". ", False),
    ]
    both = repair(payoff, "both_repaired")
    alone = [row for name in ("acceptance_repaired", "step_cost_repaired") if (row := repair(payoff, name))]
    if both is None:
        return parts
    if all(row["speedup"] < 1 for row in alone):
        parts.append(("Repairing either fault alone still loses. ", False))
    parts += [
        ("Both together give about ", False),
        (f"{figures.significant(both['throughput'])} tok/s", True),
        (f" ({figures.factor(both['speedup'])}).", False),
    ]
    return parts


def _step(text: str, here: set[str]) -> NextStep:
    """``Do this: because of that. (PAY001)`` in its parts."""
    named = _RULE_AT_END.fullmatch(text)
    plain, rule = (named["text"], named["rule"]) if named else (text, "")
    statement = _STATEMENT.fullmatch(plain)
    say, rest = (statement["say"], statement["rest"] or "") if statement else (plain, "")
    return NextStep(f"{say[:-1]}." if say.endswith(":") else say, linked(f"{rest} {rule}".strip(), here))


def _parted(text: str) -> tuple[str, str]:
    """The first sentence, and what follows it."""
    first, *rest = _SENTENCE_END.split(text, maxsplit=1)
    return first, rest[0] if rest else ""
