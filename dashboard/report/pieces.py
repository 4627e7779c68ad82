"""Pieces that text reports share."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from collector.domain.findings import Finding, Severity, Skipped

SEVERITY: Final = {
    Severity.CRITICAL: ("⬣ critical", "bold red"),
    Severity.WARNING: ("▲ warning", "red"),
    Severity.INFO: ("○ note", "cyan"),
}


def heading(text: str) -> RenderableType:
    """The heading of a part."""
    return Padding(Text(text, style="bold underline"), (1, 0, 0, 0))


def listed(lines: Iterable[str]) -> Table:
    """Lines with a dash before each."""
    table = grid()
    for line in lines:
        table.add_row(" -", Text(line))
    return table


def grid() -> Table:
    """A table without lines: a mark, then text that wraps."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    return table


def finding_block(finding: Finding) -> RenderableType:
    """One finding: what, how sure, why, where, and what to do."""
    label, style = SEVERITY[finding.severity]
    head = Text.assemble((label, style), " ", (finding.title, "bold"))
    about = f"{finding.rule} {finding.name}, confidence {finding.confidence.word}"
    if finding.scope != "run":
        about += f", about {finding.scope}"
    body = grid()
    body.add_row("", Text(finding.why))
    for item in finding.evidence[:3]:
        text = item.text if len(item.text) <= 160 else item.text[:157] + "..."
        body.add_row("", Text(f"{item.place}: {text}", style="dim"))
    for rival in finding.ruled_out:
        body.add_row("", Text(f"Not the cause: {rival.name} {rival.why}."))
    for number, step in enumerate(finding.fix, 1):
        body.add_row("", Text(f"Fix {number}: {step}"))
    for check in finding.verify[:1]:
        body.add_row("", Text(f"Check: {check}"))
    return Padding(Group(head, Text(f"  {about}", style="dim"), body), (0, 0, 1, 0))


def skipped_list(skipped: Iterable[Skipped]) -> Table:
    """Rules that could not look, by reason, so that one missing file is one line."""
    by_reason: dict[tuple[str, str], list[str]] = {}
    for item in skipped:
        by_reason.setdefault((item.reason, item.provide), []).append(item.rule)
    return listed(
        f"{', '.join(rules)}: {reason}." + (f" Provide: {provide}" if provide else "")
        for (reason, provide), rules in by_reason.items()
    )
