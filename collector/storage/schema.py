"""The schema's version: finding the migrations, asking and upgrading."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Final

from sqlalchemy import Connection, Engine, inspect, text

from collector.domain.errors import StorageError

if TYPE_CHECKING:
    from alembic.config import Config

_VERSION_TABLE: Final = "alembic_version"
_UPGRADE_LOCK: Final = 0x6472_6166_7473_6370
"""Key of the PostgreSQL advisory lock under which the schema is upgraded ("draftscp")."""


@cache
def migrations_folder() -> Path:
    """Where the migrations are: inside the installed package, or at the top of a checkout.

    Raises:
        StorageError: in neither place.
    """
    installed = Path(__file__).parent / "_migrations"
    checkout = Path(__file__).parents[2] / "migrations"
    for folder in (installed, checkout):
        if (folder / "env.py").is_file():
            return folder
    raise StorageError("the database migrations are missing", where=str(installed), hint="install draftscope again")


@cache
def revisions() -> frozenset[str]:
    """All revisions this release knows."""
    return frozenset(revision for revision, _ in _links())


@cache
def head() -> str:
    """The newest revision. Read from the files' text: importing alembic would slow every start."""
    links = _links()
    heads = {revision for revision, _ in links} - {down for _, down in links}
    if len(heads) != 1:
        raise StorageError(f"the migrations have {len(heads)} ends", where=str(migrations_folder()))
    return heads.pop()


def _links() -> list[tuple[str, str | None]]:
    links: list[tuple[str, str | None]] = []
    for path in sorted((migrations_folder() / "versions").glob("*.py")):
        source = path.read_text(encoding="utf-8")
        revision = re.search(r'^revision(?:: str)? = "(\w+)"', source, re.MULTILINE)
        down = re.search(r'^down_revision(?:: str \| None)? = (?:"(\w+)"|None)', source, re.MULTILINE)
        if revision and down:
            links.append((revision[1], down[1]))
    return links


def current(engine: Engine) -> str | None:
    """The revision of a database; ``None`` for an empty one.

    Raises:
        StorageError: it holds tables of something else, or of a newer release.
    """
    with engine.connect() as connection:
        return revision(connection)


def revision(connection: Connection) -> str | None:
    """The same on a connection.

    Raises:
        StorageError: as :func:`current`.
    """
    tables = set(inspect(connection).get_table_names())
    if _VERSION_TABLE not in tables:
        if tables:
            raise StorageError(
                "the database belongs to something else",
                why=f"it holds tables without draftscope's version: {', '.join(sorted(tables)[:5])}",
                where=connection.engine.url.render_as_string(hide_password=True),
                hint="give draftscope a database of its own",
            )
        return None
    found = connection.execute(text(f"SELECT version_num FROM {_VERSION_TABLE}")).scalars().all()  # noqa: S608 - a constant
    if not found:
        return None
    stored = str(found[0])
    if stored not in revisions():
        raise StorageError(
            "the database was made by a newer draftscope",
            why=f"its schema is {stored}; this release knows up to {head()}",
            where=connection.engine.url.render_as_string(hide_password=True),
            hint="upgrade draftscope, or give another database",
        )
    return stored


def upgrade(engine: Engine) -> None:
    """Bring a database to the newest schema, in one transaction. Two processes may race: the second finds it done.

    Raises:
        StorageError: as :func:`current`.
    """
    from alembic import command

    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _UPGRADE_LOCK})
        if revision(connection) != head():
            config = alembic_config()
            config.attributes["connection"] = connection
            command.upgrade(config, "head")


def alembic_config() -> Config:
    """Alembic's settings; no file is needed."""
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(migrations_folder()).replace("%", "%%"))
    return config
