"""Writing rows: many plain tuples at once, and single rows that may be there already."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from operator import ne
from typing import Any, Final

from sqlalchemy import Connection, Table
from sqlalchemy.dialects import postgresql, sqlite

from collector.domain.windows import Partial
from collector.storage.copying import copy_columns, copy_rows
from collector.storage.staging import ENOUGH, can_stage, insert_staged
from collector.storage.types import dump_json

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
    if connection.dialect.name == "postgresql":
        return copy_rows(connection, table, names, rows)
    marks = ", ".join(["?"] * len(names))
    statement = f"INSERT INTO {table.name} ({_listed(names)}) VALUES ({marks}) ON CONFLICT DO NOTHING"  # noqa: S608 - our names
    return connection.exec_driver_sql(statement, list(rows)).rowcount


def rows_of(connection: Connection, query: str) -> list[tuple[Any, ...]]:
    """What a query without parameters gives, as the driver has it: for what is asked at every scrape and batch."""
    cursor = connection.connection.cursor()
    try:
        cursor.execute(query)
        return list(cursor.fetchall())
    finally:
        cursor.close()


def replace_rows(connection: Connection, table: Table, rows: Sequence[tuple[Any, ...]]) -> None:
    """Store tuples in the order of the table's columns; a row whose key exists takes the new values."""
    names = [column.name for column in table.columns]
    keys = [column.name for column in table.primary_key.columns]
    mark = "%s" if connection.dialect.name == "postgresql" else "?"
    statement = (
        f"INSERT INTO {table.name} ({', '.join(names)}) VALUES ({', '.join([mark] * len(names))}) "  # noqa: S608 - our names
        f"ON CONFLICT ({', '.join(keys)}) DO UPDATE SET "
        + ", ".join(f"{name} = excluded.{name}" for name in names if name not in keys)
    )
    cursor = connection.connection.cursor()
    try:
        cursor.executemany(statement, rows)
    finally:
        cursor.close()


def add_columns(connection: Connection, table: Table, count: int, columns: Mapping[str, Any]) -> int:
    """Add ``count`` rows that come as columns; rows whose key exists are left as they are.

    Each column is a list of plain values, an array of numbers without NaN, a :class:`Partial`, or one whole number or
    ``None`` for all rows; columns of the table that are left out are null. Returns how many rows were
    added. SQLite takes NaN for NULL, so it is stored there as the text ``nan``.
    """
    varying = {name: values for name, values in columns.items() if _varies(values)}
    shared = {name: value for name, value in columns.items() if name not in varying and value is not None}
    if connection.dialect.name == "postgresql":
        return copy_columns(connection, table, count, varying, shared)
    insert = f"INSERT INTO {table.name} ({_listed((*varying, *shared))})"
    constants = [str(int(value)) for value in shared.values()]
    driver: Any = connection.connection.driver_connection
    if count >= ENOUGH and not any(isinstance(values, list) for values in varying.values()) and can_stage(driver):
        figures = {
            f'"{name}"': values.figures if isinstance(values, Partial) else values for name, values in varying.items()
        }
        return insert_staged(driver, insert, ", ".join([*figures, *constants]), figures)
    # Values that are the same stand in the statement, and one statement stores many rows.
    row = f"({', '.join([*['?'] * len(varying), *constants])})"
    lists = [_listable(values) for values in varying.values()]
    added = 0
    cursor: Any = connection.connection.cursor()
    try:
        for first, rows, times in _statements(count):
            marks = ", ".join([row] * rows)
            values = chain.from_iterable(zip(*(one[first : first + rows * times] for one in lists), strict=True))
            bound = zip(*[values] * (rows * len(lists)), strict=True)
            cursor.executemany(f"{insert} VALUES {marks} ON CONFLICT DO NOTHING", bound)
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
        yield count - left, 1, left  # a statement of as many rows would be compiled for each number of them


def _listable(values: Any) -> list[Any]:
    """A column as a list of what SQLite stores as it is."""
    plain: list[Any] = values if isinstance(values, list) else values.tolist()
    if not any(map(ne, plain, plain)):
        return plain
    return ["nan" if value != value else value for value in plain]  # noqa: PLR0124


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f'"{name}"' for name in names)
