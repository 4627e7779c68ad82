"""``draftscope exporter``: metrics for Prometheus, and nothing else."""

from __future__ import annotations

import typer

from dashboard.cli.console import output
from dashboard.cli.serve import ConfigOption, HostOption, PortOption, listening_on


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(exporter)


def exporter(host: HostOption = None, port: PortOption = None, config: ConfigOption = None) -> None:
    """Serve the metrics of what is stored and judged, for Prometheus, until stopped; nothing is watched, judged or sent."""
    from dashboard.api.security import refuse_open_bind
    from dashboard.database import open_configured
    from dashboard.service import log_to_stderr, run_exporter
    from dashboard.settings import load_settings

    settings = listening_on(load_settings(config), host, port)
    token = settings.service.token
    refuse_open_bind(settings.service.host, token.reveal() if token else None)
    log_to_stderr(settings)
    with open_configured(settings.service.database_url) as database:
        run_exporter(database, settings, announce=_announce)


def _announce(address: str) -> None:
    console = output()
    console.print(f"draftscope exports metrics at {address}/metrics", markup=False, soft_wrap=True)
    console.file.flush()
