"""Many rows of numbers at once on SQLite: as a small database in memory, from which one statement inserts them.

Handing over a value costs the driver as much as storing it costs SQLite. A database whose pages are written as arrays has
all values of a batch where SQLite finds them. It has one table, ``rows``, and is read once; SQLite writes what it keeps itself.

Source: "Database File Format" in the SQLite manual (https://www.sqlite.org/fileformat.html), sections 1.3 (header), 1.6
(pages) and 2.1 (records).
"""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, Final
from zlib import crc32

STAGED: Final = "staged"
"""The name under which a connection has the database with the rows."""
ENOUGH: Final = 200
"""Rows from which on a database of their own is less work than their values one by one."""
MOST_ROWS: Final = 1 << 14
"""Rows of one such database: its memory is bounded, and its tree never has more than a root and leaves."""

_PAGE: Final = 1 << 16
_HEADER: Final = 100
_INNER: Final = 5
_LEAF: Final = 13
_REAL: Final = 7
"""The serial type of a double, big-endian."""


def can_stage(connection: Any) -> bool:
    """Whether the driver and its SQLite were built with what this takes."""
    return isinstance(connection, sqlite3.Connection) and hasattr(connection, "deserialize")


def insert_staged(connection: sqlite3.Connection, insert: str, row: str, columns: Mapping[str, Any]) -> int:
    """Insert rows whose varying columns are arrays of numbers, NaN for NULL; returns how many were inserted.

    ``insert`` is the statement up to its rows, ``row`` what each is made of: the names of ``columns`` and constants. Rows
    whose key exists are left as they are. Every value arrives as a double; columns for whole numbers keep whole ones as such.
    """
    statement = f"{insert} SELECT {row} FROM {STAGED}.rows WHERE true ON CONFLICT DO NOTHING"  # noqa: S608 - our names
    if STAGED not in (name for _, name, _ in connection.execute("PRAGMA database_list")):
        connection.execute(f"ATTACH ':memory:' AS {STAGED}")
    names, values = list(columns), list(columns.values())
    added = 0
    for first in range(0, len(values[0]), MOST_ROWS):
        connection.deserialize(database_of(names, [one[first : first + MOST_ROWS] for one in values]), name=STAGED)
        added += connection.execute(statement).rowcount
    return added


def database_of(names: Sequence[str], columns: Sequence[Any]) -> bytearray:
    """A database with the table ``rows`` of doubles; each column is an array of shape (n,), n up to :data:`MOST_ROWS`."""
    import numpy as np

    count = len(columns[0])
    header = [1 + len(names), *[_REAL] * len(names)]
    cell = np.dtype(
        [("size", "u1", 2), ("rowid", "u1", 3), ("header", "u1", len(header)), ("values", ">f8", len(names))]
    )
    of_page = (_PAGE - 8) // (cell.itemsize + 2)
    full = max(0, count - 1) // of_page
    before = 2 if full else 1
    database = bytearray(_PAGE * (before + full + 1))
    pages = np.frombuffer(database, "u1").reshape(-1, _PAGE)
    _write_schema(pages, f"CREATE TABLE rows ({', '.join(names)})")
    if full:
        _write_root(pages, full, of_page)
    # The last leaf has the rows that are left over, at its end like all others.
    left = count - full * of_page
    _write_head(pages[before:-1], _LEAF, of_page, cell.itemsize)
    _write_head(pages[-1:], _LEAF, left, cell.itemsize)
    begins = _PAGE * (before + 1) - of_page * cell.itemsize
    cells = np.ndarray((full + 1, of_page), cell, database, begins, (_PAGE, cell.itemsize))
    for rows, some in (
        (slice(0, full * of_page), cells[:full]),
        (slice(full * of_page, count), cells[full:, of_page - left :]),
    ):
        some["size"] = _varints(cell.itemsize - 5, 2)
        some["rowid"] = _varints(np.arange(rows.start + 1, rows.stop + 1), 3).reshape(*some.shape, 3)
        some["header"] = header
        for number, column in enumerate(columns):
            some["values"][..., number] = np.reshape(column[rows], some.shape)
    return database


def _write_schema(pages: Any, statement: str) -> None:
    """The first page: the header of the file, and the table of tables with one row."""
    import numpy as np

    texts = [b"table", b"rows", b"rows", statement.encode()]
    kind, name, table, sql = (_varints(13 + 2 * len(text), 2).tobytes() for text in texts)
    types = kind + name + table + b"\x01" + sql
    record = bytes([1 + len(types)]) + types + b"".join(texts[:3]) + b"\x02" + texts[3]
    cell = _varints(len(record), 2).tobytes() + b"\x01" + record
    header = bytearray(_HEADER)
    header[:24] = b"SQLite format 3\0" + bytes([0, 1, 1, 1, 0, 64, 32, 32])
    # Statements that were compiled for other columns are told by the number of the schema.
    schema = crc32(texts[3])
    for place, value in ((24, 1), (28, len(pages)), (40, schema), (44, 4), (56, 1), (92, 1), (96, 3_036_000)):
        header[place : place + 4] = value.to_bytes(4, "big")
    pages[0, :_HEADER] = np.frombuffer(header, "u1")
    pages[0, _PAGE - len(cell) :] = np.frombuffer(cell, "u1")
    _write_head(pages[:1, _HEADER:], _LEAF, 1, len(cell))


def _write_root(pages: Any, full: int, of_page: int) -> None:
    """The second page: where each leaf is, with its last row; the leaf that has the last rows of all stands in the head."""
    import numpy as np

    cells = np.zeros(full, [("page", ">u4"), ("rowid", "u1", 3)])
    cells["page"] = np.arange(3, 3 + full)
    cells["rowid"] = _varints(np.arange(1, full + 1) * of_page, 3)
    _write_head(pages[1:2], _INNER, full, cells.itemsize)
    pages[1, 8:12] = np.frombuffer((3 + full).to_bytes(4, "big"), "u1")
    pages[1, _PAGE - cells.nbytes :] = cells.view("u1")


def _write_head(pages: Any, kind: int, cells: int, size: int) -> None:
    """The heads of pages whose cells lie at their ends, and where each cell begins."""
    import numpy as np

    begins = _PAGE - cells * size
    head = bytes([kind, 0, 0]) + cells.to_bytes(2, "big") + (begins % _PAGE).to_bytes(2, "big") + b"\0"
    pages[:, : len(head)] = np.frombuffer(head, "u1")
    pointers = (begins + size * np.arange(cells)).astype(">u2").view("u1")
    first = len(head) + (4 if kind == _INNER else 0)
    pages[:, first : first + len(pointers)] = pointers


def _varints(numbers: Any, length: int) -> Any:
    """Whole numbers as SQLite writes them, all of one length: seven bits a byte, the highest first. Shape (..., length)."""
    import numpy as np

    parts = np.asarray(numbers)[..., None] >> 7 * np.arange(length - 1, -1, -1) & 0x7F
    parts[..., :-1] |= 0x80
    return parts.astype("u1")
