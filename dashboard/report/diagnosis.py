"""The text report: the four verdicts first, then what to do, then why."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, Final

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from analysis import words
from analysis.diagnosis import Diagnosis
from analysis.drafting import concerns_drafts
from collector.domain.arguments import UNSEEN, Argument
from collector.domain.findings import State
from collector.domain.quantities import QUANTITIES, Estimate
from collector.domain.runs import Role
from dashboard.report.causes import causes_parts, refuted_lines
from dashboard.report.pieces import finding_block, grid, heading, listed, skipped_list

if TYPE_CHECKING:
    from analysis.traffic import Traffic

_STATE: Final = {
    State.OK: ("✓", "OK", "green"),
    State.PROBLEM: ("◆", "PROBLEM", "bold red"),
    State.CANNOT_TELL: ("?", "CANNOT TELL", "bold yellow"),
    State.NOT_APPLICABLE: ("-", "does not apply", "dim"),
}
QUESTIONS: Final = {
    "config": "Runs as asked?",
    "acceptance": "Accepted enough?",
    "payoff": "Pays?",
    "data": "Figures sound?",
}
SHOWN: Final = (
    "acceptance_length",
    "conditional_acceptance_rate",
    "draft_acceptance_rate",
    "expected_acceptance_length",
    "realistic_acceptance_length",
    "retained_share",
    "generation_throughput",
    "step_seconds",
    "speedup",
    "step_cost_ratio",
    "break_even_acceptance_length",
    "running_requests",
)


def print_report(console: Console, diagnosis: Diagnosis) -> None:
    """Print the whole report."""
    for part in _parts(diagnosis):
        console.print(part)


def _parts(diagnosis: Diagnosis) -> Iterable[RenderableType]:
    yield Text(diagnosis.headline, style="bold")
    yield _subject(diagnosis)
    yield ""
    yield verdict_table(diagnosis)
    if diagnosis.next_steps:
        yield heading("Do next")
        yield _numbered(diagnosis.next_steps)
    yield from causes_parts(diagnosis)
    figures = _figures(diagnosis)
    if figures is not None:
        yield heading("Figures")
        yield figures
    if diagnosis.subject.traffic is not None:
        yield from _traffic(diagnosis.subject.traffic)
    if diagnosis.payoff is not None and len(diagnosis.payoff.repairs) > 1:
        yield heading("What each repair would give")
        yield _repairs(diagnosis)
    changed = [item for item in diagnosis.subject.arguments.values() if item.changed]
    if changed:
        yield heading("Asked and runs")
        yield _arguments(changed)
    mispredicted = mispredicted_lines(diagnosis.subject.arguments.values())
    if mispredicted:
        yield heading(MISPREDICTED)
        yield listed(mispredicted)
    if diagnosis.findings:
        yield heading(f"Findings ({len(diagnosis.findings)})")
        for finding in diagnosis.findings:
            yield finding_block(finding)
    ruled_out = [f"{item.rule} {item.name}: {item.why}" for item in diagnosis.ruled_out]
    ruled_out += refuted_lines(diagnosis)
    if ruled_out:
        yield heading("Ruled out")
        yield listed(ruled_out)
    if diagnosis.skipped:
        yield heading("Not judged")
        yield skipped_list(diagnosis.skipped)
    if diagnosis.crashes:
        yield heading("Rules that failed (our fault; please report)")
        yield listed(f"{item.rule} {item.name}: {item.error}" for item in diagnosis.crashes)
    yield heading("Read")
    yield _readings(diagnosis)


def _numbered(lines: Iterable[str]) -> Table:
    table = grid()
    for number, line in enumerate(lines, 1):
        table.add_row(f" {number}.", Text(line))
    return table


def _subject(diagnosis: Diagnosis) -> Text:
    view = diagnosis.subject
    version = str(view.record.engine_version or f"release not printed, fits {view.record.release_range}")
    engine = f"{view.record.engine} ({version})" if view.record.engine else "engine not stated"
    parts = [engine, f"method {view.method or ('none' if view.drafting.known else 'not known')}"]
    if view.depth is not None:
        parts.append(f"depth {view.depth}, {view.width} tokens verified a step")
    return Text(" · ".join(parts), style="dim")


def verdict_table(diagnosis: Diagnosis) -> Table:
    """The four questions with their answers."""
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for question, verdict in diagnosis.verdicts.items():
        mark, word, style = _STATE[verdict.state]
        sentence = Text(verdict.summary)
        if verdict.provide:
            sentence.append(f" Would decide it: {verdict.provide}", style="italic")
        table.add_row(Text(QUESTIONS[question]), Text(f"{mark} {word}", style=style), sentence)
    return table


def _figures(diagnosis: Diagnosis) -> Table | None:
    roles = [view for view in diagnosis.runs if view.quantities]
    keys = [key for key in SHOWN if any(key in view.quantities for view in roles)]
    if not keys:
        return None
    table = Table(box=None, padding=(0, 1), show_edge=False, pad_edge=False)
    table.add_column("")
    for view in roles:
        table.add_column("this run" if view.role is Role.SUBJECT else view.role.value, justify="right")
    for key in keys:
        cells = [figure(key, view.quantities[key]) if key in view.quantities else "" for view in roles]
        table.add_row(QUANTITIES[key].label, *cells)
    return table


def _traffic(traffic: Traffic) -> Iterable[RenderableType]:
    from dashboard.report.traffic import TITLE, traffic_header, traffic_line, traffic_rows

    yield heading(TITLE)
    yield Text(traffic_line(traffic))
    table = Table(box=None, padding=(0, 1), show_edge=False, pad_edge=False)
    for number, column in enumerate(traffic_header(traffic)):
        table.add_column(column, justify="right" if number else "left")
    for row in traffic_rows(traffic):
        table.add_row(*map(Text, row))
    yield table


def figure(key: str, estimate: Estimate) -> str:
    """A quantity as people read it, its interval behind it and "assumed" where it is."""
    value = estimate.value
    if not isinstance(value, (int, float)):
        return str(value)
    unit = QUANTITIES[key].unit
    low, high = estimate.low, estimate.high
    ends: Callable[[float], str]
    if key in ("draft_acceptance_rate", "retained_share") or key.startswith("loss_share"):
        text, ends = words.percent(value), partial(_share, digits=words.percent(value).count("."))
    elif key.startswith(("conditional", "break_even_conditional")):
        text, ends = words.rate(value), words.rate
    elif unit == "tokens/step":
        text, ends = words.length(value), words.length
    elif unit == "s":
        text, ends = words.duration(value), words.significant
        scale = 1000 if value < 1 else 1 if value < words.MINUTES_FROM else 1 / 60
        low, high = (None if end is None else scale * end for end in (low, high))
    else:
        text, ends = {"tok/s": words.speed, "x": words.factor}.get(unit, words.significant)(value), words.significant
    bounds = words.interval(low, high, ends)
    return " ".join(part for part in (text, bounds, "(assumed)" if estimate.assumed else "") if part)


def _share(value: float, *, digits: int) -> str:
    return f"{100 * value:.{digits}f}"


MISPREDICTED: Final = "Predicted otherwise than it runs (our fault, or a patched engine; please report)"

_REPAIR_NAMES: Final = {
    "as_it_is": "As it is",
    "acceptance_repaired": "Acceptance repaired",
    "step_cost_repaired": "Step cost repaired",
    "both_repaired": "Both",
}


def _repairs(diagnosis: Diagnosis) -> Table:
    assert diagnosis.payoff is not None
    table = Table(box=None, padding=(0, 1), show_edge=False, pad_edge=False)
    for column, justify in (
        ("", "left"),
        ("length", "right"),
        ("step cost", "right"),
        ("tok/s", "right"),
        ("speed-up", "right"),
        ("", "left"),
    ):
        table.add_column(column, justify=justify)  # type: ignore[arg-type]
    for repair in diagnosis.payoff.repairs:
        table.add_row(
            _REPAIR_NAMES[repair.name],
            words.length(repair.length),
            words.significant(repair.step_cost_ratio),
            words.significant(repair.throughput),
            words.factor(repair.speedup),
            ("pays" if repair.speedup > 1 else "still a loss")
            + (", usual step cost assumed" if repair.assumed else ""),
        )
    table.add_row(
        "No speculation", "1.00", "1.00", words.significant(diagnosis.payoff.baseline_throughput), "x1.00", ""
    )
    return table


def _arguments(changed: list[Argument]) -> Table:
    table = Table(box=None, padding=(0, 1), show_edge=False, pad_edge=False)
    for column in ("flag", "asked", "runs", "where"):
        table.add_column(column, overflow="fold")
    for argument in changed:
        seen = argument.effective is not UNSEEN
        runs = words.value(argument.effective) if seen else f"{words.value(argument.predicted)} (predicted)"
        proof = argument.effective_evidence
        table.add_row(argument.name, words.value(argument.requested), runs, proof.place if proof else "")
    return table


def mispredicted_lines(arguments: Iterable[Argument]) -> list[str]:
    """Flags, of those asked for or about drafts, that run with another value than the rules of the release give."""
    return [
        f"{words.flag(item.name)}: predicted {words.value(item.predicted)}, runs {words.value(item.effective)}"
        for item in arguments
        if item.mispredicted and (item.requested_seen or concerns_drafts(item.name))
    ]


def _readings(diagnosis: Diagnosis) -> Table:
    table = grid()
    for reading in diagnosis.readings:
        text = f"{reading.source}"
        if reading.role:
            text += f" ({reading.role})"
        if reading.lines:
            text += f": {words.lines_read(reading)}"
        for note in reading.notes:
            text += f". {note}"
        table.add_row(" -", Text(text))
    return table
