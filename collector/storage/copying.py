"""Many rows at once on PostgreSQL: COPY, in its binary form where all values are numbers in arrays.

Source: the format of COPY in the PostgreSQL manual, "COPY", section "Binary Format".
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import repeat
from typing import Any, Final

from sqlalchemy import BigInteger, Boolean, Connection, Double, Integer, SmallInteger, Table

from collector.domain.windows import Partial

COPY_FROM: Final = 100
"""From this many rows on, COPY beats single inserts."""

_BEGIN: Final = b"PGCOPY\n\xff\r\n\0" + bytes(8)
_END: Final = b"\xff\xff"
_BINARY_TYPES: Final = ((Boolean, "i1"), (SmallInteger, ">i2"), (BigInteger, ">i8"), (Integer, ">i4"), (Double, ">f8"))


def copy_rows(connection: Connection, table: Table, names: Sequence[str], rows: Sequence[tuple[Any, ...]]) -> int:
    """Add tuples of the named columns; rows whose key exists are left as they are. Returns how many were added."""
    columns = ", ".join(f'"{name}"' for name in names)
    if len(rows) < COPY_FROM:
        marks = ", ".join(["%s"] * len(names))
        statement = f"INSERT INTO {table.name} ({columns}) VALUES ({marks}) ON CONFLICT DO NOTHING"  # noqa: S608 - our names
        return connection.exec_driver_sql(statement, rows).rowcount

    def write(copy: Any) -> None:
        for row in rows:
            copy.write_row(row)

    return _copy(connection, table.name, columns, write, len(rows))


def copy_columns(
    connection: Connection, table: Table, count: int, varying: Mapping[str, Any], shared: Mapping[str, Any]
) -> int:
    """The same for columns: arrays without NaN or lists, and values that all rows share."""
    names = (*varying, *shared)
    if count < COPY_FROM or any(isinstance(values, (list, Partial)) for values in varying.values()):
        lists = (values if isinstance(values, list) else values.tolist() for values in varying.values())
        constants = (repeat(value, count) for value in shared.values())
        return copy_rows(connection, table, names, list(zip(*lists, *constants, strict=False)))
    columns = ", ".join(f'"{name}"' for name in names)
    content = _binary(table, count, {**varying, **shared})
    return _copy(connection, table.name, columns, lambda copy: copy.write(content), count, " (FORMAT BINARY)")


def _binary(table: Table, count: int, columns: Mapping[str, Any]) -> bytes:
    """The rows as COPY reads them: how many values, then the length of each before its bytes, all big-endian."""
    import numpy as np

    fields = [("values", ">i2")]
    for name in columns:
        kind = next(code for type_, code in _BINARY_TYPES if isinstance(table.c[name].type, type_))
        fields += [(f"length of {name}", ">i4"), (name, kind)]
    rows = np.zeros(count, dtype=fields)
    rows["values"] = len(columns)
    for name, values in columns.items():
        rows[f"length of {name}"] = rows.dtype[name].itemsize
        rows[name] = values
    return _BEGIN + rows.tobytes() + _END


def _copy(
    connection: Connection, table: str, columns: str, write: Callable[[Any], None], count: int, form: str = ""
) -> int:
    """Copy into the table itself; where some rows are there already, into a temporary one and from that what is new."""
    from psycopg.errors import UniqueViolation

    cursor = connection.connection.cursor()
    try:
        cursor.execute("SAVEPOINT before_copy")
        try:
            with cursor.copy(f"COPY {table} ({columns}) FROM STDIN{form}") as copy:
                write(copy)
        except UniqueViolation:
            cursor.execute("ROLLBACK TO SAVEPOINT before_copy")
        else:
            cursor.execute("RELEASE SAVEPOINT before_copy")
            return count
        staging = f"staging_{table}"
        cursor.execute(f"CREATE TEMP TABLE IF NOT EXISTS {staging} (LIKE {table}) ON COMMIT DELETE ROWS")
        with cursor.copy(f"COPY {staging} ({columns}) FROM STDIN{form}") as copy:
            write(copy)
        cursor.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM {staging} ON CONFLICT DO NOTHING")  # noqa: S608
        added = cursor.rowcount
        cursor.execute(f"TRUNCATE {staging}")
    finally:
        cursor.close()
    return int(added)
