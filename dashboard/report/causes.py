"""The causes in the text report: what could be behind it, what would tell them apart, what is known upstream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from analysis.causes.base import Experiment, Reason
from analysis.causes.weighing import NONE_OF_THESE, WeighedCause
from analysis.diagnosis import Diagnosis
from dashboard.report.pieces import heading, listed

_STYLES: Final = {"certain": "bold red", "likely": "bold", "possible": ""}


def causes_parts(diagnosis: Diagnosis) -> Iterator[RenderableType]:
    """The parts about causes; none where nothing is wrong."""
    if diagnosis.causes:
        yield heading("What could be behind it")
        yield _causes(diagnosis.causes, {cause.id for cause in diagnosis.leading_causes})
    experiments = [cause.experiment for cause in diagnosis.leading_causes if cause.experiment is not None]
    if experiments:
        yield heading("What would tell them apart" if len(diagnosis.causes) > 1 else "What would confirm it")
        yield _experiments(experiments)
    if diagnosis.known_faults:
        yield heading("Known upstream")
        yield listed(
            f"{match.standing.value.capitalize()}: {match.fault.title} ({match.fault.link}). {match.fault.workaround}"
            for match in diagnosis.known_faults
        )


def cause_line(reason: Reason) -> str:
    """A reason with the rule that says it."""
    return f"{reason.text} ({reason.rule})" if reason.rule else reason.text


def refuted_lines(diagnosis: Diagnosis) -> Iterator[str]:
    """Causes that the evidence rules out, with it."""
    for cause in diagnosis.refuted_causes:
        why = next(cause_line(reason) for reason in cause.reasons_against if reason.refuting)
        yield f"{cause.title}: {why}"


def _causes(causes: Iterable[WeighedCause], leading: set[str]) -> Table:
    """Every cause; the reasons of the leading ones, the best reason of the others."""
    table = Table.grid(padding=(0, 1))
    for _ in range(2):
        table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for number, cause in enumerate(causes, 1):
        if cause.id == NONE_OF_THESE:
            table.add_row(" -", "", Text(f"{cause.title}: {'; '.join(reason.text for reason in cause.reasons_for)}."))
            continue
        table.add_row(f" {number}.", Text(cause.standing, _STYLES[cause.standing]), Text(cause.title, "bold"))
        shown = cause.reasons_for if cause.id in leading else cause.reasons_for[:1]
        for mark, reasons in (("+", shown), ("-", cause.reasons_against)):
            for reason in reasons:
                table.add_row("", "", Text(f"{mark} {cause_line(reason)}"))
    return table


def _experiments(experiments: Iterable[Experiment]) -> Table:
    table = Table.grid(padding=(0, 1))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for number, experiment in enumerate(experiments, 1):
        table.add_row(f" {number}.", Text(f"{experiment.what.removesuffix('.')}."))
        for command in experiment.commands:
            table.add_row("", Text(f"$ {command}", style="cyan"))
        for outcome, meaning in experiment.outcomes.items():
            table.add_row("", Text(f"If {outcome}: {meaning}."))
    return table
