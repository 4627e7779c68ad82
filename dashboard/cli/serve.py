"""``draftscope serve`` and ``draftscope demo``: the service in the foreground."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from dashboard.cli.console import output

if TYPE_CHECKING:
    from dashboard.settings import Settings

ConfigOption = Annotated[
    Path | None, typer.Option("--config", help="Settings file; default: draftscope.toml here or in the user's folder.")
]
HostOption = Annotated[str | None, typer.Option(help="Address to listen on; default 127.0.0.1.")]
PortOption = Annotated[
    int | None, typer.Option(help="Port to listen on; default 8787; 0 takes a free one.", min=0, max=65535)
]

MigrateOption = Annotated[
    bool, typer.Option("--migrate", help="Bring a PostgreSQL database to this release's schema; SQLite always is.")
]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.command()(serve)
    app.command()(demo)


def serve(
    host: HostOption = None, port: PortOption = None, config: ConfigOption = None, migrate: MigrateOption = False
) -> None:
    """Serve dashboard, API and metrics, watch targets, judge what comes in and send alerts, until stopped."""
    from dashboard.api.security import refuse_open_bind
    from dashboard.database import open_configured
    from dashboard.service import log_to_stderr, run_service
    from dashboard.settings import load_settings

    settings = listening_on(load_settings(config), host, port)
    token = settings.service.token
    refuse_open_bind(settings.service.host, token.reveal() if token else None)
    log_to_stderr(settings)
    with open_configured(settings.service.database_url, migrate=migrate) as database:
        run_service(
            database,
            settings,
            announce=lambda address: _announce(address, f"Data: {database.name}"),
            read_again=lambda: load_settings(config),
        )


def demo(host: HostOption = None, port: PortOption = None) -> None:
    """Serve recorded sample runs from a data folder of their own; your data is not touched and no alert is sent."""
    from collector.storage.engine import open_database
    from dashboard.api.security import refuse_open_bind
    from dashboard.database import data_folder, embedded_in, made
    from dashboard.samples import load_samples
    from dashboard.service import log_to_stderr, run_service
    from dashboard.settings import load_settings

    settings = listening_on(replace(load_settings(), channels=(), targets=()), host, port)
    token = settings.service.token
    refuse_open_bind(settings.service.host, token.reveal() if token else None)
    log_to_stderr(settings)
    with open_database(embedded_in(made(data_folder() / "demo"))) as database:
        load_samples(database, settings.thresholds)
        run_service(database, settings, announce=lambda address: _announce(address, "Data: sample runs"))


def listening_on(settings: Settings, host: str | None, port: int | None) -> Settings:
    """The settings with what the command line says over them."""
    service = settings.service
    if host is not None:
        service = replace(service, host=host)
    if port is not None:
        service = replace(service, port=port)
    return replace(settings, service=service)


def _announce(address: str, data: str) -> None:
    console = output()
    console.print(f"draftscope is at {address}", markup=False, soft_wrap=True)
    console.print(data, markup=False, soft_wrap=True)
    console.file.flush()
