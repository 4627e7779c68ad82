"""Markdown, for pull requests, job summaries and chats."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar, Final

from dashboard.formats.base import ReportFormat

if TYPE_CHECKING:
    from rich.console import Console

    from analysis.check import Check, Flag
    from analysis.diagnosis import Diagnosis
    from collector.domain.findings import Finding, Skipped

_STATES: Final = {
    "ok": "OK",
    "problem": "**PROBLEM**",
    "cannot_tell": "**CANNOT TELL**",
    "not_applicable": "does not apply",
}
_SPECIAL: Final = re.compile(r"([\\`*\[\]<>]|(?<!\w)_|_(?!\w))")
_MOST_EVIDENCE: Final = 3


class MarkdownFormat(ReportFormat):
    """The report as Markdown with tables."""

    name: ClassVar[str] = "markdown"

    def diagnosis(self, diagnosis: Diagnosis, console: Console) -> str:
        """Verdicts, what to do, figures, findings, and what could not be judged."""
        del console
        return _joined(_diagnosis(diagnosis))

    def check(self, checks: Sequence[Check], console: Console) -> str:
        """What becomes of each flag, the findings, and a corrected command."""
        del console
        return _joined(part for check in checks for part in _check(check, several=len(checks) > 1))


FORMAT: Final = MarkdownFormat()


def _joined(parts: Iterable[str]) -> str:
    return "\n\n".join(part for part in parts if part) + "\n"


def _diagnosis(diagnosis: Diagnosis) -> Iterator[str]:
    from analysis import words
    from collector.domain.arguments import UNSEEN
    from collector.domain.quantities import QUANTITIES
    from dashboard.report.causes import refuted_lines
    from dashboard.report.diagnosis import MISPREDICTED, QUESTIONS, SHOWN, figure, mispredicted_lines
    from dashboard.report.traffic import TITLE, traffic_header, traffic_line, traffic_rows

    yield f"# {_text(diagnosis.headline)}"
    view = diagnosis.subject
    method = view.method or ("no" if view.drafting.known else "unknown")
    yield _text(f"{view.record.engine} {view.record.engine_version or view.record.release_range}, {method} draft")
    yield _table(
        ("question", "verdict", ""),
        [
            (
                QUESTIONS[question],
                _STATES[verdict.state],
                _text(verdict.summary + (f" Would decide it: {verdict.provide}" if verdict.provide else "")),
            )
            for question, verdict in diagnosis.verdicts.items()
        ],
    )
    if diagnosis.next_steps:
        yield "## Do next"
        yield "\n".join(f"{number}. {_text(step)}" for number, step in enumerate(diagnosis.next_steps, 1))
    yield from _causes(diagnosis)
    views = [view for view in diagnosis.runs if view.quantities]
    keys = [key for key in SHOWN if any(key in view.quantities for view in views)]
    if keys:
        yield "## Figures"
        yield _table(
            ("", *(view.role.value for view in views)),
            [
                (
                    QUANTITIES[key].label,
                    *(_text(figure(key, view.quantities[key])) if key in view.quantities else "" for view in views),
                )
                for key in keys
            ],
        )
    if view.traffic is not None:
        yield f"## {TITLE}"
        yield _text(traffic_line(view.traffic))
        rows = [tuple(map(_text, row)) for row in traffic_rows(view.traffic)]
        yield _table(traffic_header(view.traffic), rows)
    changed = [item for item in diagnosis.subject.arguments.values() if item.changed]
    if changed:
        yield "## Asked and runs"
        yield _table(
            ("flag", "asked", "runs", ""),
            [
                (
                    _code(words.flag(item.name)),
                    _code(words.value(item.requested)),
                    _code(words.value(item.runs)),
                    "predicted" if item.effective is UNSEEN else "",
                )
                for item in changed
            ],
        )
    mispredicted = mispredicted_lines(diagnosis.subject.arguments.values())
    if mispredicted:
        yield f"## {MISPREDICTED}"
        yield _list(mispredicted)
    yield from _findings(diagnosis.findings)
    ruled_out = [f"{item.rule} {item.name}: {item.why}" for item in diagnosis.ruled_out]
    ruled_out += refuted_lines(diagnosis)
    if ruled_out:
        yield "## Ruled out"
        yield _list(ruled_out)
    yield from _not_judged(diagnosis.skipped)


def _causes(diagnosis: Diagnosis) -> Iterator[str]:
    from dashboard.report.causes import cause_line

    if diagnosis.causes:
        yield "## What could be behind it"
        lines = []
        for number, cause in enumerate(diagnosis.causes, 1):
            reasons = [f"for: {cause_line(reason)}" for reason in cause.reasons_for]
            reasons += [f"against: {cause_line(reason)}" for reason in cause.reasons_against]
            lines.append(f"{number}. {cause.standing}: **{_text(cause.title)}**")
            lines += [f"   - {_text(reason)}" for reason in reasons]
        yield "\n".join(lines)
    for cause in diagnosis.leading_causes:
        if cause.experiment is not None:
            yield f"**To tell:** {_text(cause.experiment.what)}"
            yield _fenced("\n".join(cause.experiment.commands)) if cause.experiment.commands else ""
            yield _list(f"If {outcome}: {meaning}." for outcome, meaning in cause.experiment.outcomes.items())
    if diagnosis.known_faults:
        yield "## Known upstream"
        yield _list(
            f"{match.standing.value.capitalize()}: {match.fault.title} ({match.fault.link}). {match.fault.workaround}"
            for match in diagnosis.known_faults
        )


def _check(check: Check, *, several: bool) -> Iterator[str]:
    from dashboard.report import flags

    if several:
        yield f"# {_text(flags.place_line(check))}"
    yield f"{'##' if several else '#'} {_text(check.headline)}"
    yield _text(flags.subject_line(check))
    if check.predicted and check.resolution.reason:
        yield f"Caution: {_text(check.resolution.reason)}."
    if check.refused:
        yield "## Does not start"
        yield _list(flags.refusal_lines(check))
    for title, shown in (
        ("Not as asked", flags.not_as_asked(check)),
        ("Set by the engine", flags.set_by_the_engine(check)),
    ):
        if shown:
            yield f"## {title}"
            yield _table(("flag", "asked", "will run", "why", "rule"), [_row(check, flag) for flag in shown])
    for title, lines in (
        ("Mind", flags.remark_lines(check)),
        ("Depends", flags.depending_lines(check)),
        ("By release", flags.difference_lines(check)),
        ("As asked", [", ".join("--" + flag.name.replace("_", "-") for flag in flags.as_asked(check))]),
    ):
        if any(lines):
            yield f"## {title}"
            yield _list(lines)
    yield from _findings(check.findings)
    yield from _not_judged(flags.decided_by_files(check))
    if check.corrected is not None:
        yield "## Corrected command"
        yield _list(flags.correction_lines(check))
        yield _fenced(check.corrected.text)


def _row(check: Check, flag: Flag) -> tuple[str, ...]:
    from analysis import words
    from collector.domain.arguments import UNSEEN
    from dashboard.report.flags import finding_about, reason

    finding = finding_about(check, flag)
    return (
        _code(words.flag(flag.name)),
        *("" if value is UNSEEN else _code(words.value(value)) for value in (flag.requested, flag.effective)),
        _text(reason(flag)),
        f"{finding.rule} {finding.severity.word}" if finding is not None else "",
    )


def _findings(findings: Sequence[Finding]) -> Iterator[str]:
    if findings:
        yield f"## Findings ({len(findings)})"
    for finding in findings:
        about = "" if finding.scope == "run" else f", about {finding.scope}"
        yield f"### {finding.rule} {finding.severity.word}: {_text(finding.title)}"
        yield _text(f"{finding.why} ({finding.name}, confidence {finding.confidence.word}{about})")
        lines = [f"`{item.place}`: {_code(_short(item.text))}" for item in finding.evidence[:_MOST_EVIDENCE]]
        lines += [f"Fix: {_text(step)}" for step in finding.fix]
        lines += [f"Check: {_text(step)}" for step in finding.verify[:1]]
        yield "\n".join(f"- {line}" for line in lines)


def _not_judged(skipped: Sequence[Skipped]) -> Iterator[str]:
    by_reason: dict[tuple[str, str], list[str]] = {}
    for item in skipped:
        by_reason.setdefault((item.reason, item.provide), []).append(item.rule)
    if by_reason:
        yield "## Not judged"
        yield _list(
            f"{', '.join(rules)}: {reason}." + (f" Provide: {provide}" if provide else "")
            for (reason, provide), rules in by_reason.items()
        )


def _table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in lines)


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {_text(line)}" for line in lines)


def _text(text: str) -> str:
    """Text that means itself: nothing in it is taken for markup, and it stays on one line."""
    return _SPECIAL.sub(r"\\\1", " ".join(text.split()))


def _code(text: str) -> str:
    """Text in backticks, as many as it takes."""
    plain = " ".join(text.split())
    ticks = "`" * (1 + max(map(len, re.findall(r"`+", plain)), default=0))
    space = " " if len(ticks) > 1 else ""
    return f"{ticks}{space}{plain}{space}{ticks}" if plain else ""


def _fenced(text: str) -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", text)), default=0))
    return f"{fence}sh\n{text}\n{fence}"


def _short(text: str) -> str:
    return text if len(text) <= 160 else text[:157] + "..."
