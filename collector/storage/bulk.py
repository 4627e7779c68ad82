"""Writing rows: many plain tuples at once, and single rows that may be there already."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain, repeat
from typing import Any, Final

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

from collector.storage.types import dump_json

COPY_FROM: Final = 100
"""From this many rows on, PostgreSQL's COPY through a temporary table beats single inserts."""

ROWS_OF_A_STATEMENT: Final = 40
"""Rows that one statement of SQLite stores; it allows some hundred values."""


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


def add_columns(connection: Connection, table: Table, count: int, columns: Mapping[str, Any]) -> int:
    """Add ``count`` rows that come as columns; rows whose key exists are left as they are.

    Each column is a list of plain values, an array of numbers without NaN, or one whole number or
    ``None`` for all rows; columns of the table that are left out are null. Returns how many rows were
    added.
    """
    varying = {name: values for name, values in columns.items() if _varies(values)}
    shared = {name: int(value) for name, value in columns.items() if name not in varying and value is not None}
    names = ", ".join(f'"{name}"' for name in (*varying, *shared))
    if connection.dialect.name == "postgresql":
        lists = (values if isinstance(values, list) else values.tolist() for values in varying.values())
        constants = (repeat(value, count) for value in shared.values())
        return _copy(connection, table.name, names, zip(*lists, *constants, strict=False))
    # Binding a value costs as much as storing it: those that are the same stand in the statement,
    # and one statement stores many rows.
    row = f"({', '.join([*['?'] * len(varying), *map(str, shared.values())])})"
    added = 0
    cursor = connection.connection.cursor()
    try:
        for first, rows, times in _statements(count):
            marks = ", ".join([row] * rows)
            statement = f"INSERT INTO {table.name} ({names}) VALUES {marks} ON CONFLICT DO NOTHING"  # noqa: S608 - our names
            bound: Any = _bound(list(varying.values()), slice(first, first + rows * times), rows)
            cursor.executemany(statement, bound)
            added += cursor.rowcount
    finally:
        cursor.close()
    return added


def _varies(values: Any) -> bool:
    return isinstance(values, list) or hasattr(values, "tolist")


def _statements(count: int) -> Iterator[tuple[int, int, int]]:
    """How many rows are stored by how many statements: the first row, rows of a statement, times."""
    times, left = divmod(count, ROWS_OF_A_STATEMENT)
    if times:
        yield 0, ROWS_OF_A_STATEMENT, times
    if left:
        yield count - left, left, 1


def _bound(columns: list[Any], which: slice, rows: int) -> Iterable[Sequence[Any]]:
    """The values of some rows, as many rows at a time as a statement stores.

    Columns that are all arrays go the way of numbers: whole ones are stored as such in columns that
    are for whole numbers.
    """
    parts = [column[which] for column in columns]
    if any(isinstance(part, list) for part in parts):
        lists = (part if isinstance(part, list) else part.tolist() for part in parts)
        values = chain.from_iterable(zip(*lists, strict=True))
        return zip(*[values] * (rows * len(columns)), strict=True)
    import numpy as np

    table = np.empty((len(parts[0]), len(parts)))
    for number, part in enumerate(parts):
        table[:, number] = part
    bound: list[list[float]] = table.reshape(-1, rows * len(columns)).tolist()
    return bound


def _copy(connection: Connection, table: str, columns: str, rows: Iterable[tuple[Any, ...]]) -> int:
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
