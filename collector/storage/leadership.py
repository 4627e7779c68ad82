"""Which of several processes collects: one at a time, and nobody who lost that can still write.

On PostgreSQL the collector holds an advisory lock on a session of its own and gives a sign of life every
few seconds. The lock goes with the session, so a standby has it at once when the collector dies. One that is silent for
too long (stopped, or cut off while the server does not notice) loses its sessions to the standby. Every holder gets
a number greater than those before, and each of its transactions looks first whether that is still the greatest:
whoever wakes up later is told so instead of writing.

SQLite is one machine's: there the lock is one on a file, and a second collector is refused.
"""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path
from typing import IO, Any, Final

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from collector.domain.errors import StorageError
from collector.storage.engine import Database
from collector.storage.faults import storage_error
from collector.storage.locking import lock_for_this_process

RENEW_SECONDS: Final = 2.0
"""Between two signs of life of the collector, and between two looks of a standby."""
SILENT_SECONDS: Final = 8.0
"""Without a sign of life for so long a collector loses its place; then a standby takes over within 15 s in all."""

_NAME: Final = "collector"
_LOCK: Final = "(:product, hashtext(current_schema() || '.collector'))"
_PRODUCT: Final = 0x6472_6167
"""First half of the lock's key ("drag"); a writer's is another (:mod:`collector.storage.engine`)."""


class Leadership:
    """The right to collect into a database. ``database`` refuses every transaction while this process has it not."""

    def __init__(self, database: Database) -> None:
        """Nothing is asked yet."""
        self._plain = database
        self._sqlite = database.engine.dialect.name == "sqlite"
        self._holder = f"{socket.gethostname()} {os.getpid()} {secrets.token_hex(4)}"
        self._session: Connection | None = None
        self._file: IO[bytes] | None = None
        self.token: int | None = None
        self.database = database.fenced(self._check)

    def take(self) -> bool:
        """Become the collector if there is none; whether this process is it now.

        Raises:
            StorageError: the database refused; on SQLite also: another process collects into it.
        """
        if self.token is None:
            if self._sqlite:
                self._lock_file()
            elif not self._lock_session():
                return False
            try:
                self.token = self._number()
            except BaseException:
                self.resign()
                raise
        return True

    def renew(self) -> None:
        """Give a sign of life.

        Raises:
            StorageError: this process is not the collector any more, or cannot tell.
        """
        if self._session is None:
            return
        statement = text("UPDATE leases SET renewed_at = clock_timestamp() WHERE name = :name AND token = :token")
        found = self._ask(statement, name=_NAME, token=self.token)
        if found.rowcount != 1:
            raise _superseded(self._plain.name)

    def resign(self) -> None:
        """Let another process collect."""
        self.token = None
        session, self._session = self._session, None
        if session is not None:
            session.invalidate()  # the lock goes with the session
            session.close()
        if self._file is not None:
            self._file.close()
            self._file = None

    def _check(self, connection: Connection) -> None:
        query = text("SELECT token FROM leases WHERE name = :name")
        newest = connection.execute(query, {"name": _NAME}).scalar_one_or_none()
        if self.token is None or newest != self.token:
            raise _superseded(self._plain.name)

    def _number(self) -> int:
        """A number greater than those of all holders before."""
        postgresql = not self._sqlite
        moment = "clock_timestamp()" if postgresql else "strftime('%Y-%m-%dT%H:%M:%f000Z', 'now')"
        statement = text(
            f"INSERT INTO leases (name, token, holder, renewed_at) VALUES (:name, 1, :holder, {moment}) "  # noqa: S608
            "ON CONFLICT (name) DO UPDATE SET token = leases.token + 1, holder = excluded.holder, "
            "renewed_at = excluded.renewed_at RETURNING token"
        )
        with self._plain.transaction() as connection:
            return int(connection.execute(statement, {"name": _NAME, "holder": self._holder}).scalar_one())

    # ---- PostgreSQL

    def _lock_session(self) -> bool:
        try:
            self._session = self._plain.engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        except SQLAlchemyError as error:
            raise storage_error(error, self._plain.engine.url) from error
        try:
            self._ask(text("SELECT set_config('application_name', :name, false)"), name=self._application)
            if self._ask(text(f"SELECT pg_try_advisory_lock{_LOCK}"), product=_PRODUCT).scalar_one():
                return True
            self._end_silent_holder()
        except BaseException:
            self.resign()
            raise
        self.resign()
        return False

    @property
    def _application(self) -> str:
        return f"draftscope collector {self._holder}"[:63]

    def _end_silent_holder(self) -> None:
        """End the session of a collector that gave no sign of life; its lock is free from then on."""
        ended = text(
            "SELECT pg_terminate_backend(locks.pid) FROM pg_locks AS locks, leases "
            "WHERE locks.locktype = 'advisory' AND locks.granted AND locks.objsubid = 2 "
            "AND locks.database = (SELECT oid FROM pg_database WHERE datname = current_database()) "
            "AND locks.classid = CAST(:product AS bigint)::oid "
            "AND locks.objid = (hashtext(current_schema() || '.collector')::bigint & 4294967295)::oid "
            "AND leases.name = :name AND leases.renewed_at < clock_timestamp() - make_interval(secs => :silent)"
        )
        self._ask(ended, product=_PRODUCT, name=_NAME, silent=SILENT_SECONDS)

    def _ask(self, statement: Any, **values: Any) -> Any:
        assert self._session is not None
        try:
            return self._session.execute(statement, values)
        except SQLAlchemyError as error:
            raise storage_error(error, self._plain.engine.url) from error

    # ---- SQLite

    def _lock_file(self) -> None:
        """Lock a file beside the database.

        Raises:
            StorageError: another process holds it, or it cannot be made.
        """
        path = Path(f"{str(self._plain.engine.url.database).removeprefix('file:').partition('?')[0]}-collector")
        try:
            self._file = path.open("ab")
            lock_for_this_process(self._file)
        except BlockingIOError:
            self.resign()
            raise StorageError(
                "another draftscope collects into this database",
                why="a SQLite file has one collector at a time",
                where=str(path),
                hint="stop the other service, or use PostgreSQL for several",
            ) from None
        except OSError as error:
            self.resign()
            raise StorageError(
                "the collector's lock cannot be made",
                why=error.strerror or "",
                where=str(path),
                hint="check the permissions of the folder",
            ) from error


def _superseded(where: str) -> StorageError:
    return StorageError(
        "another process collects into this database now",
        why="this one was silent for too long, or lost its connection",
        where=where,
        hint="nothing to do: it stands by from here on",
    )
