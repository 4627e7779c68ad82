"""``draftscope rules`` and ``draftscope explain``: the catalogue."""

from __future__ import annotations

from typing import Annotated

import typer

from dashboard.cli.console import output


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(rules)
    app.command()(explain)


def rules() -> None:
    """List every rule: id, severity, name and what it says."""
    from rich.table import Table

    from analysis.base import catalogue

    table = Table(box=None, padding=(0, 1), show_edge=False, pad_edge=False)
    for column in ("id", "severity", "name and what it says"):
        table.add_column(column, overflow="fold")
    for rule in catalogue():
        table.add_row(rule.id, rule.severity.word, f"{rule.name}: {rule.page()['Says']}")
    output().print(table)


def explain(rule: Annotated[str, typer.Argument(help="Id or name, for instance FLG001.")]) -> None:
    """Show a rule's page."""
    from analysis.base import find_rule

    found = find_rule(rule)
    console = output()
    console.print(f"{found.id} {found.name}", style="bold")
    console.print(f"severity {found.severity.word}, question {found.question}, since {found.since}", style="dim")
    for heading, text in found.page().items():
        if heading != "Says":
            console.print(f"\n{heading}", style="bold")
        console.print(text, markup=False)
    console.print(f"\nReads: {', '.join(name.replace('_', ' ') for name in found.inputs())}", style="dim")
