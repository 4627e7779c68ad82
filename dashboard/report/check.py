"""The text report of ``draftscope check``: what is not as asked first, then why, then a command that is."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from analysis import words
from analysis.check import Check, Flag
from collector.domain.arguments import UNSEEN, Seen
from collector.domain.findings import Finding
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


def subject_line(check: Check) -> str:
    """Engine, release and where it is known from, accelerator."""
    release = check.given.release
    if release is None:
        first, last = (check.resolution.releases or ("", ""))[0], (check.resolution.releases or ("", ""))[-1]
        version = f"release not given: what holds for all of {first} to {last}" if first else "release not given"
    else:
        version = f"{release} ({check.given.release_source})" if check.given.release_source else str(release)
    return " · ".join(part for part in (f"{check.engine} {version}", check.given.device or "") if part)


def place_line(check: Check) -> str:
    """Where the command stands."""
    return ", ".join(part for part in (check.launch.evidence.place, check.launch.label) if part)


def correction_lines(check: Check) -> list[str]:
    """What was changed to get the corrected command."""
    lines = []
    for item in check.corrections:
        if item.after is UNSEEN:
            done = f"without {words.flag(item.flag)}"
        elif item.before is UNSEEN:
            done = f"{words.flag(item.flag)} {words.value(item.after)} added"
        else:
            done = f"{words.flag(item.flag)} {words.value(item.after)} instead of {words.value(item.before)}"
        lines.append(f"{done}: {item.why}")
    return lines


def not_as_asked(check: Check) -> list[Flag]:
    """Flags that were given and run otherwise, have no effect, or do less than they say."""
    return [flag for flag in check.flags.values() if flag.asked and (flag.overridden or flag.ignored or flag.remarks)]


def set_by_the_engine(check: Check) -> list[Flag]:
    """Flags that nobody gave and that the engine sets otherwise than its own default, or says that it sets."""
    return [
        flag
        for flag in check.flags.values()
        if not flag.asked and flag.effective is not UNSEEN and (flag.replaces_a_default or flag.announced is not None)
    ]


def depending(check: Check) -> tuple[list[Flag], dict[str, list[Flag]]]:
    """Flags whose value hangs on something: those that were given or belong to speculation, and the others by what."""
    near: list[Flag] = []
    far: dict[str, list[Flag]] = {}
    for flag in check.flags.values():
        if flag.depends and (flag.asked or flag.name.startswith("speculative")):
            near.append(flag)
        elif flag.depends:
            far.setdefault(flag.depends, []).append(flag)
    return near, far


def as_asked(check: Check) -> list[Flag]:
    """Flags that will run as they were given."""
    odd = {flag.name for flag in not_as_asked(check)}
    return [
        flag for flag in check.flags.values() if flag.asked and flag.name not in odd and flag.effective is not UNSEEN
    ]


def reason(flag: Flag) -> str:
    """Why a flag runs as it does, and whether the engine says so."""
    deciding = flag.deciding
    if flag.ignored:
        return f"no effect: {flag.ignored}"
    parts = []
    if deciding is not None and (flag.overridden or not flag.asked):
        parts.append(f"{'announced' if flag.announced is not None else 'silent'}: {deciding.step.condition}")
    return "; ".join([*parts, *flag.remarks])


def severity_of(check: Check, flag: Flag) -> Finding | None:
    """The finding that speaks about a flag, if one does."""
    return next((finding for finding in check.findings if finding.values.get("flag") == flag.name), None)


def _parts(check: Check, *, several: bool) -> Iterable[RenderableType]:
    if several:
        yield Text(place_line(check), style="bold")
    yield Text(check.headline, style="bold")
    yield Text(subject_line(check), style="dim")
    if check.predicted and check.resolution.reason:
        yield Text(f"Caution: {check.resolution.reason}.", style="yellow")
    if check.refused:
        yield heading("Does not start")
        yield listed(f"{item.kind}: {item.message} ({item.step.condition})" for item in check.resolution.rejections)
    odd = not_as_asked(check)
    if odd:
        yield heading("Not as asked")
        yield _table(check, odd)
    forced = set_by_the_engine(check)
    if forced:
        yield heading("Set by the engine")
        yield _table(check, forced)
    near, far = depending(check)
    if near or far:
        yield heading("Depends")
        yield listed(
            [
                *(f"{words.flag(flag.name)}{_asked(flag)}: depends on {flag.depends}" for flag in near),
                *(f"{words.plural(len(flags), 'other flag')}: on {what}" for what, flags in far.items()),
            ]
        )
    if check.differences:
        yield heading("By release")
        yield listed(
            f"{words.flag(item.flag)}: {'; '.join(f'{span}: {said}' for span, said in item.stretches)}"
            for item in check.differences
        )
    unchanged = as_asked(check)
    if unchanged:
        yield heading("As asked")
        yield listed([", ".join(words.flag(flag.name) for flag in unchanged)])
    if check.findings:
        yield heading(f"Findings ({len(check.findings)})")
        for finding in check.findings:
            yield finding_block(finding)
    open_rules = [item for item in check.skipped if item.provide.startswith("--") and "LOG" not in item.provide]
    if open_rules:
        yield heading("Not judged")
        yield skipped_list(open_rules)
    if check.crashes:
        yield heading("Rules that failed (our fault; please report)")
        yield listed(f"{item.rule} {item.name}: {item.error}" for item in check.crashes)


def _asked(flag: Flag) -> str:
    return f" {words.value(flag.requested)}" if flag.asked else ""


def _table(check: Check, flags: Sequence[Flag]) -> Table:
    table = Table(box=None, padding=(0, 1), show_edge=False, pad_edge=False)
    table.add_column("")
    table.add_column("flag", no_wrap=True)
    for column in ("asked", "will run", "why"):
        table.add_column(column, overflow="fold")
    for flag in flags:
        finding = severity_of(check, flag)
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
