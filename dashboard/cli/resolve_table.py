"""``draftscope resolve-table``: everything that is known of what an engine makes of its flags."""

from __future__ import annotations

import sys
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from collector.domain.versions import ReleaseRange
from dashboard.cli.bundles import release_of
from dashboard.cli.console import errors, output

if TYPE_CHECKING:
    from analysis.resolve.table import Row


class Form(StrEnum):
    """Forms of the table."""

    TEXT = "text"
    JSON = "json"
    MARKDOWN = "markdown"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command(name="resolve-table")(resolve_table)


def resolve_table(
    engine: Annotated[str, typer.Argument(help="Engine, for instance sglang.")],
    release: Annotated[str | None, typer.Argument(help="Release, for instance 0.5.9; all without it.")] = None,
    form: Annotated[Form, typer.Option("--format", help="Form of the table.")] = Form.TEXT,
) -> None:
    """List the steps in which an engine changes its flags, in the order it takes them."""
    from analysis.resolve import known_releases
    from analysis.resolve.table import COLUMNS, markdown, rows

    version = release_of(release, "RELEASE")
    found = rows(engine, version)
    read = known_releases(engine)
    if version is not None and not (read[0] <= version and version in ReleaseRange(None, read[-1])):
        errors().print(
            f"note: {version} lies outside the releases that were read, {read[0]} to {read[-1]}", markup=False
        )
    if form is Form.MARKDOWN:
        sys.stdout.write(markdown(found))
    elif form is Form.JSON:
        import json

        steps = [dict(zip(COLUMNS, row.cells(), strict=True)) for row in found]
        document = {"schema": "draftscope.resolve-table/1", "engine": engine, "release": release, "steps": steps}
        sys.stdout.write(json.dumps(document, indent=2, ensure_ascii=False) + "\n")
    else:
        _print(found)


def _print(found: tuple[Row, ...]) -> None:
    """One paragraph a step: wide tables wrap badly on a terminal."""
    from rich.text import Text

    console = output()
    for row in found:
        console.print(Text.assemble((f"{row.id} {row.title}", "bold"), (f"  {row.releases}", "dim")))
        for label, text in (
            ("when", row.condition),
            ("then", row.effect),
            ("prints", row.announced.strip()),
            ("source", row.source),
        ):
            console.print(Text.assemble((f"  {label:<7}", "dim"), text))
