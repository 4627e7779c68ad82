"""What went wrong in the database, in words."""

from __future__ import annotations

from typing import Final

from sqlalchemy import URL
from sqlalchemy.exc import DBAPIError

from collector.domain.errors import StorageError

_SQLITE: Final = (
    ("database is locked", "another process is writing to the database", "try again, or stop the other process"),
    ("readonly database", "the database cannot be written to", "check the permissions of the file and its folder"),
    (
        "unable to open database file",
        "the database file cannot be opened",
        "check that its folder exists and can be written to",
    ),
    ("file is not a database", "the file is not a draftscope database", "give another file, or restore it from a copy"),
    ("malformed", "the database file is damaged", "restore it from a copy"),
    ("disk is full", "the disk is full", "free space on it; nothing that was committed is lost"),
    ("disk i/o error", "the disk does not answer as it should", "check the disk and the permissions of the folder"),
)
_POSTGRESQL: Final = (
    ("password authentication failed", "PostgreSQL refuses the user or password", "check DRAFTSCOPE_DATABASE_URL"),
    (
        "does not exist",
        "PostgreSQL does not know the database, user or table",
        "create the database, then draftscope db upgrade",
    ),
    ("read-only transaction", "the PostgreSQL server is read-only", "connect to the primary server"),
    ("permission denied", "the PostgreSQL user may not do this", "grant it the rights on the schema"),
    ("lock timeout", "another process is writing to the database", "try again, or stop the other process"),
    ("deadlock", "two processes waited for each other in the database", "try again"),
)


def storage_error(error: Exception, url: URL) -> StorageError:
    """The error to show for what SQLAlchemy or the driver raised; the address is shown without its password."""
    cause = str(error.orig) if isinstance(error, DBAPIError) else str(error)
    cause = " ".join(cause.split())
    where = url.render_as_string(hide_password=True)
    sqlite = url.get_backend_name() == "sqlite"
    for needle, what, hint in _SQLITE if sqlite else _POSTGRESQL:
        if needle in cause.lower():
            return StorageError(what, why=cause, where=where, hint=hint)
    if not sqlite and _unreachable(error, cause):
        return StorageError(
            "PostgreSQL cannot be reached",
            why=cause,
            where=where,
            hint="check that the server runs and the address is right",
        )
    return StorageError("the database refused a statement", why=cause, where=where)


def _unreachable(error: Exception, cause: str) -> bool:
    if isinstance(error, DBAPIError) and error.connection_invalidated:
        return True
    return any(word in cause.lower() for word in ("connection", "resolve host", "server closed", "terminating"))
