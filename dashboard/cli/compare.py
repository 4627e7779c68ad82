"""``draftscope compare``: two or more runs side by side."""

from __future__ import annotations

import json
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dashboard.cli.console import output
from dashboard.cli.serve import ConfigOption

if TYPE_CHECKING:
    from rich.table import Table

    from analysis.compare import Against, Comparison
    from collector.bundle import BundleOptions
    from collector.domain.runs import Bundle


class Form(StrEnum):
    """Forms of a comparison."""

    TEXT = "text"
    JSON = "json"


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(compare)


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(
            help="Two or more logs or bundle folders, or numbers of stored runs; the first is the reference.",
            metavar="RUN...",
        ),
    ],
    training: Annotated[Path | None, typer.Option(help="What the draft's validation printed.")] = None,
    validation_accuracy: Annotated[
        str | None, typer.Option(help="Validation accuracy, or one a position.", metavar="X[,X...]")
    ] = None,
    form: Annotated[Form, typer.Option("--format", help="Form of the report.")] = Form.TEXT,
    config: ConfigOption = None,
) -> None:
    """Say what differs between runs, whether it is more than chance, and whether changes took effect."""
    from analysis.compare import compare as compare_bundles
    from collector.bundle import BundleOptions
    from dashboard.stated import accuracies

    options = BundleOptions(training=training, validation_accuracy=accuracies(validation_accuracy))
    bundles = [bundle_of(path, options, config) for path in runs]
    comparison = compare_bundles(bundles, labels(runs))
    if form is Form.JSON:
        sys.stdout.write(json.dumps(comparison.document(), indent=2, ensure_ascii=False, allow_nan=False) + "\n")
        return
    print_comparison(comparison)


def bundle_of(run: Path, options: BundleOptions, config: Path | None) -> Bundle:
    """The run of a file, a folder, or, where there is none of that name, the stored run of a number.

    Raises:
        DraftscopeError: it cannot be read, or no run of that number is stored.
    """
    from collector.bundle import read_bundle

    if run.exists() or not str(run).isdecimal():
        return read_bundle([run], options)
    from collector.ingest import load_for_judgement
    from dashboard.database import open_configured
    from dashboard.settings import load_settings

    with open_configured(load_settings(config).service.database_url) as database, database.reading() as connection:
        return load_for_judgement(connection, int(str(run)))


def labels(paths: list[Path]) -> list[str]:
    """The shortest endings of the paths that tell them apart."""
    parts = [path.resolve().parts for path in paths]
    for length in range(1, max(map(len, parts)) + 1):
        short = ["/".join(part[-length:]) for part in parts]
        if len(set(short)) == len(short):
            return short
    return [f"{path} ({number})" for number, path in enumerate(paths, 1)]


def print_comparison(comparison: Comparison) -> None:
    """The effect of changes first, then figures, then the ranking."""
    console = output()
    for item in comparison.against:
        console.print(f"{item.label} against {comparison.labels[0]}", style="bold")
        for effect in item.effects:
            word = {"yes": "took effect", "no": "did NOT take effect", "cannot tell": "cannot tell"}[effect.effect]
            line = f" {effect.what} {effect.before} → {effect.after}: {word}; {effect.why}"
            console.print(line, markup=False, style="bold red" if effect.effect == "no" else "")
        console.print(_table(item))
        console.print()
    if len(comparison.ranking) > 1:
        from dashboard.report.diagnosis import figure

        console.print(f"Ranking by {comparison.ranked_by.replace('_', ' ')}", style="bold")
        for place, ranked in enumerate(comparison.ranking, 1):
            tied = f", not told apart from {', '.join(ranked.tied)}" if ranked.tied else ""
            console.print(
                f" {place}. {ranked.label}: {figure(comparison.ranked_by, ranked.figure)}{tied}", markup=False
            )


def _table(item: Against) -> Table:
    from rich.table import Table

    from collector.domain.quantities import QUANTITIES
    from dashboard.report.diagnosis import figure

    table = Table(box=None, padding=(0, 1), show_edge=False, pad_edge=False)
    for column in ("", "before", "after", "difference", ""):
        table.add_column(column, overflow="fold")
    for one in item.differences:
        change = _change(one.key, one.change, one.half)
        table.add_row(
            QUANTITIES[one.key].label,
            figure(one.key, one.before) if one.before else "",
            figure(one.key, one.after) if one.after else "",
            change,
            f"{one.word}{', ' + one.note if one.note else ''}",
        )
    return table


def _change(key: str, change: float | None, half: float | None) -> str:
    """A difference with its interval, in the unit that the figure itself is shown in."""
    from analysis import words
    from collector.domain.quantities import QUANTITIES

    if change is None:
        return ""
    scale, unit = (1_000, " ms") if QUANTITIES[key].unit == "s" else (1, "")
    ends = () if half is None else (scale * (change - half), scale * (change + half))
    interval = f" {words.interval(*ends, words.signed)}" if ends else ""
    return f"{words.signed(scale * change)}{unit}{interval}"
