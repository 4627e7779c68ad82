"""``draftscope alerts``: what fires, where it is told, silences, and test messages."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from collector.domain.errors import InputError
from dashboard.cli.console import EXIT_FAILED, EXIT_FINE, output
from dashboard.cli.serve import ConfigOption

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dashboard.alert_book import AlertBook

group = typer.Typer(help="Alerts: what fires, channels, deliveries, silences.", no_args_is_help=True)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(group, name="alerts")


@group.command("list")
def list_alerts(
    everything: Annotated[bool, typer.Option("--all", help="Notes too.")] = False, config: ConfigOption = None
) -> None:
    """Findings that are open now, the gravest first, and whom they were told."""
    from collector.domain.findings import Severity
    from dashboard.pages.figures import instant

    with _book(config) as book:
        rows = book.firing(least=Severity.INFO if everything else Severity.WARNING)
    if not rows:
        output().print("Nothing fires.")
        return
    _table(
        ("severity", "rule", "what", "where", "since", "told"),
        [
            (row.severity, row.rule, row.title, f"{row.deployment}, run {row.run_id}", f"{instant(row.since)} UTC",
             f"silence {row.silence_id}" if row.silence_id else ", ".join(row.told) or "nobody")
            for row in rows
        ],
    )  # fmt: skip


@group.command()
def channels(config: ConfigOption = None) -> None:
    """The channels of the settings, and how sending to them went."""
    with _book(config) as book:
        rows = book.channels()
    if not rows:
        output().print("No channel is set. Write [[alerts.channel]] into draftscope.toml.", markup=False)
        return
    _table(
        ("channel", "kind", "to", "hears of", "state", "waiting"),
        [(row.name, row.kind, row.leads_to, row.hears, f"{row.state} {row.last_error}".strip(), str(row.waiting))
         for row in rows],
    )  # fmt: skip


@group.command()
def deliveries(
    channel: Annotated[str | None, typer.Option(help="Of this channel alone.")] = None,
    limit: Annotated[int, typer.Option(help="How many.", min=1, max=1000)] = 20,
    config: ConfigOption = None,
) -> None:
    """The latest messages and what the receivers answered."""
    from dashboard.pages.figures import instant

    with _book(config) as book:
        rows = book.deliveries(channel=channel, limit=limit)
    if not rows:
        output().print("Nothing was sent so far.")
        return
    _table(
        ("when (UTC)", "channel", "event", "what", "status", "tries", "answer"),
        [(instant(row.created_at), row.channel, row.event, row.title, row.status, str(row.attempts), row.answer)
         for row in rows],
    )  # fmt: skip


@group.command("test")
def send_test(
    channel: Annotated[str | None, typer.Argument(help="Name of a channel; default: all.")] = None,
    config: ConfigOption = None,
) -> None:
    """Send a test message and print what the receiver answered; ends with 2 where it did not arrive."""
    with _book(config) as book:
        names = [channel] if channel else [row.name for row in book.channels()]
        if not names:
            raise InputError("no alert channel is set", hint="write [[alerts.channel]] into draftscope.toml")
        rows = [book.test(name) for name in names]
    for row in rows:
        arrived = "arrived" if row.status == "sent" else "did not arrive"
        output().print(f"{row.channel}: {arrived}, {row.answer}", markup=False, soft_wrap=True)
    raise typer.Exit(EXIT_FINE if all(row.status == "sent" for row in rows) else EXIT_FAILED)


@group.command()
def silence(
    rule: Annotated[str, typer.Option(help="Rule by code or name; * stands for anything.")] = "",
    deployment: Annotated[str, typer.Option(help="Deployment; * stands for anything.")] = "",
    run: Annotated[str, typer.Option(help="Number of a run.")] = "",
    label: Annotated[list[str] | None, typer.Option(help="Label of runs, NAME=TEXT; repeatable.")] = None,
    lasting: Annotated[str, typer.Option("--for", help="How long: 30m, 2h, 1d.")] = "2h",
    comment: Annotated[str, typer.Option(help="Why.")] = "",
    config: ConfigOption = None,
) -> None:
    """Tell nobody of findings that fit all that is given, for a while."""
    from dashboard.alert_book import duration
    from dashboard.pages.figures import instant

    pairs = dict(_pair(text) for text in label or ())
    with _book(config) as book:
        made = book.silence(
            seconds=duration(lasting), rule=rule, deployment=deployment, run=run, labels=pairs, comment=comment
        )
    output().print(f"silence {made.id} holds until {instant(made.ends_at)} UTC", markup=False)


@group.command()
def silences(config: ConfigOption = None) -> None:
    """The silences that hold now."""
    from dashboard.pages.figures import instant

    with _book(config) as book:
        rows = book.silences()
    if not rows:
        output().print("No silence holds.")
        return
    _table(
        ("silence", "rule", "deployment", "run", "labels", "until (UTC)", "why"),
        [(str(row.id), row.rule, row.deployment, row.run, " ".join(f"{k}={v}" for k, v in row.labels.items()),
          instant(row.ends_at), row.comment) for row in rows],
    )  # fmt: skip


@group.command()
def unsilence(
    number: Annotated[int, typer.Argument(help="Number of a silence.", metavar="SILENCE")], config: ConfigOption = None
) -> None:
    """End a silence now."""
    with _book(config) as book:
        book.end_silence(number)
    output().print(f"silence {number} has ended")


@contextmanager
def _book(config: Path | None) -> Iterator[AlertBook]:
    from dashboard.alert_book import AlertBook
    from dashboard.alerts import Alerting
    from dashboard.database import open_configured
    from dashboard.settings import load_settings

    settings = load_settings(config)
    with open_configured(settings.service.database_url) as database:
        yield AlertBook(database, Alerting(settings.channels, settings.public_url))


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not name or not sign:
        raise InputError(f"--label {text!r} is not NAME=TEXT", hint="--label team=search")
    return name, value


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, padding=(0, 2, 0, 0), show_edge=False, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*map(Text, row))
    output().print(table)
