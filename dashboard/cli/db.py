"""``draftscope db``: care of the database."""

from __future__ import annotations

import typer

from dashboard.cli.console import output
from dashboard.cli.serve import ConfigOption


def register(app: typer.Typer) -> None:
    """Add the group."""
    group = typer.Typer(no_args_is_help=True, help="Care of the database.", rich_markup_mode=None)
    group.command()(upgrade)
    group.command()(current)
    app.add_typer(group, name="db")


def upgrade(config: ConfigOption = None) -> None:
    """Bring the database to the schema of this release; safe to repeat."""
    from collector.storage.schema import head
    from dashboard.database import open_configured
    from dashboard.settings import load_settings

    with open_configured(load_settings(config).service.database_url, migrate=True) as database:
        output().print(f"{database.name} has schema {head()}", markup=False, soft_wrap=True)


def current(config: ConfigOption = None) -> None:
    """Show the database and the release of its schema; it is not changed."""
    from collector.storage.engine import stored_schema
    from collector.storage.schema import head
    from dashboard.database import address_of_database
    from dashboard.settings import load_settings

    name, found = stored_schema(address_of_database(load_settings(config).service.database_url))
    state = "newest" if found == head() else f"this release needs {head()}: draftscope db upgrade"
    output().print(f"{name} has {f'schema {found}' if found else 'no schema'} ({state})", markup=False, soft_wrap=True)
