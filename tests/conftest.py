"""Databases for all tests: SQLite always, PostgreSQL from a wheel, and the user's server where one is named."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import settings
from sqlalchemy import create_engine, make_url, text

from collector.storage.engine import Database, open_database
from tests.storage.postgres import postgres_server

settings.register_profile("draftscope", deadline=None)  # a busy machine is no fault of the code
settings.load_profile("draftscope")

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell's job in the background: programs that tests start would not hear an interrupt either.
    signal.signal(signal.SIGINT, signal.default_int_handler)

_SYSTEM_SERVER = os.environ.get("DRAFTSCOPE_TEST_DATABASE_URL", "")
_SERVERS = ["wheel", "system"] if _SYSTEM_SERVER else ["wheel"]


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'draftscope.db'}"


@pytest.fixture
def sqlite_database(sqlite_url: str) -> Iterator[Database]:
    with open_database(sqlite_url) as database:
        yield database


@pytest.fixture(scope="session")
def own_postgres() -> Iterator[str]:
    with postgres_server() as address:
        yield address


@pytest.fixture(params=_SERVERS)
def postgres_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of an empty schema, dropped afterwards."""
    with empty_schema(request) as url:
        yield url


@pytest.fixture(params=["sqlite", *_SERVERS])
def database_url(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of an empty database on each kind of server."""
    if request.param == "sqlite":
        yield request.getfixturevalue("sqlite_url")
    else:
        with empty_schema(request) as url:
            yield url


@pytest.fixture
def database(database_url: str) -> Iterator[Database]:
    """An empty database with the newest schema, on each kind of server."""
    with open_database(database_url, migrate=True) as database:
        yield database


@contextmanager
def empty_schema(request: pytest.FixtureRequest) -> Iterator[str]:
    """The address of an empty schema on the server that the parameter of a fixture names."""
    server = _SYSTEM_SERVER if request.param == "system" else request.getfixturevalue("own_postgres")
    name = f"draftscope_test_{uuid.uuid4().hex}"
    address = make_url(server).set(drivername="postgresql+psycopg")
    engine = create_engine(address, isolation_level="AUTOCOMMIT")
    with engine.connect() as connection:
        connection.execute(text(f"CREATE SCHEMA {name}"))
    try:
        yield address.update_query_dict({"options": f"-csearch_path={name}"}).render_as_string(hide_password=False)
    finally:
        with engine.connect() as connection:
            connection.execute(text(f"DROP SCHEMA {name} CASCADE"))
        engine.dispose()
