"""``draftscope doctor``: what works, what does not, and what to try."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from dashboard.cli.console import EXIT_FINDINGS, EXIT_FINE, output
from dashboard.cli.serve import ConfigOption

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dashboard.examination import Check


class Form(StrEnum):
    """Forms of the list."""

    TEXT = "text"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(doctor)


def doctor(
    config: ConfigOption = None,
    form: Annotated[Form, typer.Option("--format", help="Form of the list.")] = Form.TEXT,
) -> None:
    """Look at settings, database, every target and the formats: what works, what does not, and what to try."""
    from collector.domain.conditions import Condition
    from dashboard.examination import document, examine

    checks = examine(config)
    if form is Form.JSON:
        import json

        sys.stdout.write(json.dumps(document(checks), indent=2, ensure_ascii=False) + "\n")
    else:
        _print(checks)
    failed = any(check.seen.condition is Condition.ERROR for check in checks)
    raise typer.Exit(EXIT_FINDINGS if failed else EXIT_FINE)


def _print(checks: Sequence[Check]) -> None:
    from rich.table import Table

    from collector.domain.conditions import Condition

    styles = {
        Condition.ERROR: "bold red", Condition.WARNING: "yellow", Condition.PARTLY: "yellow", Condition.MISSING: "dim"
    }  # fmt: skip
    about = ""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for check in checks:
        if check.about != about:
            about = check.about
            table.add_row(f"[bold]{_plain(about)}[/bold]")
        seen = check.seen
        style = styles.get(seen.condition, "")
        condition = f"[{style}]{seen.condition.value}[/{style}]" if style else seen.condition.value
        table.add_row(f"  {_plain(seen.name)}", condition, _plain(seen.says))
        if seen.hint:
            table.add_row("", "", _plain(f"try: {seen.hint}"))
    output().print(table)


def _plain(text: str) -> str:
    from rich.markup import escape

    return escape(text)
