"""One process collects; who lost that can write no more."""

from __future__ import annotations

import time

import pytest
from sqlalchemy import select, text

from collector.domain.errors import StorageError
from collector.storage.engine import Database, open_database
from collector.storage.leadership import Leadership
from collector.storage.sources import source_at
from collector.storage.tables import SOURCES


def write(leadership: Leadership, name: str) -> None:
    with leadership.database.transaction() as connection:
        source_at(connection, name, at=1.0)


def take_over(leadership: Leadership) -> None:
    """Become the collector as soon as the server has noticed that the one before is gone."""
    deadline = time.monotonic() + 60
    while not leadership.take():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def sources(database: Database) -> list[str]:
    with database.reading() as connection:
        return list(connection.execute(select(SOURCES.c.path).order_by(SOURCES.c.id)).scalars())


def test_a_standby_collects_once_the_collector_is_gone(postgres_url: str) -> None:
    with open_database(postgres_url, migrate=True) as one, open_database(postgres_url) as other:
        first, second = Leadership(one), Leadership(other)
        assert first.take()
        assert first.take()
        first.renew()
        write(first, "first")
        assert not second.take()
        with pytest.raises(StorageError, match="another process collects"):
            write(second, "second, too early")
        first.resign()
        take_over(second)
        write(second, "second")
        with pytest.raises(StorageError, match="another process collects"):
            write(first, "first, too late")
        assert sources(one) == ["first", "second"]
        second.resign()


def test_a_silent_collector_loses_its_place_and_cannot_write_any_more(postgres_url: str) -> None:
    with open_database(postgres_url, migrate=True) as one, open_database(postgres_url) as other:
        first, second = Leadership(one), Leadership(other)
        assert first.take()
        assert not second.take()
        with other.transaction() as connection:
            connection.execute(text("UPDATE leases SET renewed_at = renewed_at - interval '1 minute'"))
        assert not second.take()
        take_over(second)
        with pytest.raises(StorageError):
            first.renew()
        with pytest.raises(StorageError, match="another process collects"):
            write(first, "first, woken up")
        write(second, "second")
        first.resign()
        assert not first.take()
        assert sources(one) == ["second"]
        second.resign()


def test_a_collector_that_is_overtaken_within_its_transaction_stores_nothing(postgres_url: str) -> None:
    with open_database(postgres_url, migrate=True) as one, open_database(postgres_url) as other:
        first, second = Leadership(one), Leadership(other)
        assert first.take()
        with pytest.raises(StorageError), first.database.transaction() as connection:  # noqa: PT012
            source_at(connection, "first", at=1.0)
            first._session.invalidate()  # its connection is lost while it writes
            with other.engine.connect() as admin:
                admin.execute(
                    text("SELECT pg_terminate_backend(:pid)"),
                    {"pid": connection.connection.dbapi_connection.info.backend_pid},
                )
            take_over(second)
        assert sources(other) == []
        second.resign()


def test_a_second_collector_of_a_sqlite_file_is_refused(sqlite_url: str) -> None:
    with open_database(sqlite_url) as one, open_database(sqlite_url) as other:
        first, second = Leadership(one), Leadership(other)
        assert first.take()
        write(first, "first")
        with pytest.raises(StorageError, match="another draftscope collects") as caught:
            second.take()
        assert "PostgreSQL" in caught.value.hint
        first.resign()
        assert second.take()
        with pytest.raises(StorageError, match="another process collects"):
            write(first, "first, too late")
        second.resign()
