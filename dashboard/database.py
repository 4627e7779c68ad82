"""The database that the settings name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from collector.domain.errors import StorageError
from dashboard.masked import SecretUrl

if TYPE_CHECKING:
    from collector.storage.engine import Database

FILE_NAME = "draftscope.db"


def open_configured(url: SecretUrl | None, *, migrate: bool = False) -> Database:
    """Open the database of an address, or the embedded one in the user's data folder.

    Raises:
        StorageError: as :func:`collector.storage.engine.open_database`.
    """
    from collector.storage.engine import open_database

    return open_database(url.reveal() if url else embedded_in(made(data_folder())), migrate=migrate)


def address_of_database(url: SecretUrl | None) -> str:
    """The address that :func:`open_configured` opens; nothing is made."""
    return url.reveal() if url else embedded_in(data_folder())


def data_folder() -> Path:
    """The user's data folder of the product."""
    from platformdirs import user_data_path

    return user_data_path("draftscope", appauthor=False)


def streams_folder(database: str) -> Path:
    """Where logs that come from elsewhere are kept while they are read into the database of this name."""
    import hashlib

    return data_folder() / "streams" / hashlib.sha256(database.encode()).hexdigest()[:16]


def pushed_folder(database: str) -> Path:
    """Where logs that senders bring are kept while they are read into the database of this name."""
    return streams_folder(database) / "pushed"


def embedded_in(folder: Path) -> str:
    """The address of the embedded database in a folder."""
    return f"sqlite:///{folder / FILE_NAME}"


def made(folder: Path) -> Path:
    """The folder, made if it is not there; other users may not look into it.

    Raises:
        StorageError: it cannot be made.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(
            "the data folder cannot be made",
            why=error.strerror or "",
            where=str(folder),
            hint="set DRAFTSCOPE_DATABASE_URL to a place that can be written to",
        ) from error
    return folder
