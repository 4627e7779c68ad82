"""The text report of ``draftscope check``: what is not as asked first, then why, then a command that is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from analysis import words
from analysis.check import Check, Flag
from collector.domain.arguments import UNSEEN, Seen
from dashboard.report.flags import (
    as_asked,
    correction_lines,
    decided_by_files,
    depending_lines,
    difference_lines,
    finding_about,
    not_as_asked,
    place_line,
    reason,
    refusal_lines,
    remark_lines,
    set_by_the_engine,
    subject_line,
)
from dashboard.report.pieces import SEVERITY, finding_block, heading, listed, skipped_list


def print_checks(console: Console, checks: Sequence[Check]) -> None:
    """Print the report of every command."""
    for number, check in enumerate(checks):
        if number:
            console.rule(style="dim")
        for part in _parts(check, several=len(checks) > 1):
            console.print(part)
        if check.corrected is not None:
            console.print(heading("Corrected command"))
            console.print(listed(correction_lines(check)))
            # As it stands, so that it can be copied.
            console.print(Text(f"\n{check.corrected.text}", no_wrap=True), crop=False, soft_wrap=True)


def _parts(check: Check, *, several: bool) -> Iterable[RenderableType]:
    if several:
        yield Text(place_line(check), style="bold")
    yield Text(check.headline, style="bold")
    yield Text(subject_line(check), style="dim")
    if check.predicted and check.resolution.reason:
        yield Text(f"Caution: {check.resolution.reason}.", style="yellow")
    if check.refused:
        yield heading("Does not start")
        yield listed(refusal_lines(check))
    odd = not_as_asked(check)
    if odd:
        yield heading("Not as asked")
        yield _table(check, odd)
    forced = set_by_the_engine(check)
    if forced:
        yield heading("Set by the engine")
        yield _table(check, forced)
    if remarks := remark_lines(check):
        yield heading("Mind")
        yield listed(remarks)
    if hanging := depending_lines(check):
        yield heading("Depends")
        yield listed(hanging)
    if by_release := difference_lines(check):
        yield heading("By release")
        yield listed(by_release)
    unchanged = as_asked(check)
    if unchanged:
        yield heading("As asked")
        yield listed([", ".join(words.flag(flag.name) for flag in unchanged)])
    if check.findings:
        yield heading(f"Findings ({len(check.findings)})")
        for finding in check.findings:
            yield finding_block(finding)
    if open_rules := decided_by_files(check):
        yield heading("Not judged")
        yield skipped_list(open_rules)
    if check.crashes:
        yield heading("Rules that failed (our fault; please report)")
        yield listed(f"{item.rule} {item.name}: {item.error}" for item in check.crashes)


def _table(check: Check, flags: Sequence[Flag]) -> Table:
    table = Table(box=None, padding=(0, 1), show_edge=False, pad_edge=False)
    table.add_column("")
    table.add_column("flag", no_wrap=True)
    for column in ("asked", "will run", "why"):
        table.add_column(column, overflow="fold")
    for flag in flags:
        finding = finding_about(check, flag)
        mark, style = SEVERITY[finding.severity] if finding is not None else ("·", "dim")
        table.add_row(
            Text(mark.split()[0], style=style),
            words.flag(flag.name),
            _shown(flag.requested),
            _shown(flag.effective),
            Text(reason(flag) + (f" ({finding.rule})" if finding is not None else "")),
        )
    return table


def _shown(value: Seen) -> str:
    return "" if value is UNSEEN else words.value(value)
