"""Writing rows: many plain tuples at once, and single rows that may be there already."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

from collector.storage.types import dump_json

COPY_FROM: Final = 100
"""From this many rows on, PostgreSQL's COPY through a temporary table beats single inserts."""


def digest_of(*parts: Any) -> str:
    """128 bits of SHA-256 over plain values, for keys that are too long to index; the order of keys does not matter."""
    return hashlib.sha256(dump_json(parts, sort_keys=True).encode()).hexdigest()[:32]


def insert_or_keep(connection: Connection, table: Table) -> Any:
    """An INSERT of one table that leaves rows with the same key as they are."""
    dialect = postgresql if connection.dialect.name == "postgresql" else sqlite
    return dialect.insert(table).on_conflict_do_nothing()


def add_rows(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> int:
    """Add tuples in the order of the table's columns; rows whose key exists are left as they are.

    Values go to the driver as they are: plain numbers, texts, bytes. Returns how many were added.
    """
    if not rows:
        return 0
    names = [column.name for column in table.columns]
    columns = ", ".join(f'"{name}"' for name in names)
    if connection.dialect.name == "postgresql" and len(rows) >= COPY_FROM:
        return _copy(connection, table.name, columns, rows)
    mark = "%s" if connection.dialect.name == "postgresql" else "?"
    marks = ", ".join([mark] * len(names))
    statement = f"INSERT INTO {table.name} ({columns}) VALUES ({marks}) ON CONFLICT DO NOTHING"  # noqa: S608 - our names
    return connection.exec_driver_sql(statement, list(rows)).rowcount


def _copy(connection: Connection, table: str, columns: str, rows: Sequence[tuple[Any, ...]]) -> int:
    staging = f"staging_{table}"
    connection.exec_driver_sql(f"CREATE TEMP TABLE IF NOT EXISTS {staging} (LIKE {table}) ON COMMIT DELETE ROWS")
    cursor = connection.connection.cursor()
    try:
        with cursor.copy(f"COPY {staging} ({columns}) FROM STDIN") as copy:
            for row in rows:
                copy.write_row(row)
    finally:
        cursor.close()
    statement = f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {staging} ON CONFLICT DO NOTHING"  # noqa: S608
    added = connection.exec_driver_sql(statement).rowcount
    connection.exec_driver_sql(f"TRUNCATE {staging}")
    return added
