"""``draftscope targets``: which engines are watched, and what can be seen of each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from collector.domain.errors import InputError
from dashboard.cli.console import EXIT_FAILED, EXIT_FINE, errors, output
from dashboard.cli.serve import ConfigOption

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from collector.domain.conditions import Aspect
    from collector.domain.errors import DraftscopeError
    from dashboard.targets import Found

group = typer.Typer(help="Engines that are watched: [[targets]] of the settings.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(group, name="targets")


@group.command("list")
def list_targets(config: ConfigOption = None) -> None:
    """Every address that the settings name, and where it comes from."""
    from rich.table import Table

    from dashboard.settings import load_settings
    from dashboard.targets import find_all

    found, problems = find_all(load_settings(config).targets)
    if not found and not problems:
        output().print(
            'No target is set. Write [[targets]] with url = "http://HOST:PORT" into draftscope.toml.', markup=False
        )
        return
    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, pad_edge=False)
    for column in ("address", "from", "every", "deployment", "labels"):
        table.add_column(column, overflow="fold")
    for item in found:
        labels = " ".join(f"{name}={value}" for name, value in sorted(item.labels.items()))
        place = "the settings" if item.target.url else item.target.place
        table.add_row(item.shown, place, f"{item.target.interval_seconds:g} s", item.target.deployment, labels)
    output().print(table)
    _tell(problems.values())


@group.command("test")
def probe_targets(
    url: Annotated[str | None, typer.Argument(help="Address of one engine; default: all of the settings.")] = None,
    api_key: Annotated[
        str | None,
        typer.Option(help="The key the engine was started with.", envvar="DRAFTSCOPE_API_KEY", show_envvar=True),
    ] = None,
    ca_file: Annotated[Path | None, typer.Option(help="Certificates to trust, in PEM form.")] = None,
    config: ConfigOption = None,
) -> None:
    """Say what can be seen of an engine, what cannot, and how to turn it on; nothing is stored."""
    from dashboard.masked import Secret
    from dashboard.settings import load_settings
    from dashboard.targets import Found, Target, find_all

    problems: dict[Target, DraftscopeError] = {}
    if url is not None:
        key = Secret(api_key) if api_key else None
        found = [Found(url, Target(url=url, api_key=key, ca_file=str(ca_file or "")))]
    else:
        found, problems = find_all(load_settings(config).targets)
    if not found and not problems:
        raise InputError("there is no target to test", hint="draftscope targets test http://gpu7:30000")
    _tell(problems.values())
    failed = [item for item in found if not _answers(item)]
    raise typer.Exit(EXIT_FAILED if failed or problems else EXIT_FINE)


def _answers(found: Found) -> bool:
    """Test one address and print what came out; whether its metrics can be read."""
    from collector.domain.conditions import Condition
    from collector.sources.probe import probe
    from collector.sources.scrape import Scraper

    output().print(found.shown, markup=False, style="bold")
    with found.endpoint() as endpoint:
        aspects = probe(Scraper(endpoint))
    _print(aspects)
    return all(aspect.condition is not Condition.ERROR for aspect in aspects)


def _print(aspects: Sequence[Aspect]) -> None:
    from rich.table import Table

    table = Table.grid(padding=(0, 2))
    for aspect in aspects:
        table.add_row(f"  {aspect.name}", aspect.condition.value, aspect.says)
        if aspect.hint:
            table.add_row("", "", f"try: {aspect.hint}")
    output().print(table)


def _tell(problems: Iterable[DraftscopeError]) -> None:
    for problem in problems:
        errors().print(f"note: {problem}", markup=False)
