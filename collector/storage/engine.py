"""Opening a database, and its transactions."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

from sqlalchemy import URL, Connection, Engine, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from collector.domain.errors import StorageError
from collector.storage import schema
from collector.storage.faults import storage_error
from collector.storage.types import dump_json, load_json

BUSY_SECONDS: Final = 15.0
"""How long a writer waits for another one."""
_BEGIN_OPTION: Final = "draftscope_begin"
_WRITER_LOCK: Final = text(
    "SELECT set_config('lock_timeout', :patience, true), "
    "set_config('idle_in_transaction_session_timeout', :idle, true), "
    "pg_advisory_xact_lock(:product, hashtext(current_schema()))"
)
_IDLE: Final = "5s"
"""A writer that does nothing for so long (stopped, or cut off) loses its session, so that others can write."""
_PRODUCT: Final = 0x6472_6166
"""First half of the key of the PostgreSQL lock that a writer holds ("draf")."""


class Database:
    """An open database. Close it, or use it as a context manager."""

    def __init__(self, engine: Engine, *, fence: Callable[[Connection], None] | None = None) -> None:
        """Use :func:`open_database`."""
        self.engine = engine
        self._fence = fence

    def fenced(self, fence: Callable[[Connection], None]) -> Database:
        """The same database; each of its transactions first calls ``fence``, which may raise."""
        return Database(self.engine, fence=fence)

    @property
    def name(self) -> str:
        """The address without its password."""
        return self.engine.url.render_as_string(hide_password=True)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """One unit of work that may write: committed at the end, rolled back on any exception.

        There is one writer at a time: SQLite can do no other, and on PostgreSQL no two processes
        that store the same run can then wait for each other. Units of work are short.

        Raises:
            StorageError: the database refused; nothing of the unit was stored.
        """
        with self._work("BEGIN IMMEDIATE") as connection:
            if connection.dialect.name == "postgresql":
                patience = f"{BUSY_SECONDS * 1000:.0f}ms"
                connection.execute(_WRITER_LOCK, {"patience": patience, "idle": _IDLE, "product": _PRODUCT})
            if self._fence is not None:
                self._fence(connection)
            yield connection

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """One unit of work that only reads, at one moment in time. Writers are not held up.

        Raises:
            StorageError: the database refused.
        """
        with self._work("BEGIN") as connection:
            yield connection

    @contextmanager
    def _work(self, begin: str) -> Iterator[Connection]:
        engine = self.engine.execution_options(**{_BEGIN_OPTION: begin})
        if begin == "BEGIN" and engine.dialect.name == "postgresql":
            engine = engine.execution_options(isolation_level="REPEATABLE READ")
        try:
            with engine.begin() as connection:
                yield connection
        except (SQLAlchemyError, self._driver_error) as error:
            raise storage_error(error, self.engine.url) from error

    @property
    def _driver_error(self) -> type[Exception]:
        """What the driver raises where we call it directly."""
        driver_error: type[Exception] = self.engine.dialect.loaded_dbapi.Error
        return driver_error

    def close(self) -> None:
        """Close all connections."""
        self.engine.dispose()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def open_database(url: str, *, migrate: bool = False) -> Database:
    """Open a database and check its schema.

    ``url`` is ``sqlite:///FILE`` or ``postgresql://USER:PASSWORD@HOST/DATABASE``. SQLite is created
    and upgraded by itself; PostgreSQL, which others may share, only with ``migrate``.

    Raises:
        StorageError: it cannot be reached, opened or written, is damaged, belongs to something
            else or to a newer release, or (PostgreSQL) its schema is older.
    """
    address = _address(url)
    sqlite = address.get_backend_name() == "sqlite"
    engine = _sqlite_engine(address) if sqlite else _postgresql_engine(address)
    database = Database(engine)
    try:
        _bring_up_to_date(database, migrate=migrate or sqlite)
    except SQLAlchemyError as error:
        database.close()
        raise storage_error(error, address) from error
    except BaseException:
        database.close()
        raise
    return database


def stored_schema(url: str) -> tuple[str, str | None]:
    """The address of a database without its password, and the revision of its schema; nothing is changed.

    The revision is ``None`` where there is none yet, or no database.

    Raises:
        StorageError: as :func:`open_database`.
    """
    address = _address(url)
    sqlite = address.get_backend_name() == "sqlite"
    name = address.render_as_string(hide_password=True)
    if sqlite and not Path(str(address.database).removeprefix("file:").partition("?")[0]).exists():
        return name, None
    engine = _sqlite_engine(address) if sqlite else _postgresql_engine(address)
    try:
        return name, schema.current(engine)
    except SQLAlchemyError as error:
        raise storage_error(error, address) from error
    finally:
        engine.dispose()


def _bring_up_to_date(database: Database, *, migrate: bool) -> None:
    found = schema.current(database.engine)
    if found == schema.head():
        return
    if not migrate:
        raise StorageError(
            "the database has no draftscope schema" if found is None else "the database has an older schema",
            why=f"its schema is {found or 'empty'}, this release needs {schema.head()}",
            where=database.name,
            hint="draftscope db upgrade, or draftscope serve --migrate",
        )
    schema.upgrade(database.engine.execution_options(**{_BEGIN_OPTION: "BEGIN IMMEDIATE"}))


def _address(url: str) -> URL:
    try:
        address = make_url(url)
    except (ArgumentError, ValueError) as error:
        raise StorageError(
            "the database address cannot be read",
            why=str(error),
            hint="sqlite:///FILE or postgresql://USER@HOST/DATABASE",
        ) from error
    match address.drivername:
        case "sqlite" | "sqlite+pysqlite":
            if address.database in (None, "", ":memory:"):
                raise StorageError("the database address names no file", where=url, hint="sqlite:///FILE")
            return address.set(drivername="sqlite")
        case "postgresql" | "postgres" | "postgresql+psycopg":
            return address.set(drivername="postgresql+psycopg")
    raise StorageError(
        f"databases of kind {address.drivername!r} are not supported",
        where=address.render_as_string(hide_password=True),
        hint="sqlite:///FILE or postgresql://USER@HOST/DATABASE",
    )


def _sqlite_engine(address: URL) -> Engine:
    folder = Path(str(address.database).removeprefix("file:")).parent
    if not folder.is_dir():
        raise StorageError(
            "the database's folder does not exist", where=str(folder), hint="create it, or give another address"
        )
    engine = create_engine(
        address,
        connect_args={"timeout": BUSY_SECONDS},
        json_serializer=dump_json,
        json_deserializer=load_json,
    )

    @event.listens_for(engine, "connect")
    def prepare(connection: sqlite3.Connection, _: Any) -> None:
        connection.isolation_level = None  # transactions begin where we say, not before the first change
        try:
            connection.execute("PRAGMA auto_vacuum = INCREMENTAL")  # heeded as long as there is no table yet
            connection.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError as error:
            if "readonly" not in str(error):  # a read-only file can still be read
                raise
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute("PRAGMA foreign_keys = ON")

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        connection.exec_driver_sql(connection.get_execution_options().get(_BEGIN_OPTION, "BEGIN"))

    return engine


def _postgresql_engine(address: URL) -> Engine:
    return create_engine(
        address,
        pool_pre_ping=True,
        connect_args={"connect_timeout": 10, "application_name": "draftscope"},
        json_serializer=dump_json,
        json_deserializer=load_json,
    )
