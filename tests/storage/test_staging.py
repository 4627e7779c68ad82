"""Databases that are written as arrays are what SQLite reads from them."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from collector.storage.staging import MOST_ROWS, STAGED, can_stage, database_of, insert_staged

FIGURES = st.floats(allow_nan=True, allow_infinity=True)


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    opened = sqlite3.connect(":memory:", isolation_level=None)
    if not can_stage(opened):
        pytest.skip("this SQLite takes no database from memory")
    yield opened
    opened.close()


def read_back(table: np.ndarray) -> list[tuple[float | None, ...]]:
    names = [f'"c{number}"' for number in range(table.shape[1])]
    with sqlite3.connect(":memory:") as opened:
        opened.deserialize(database_of(names, list(table.T)))
        assert opened.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert opened.execute("SELECT count(*), max(rowid) FROM rows").fetchone()[1] == (len(table) or None)
        return opened.execute(f"SELECT {', '.join(names)} FROM rows ORDER BY rowid").fetchall()


def rows_of(table: np.ndarray) -> list[tuple[float | None, ...]]:
    return [tuple(None if value != value else value for value in row) for row in table.tolist()]  # noqa: PLR0124


@given(
    st.tuples(st.integers(0, 40), st.integers(1, 30)).flatmap(lambda shape: arrays(np.float64, shape, elements=FIGURES))
)
def test_any_numbers_are_read_as_they_were(table: np.ndarray) -> None:
    assert read_back(table) == rows_of(table)


@pytest.mark.parametrize("columns", [1, 6, 17, 60])
@pytest.mark.parametrize("count", [0, 1, 119, 120, 121, 353, 354, 355, 1_000, 4_000, MOST_ROWS - 1, MOST_ROWS])
def test_any_number_of_rows_fills_the_pages(count: int, columns: int) -> None:
    table = np.random.default_rng(count).normal(size=(count, columns)) * 1e6
    assert read_back(table) == rows_of(table)


def test_more_rows_than_one_database_holds_are_inserted_once(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE kept (number INTEGER PRIMARY KEY, figure DOUBLE, kind INTEGER)")
    count = 2 * MOST_ROWS + 5
    columns = {'"number"': np.arange(count), '"figure"': np.arange(count) / 8}
    connection.execute("BEGIN IMMEDIATE")
    insert = 'INSERT INTO kept ("number", "figure", "kind")'
    assert insert_staged(
        connection, insert, '"number", "figure", 7', {name: one[: count // 2] for name, one in columns.items()}
    )
    assert insert_staged(connection, insert, '"number", "figure", 7', columns) == count - count // 2
    assert insert_staged(connection, insert, '"number", "figure", 7', columns) == 0
    connection.execute("COMMIT")
    assert connection.execute("SELECT typeof(number), * FROM kept").fetchall() == [
        ("integer", number, number / 8, 7) for number in range(count)
    ]


def test_other_columns_under_the_same_name_are_not_taken_for_those_before(connection: sqlite3.Connection) -> None:
    connection.execute("CREATE TABLE kept (a, b)")
    for names in (('"a"', '"b"'), ('"b"', '"a"')):
        columns = {name: np.array([float(number)]) for number, name in enumerate(names)}
        listed = ", ".join(names)
        insert_staged(connection, f"INSERT INTO kept ({listed})", listed, columns)
        assert connection.execute(f"SELECT * FROM {STAGED}.rows").fetchall() == [(0.0, 1.0)]
    assert connection.execute("SELECT a, b FROM kept").fetchall() == [(0.0, 1.0), (1.0, 0.0)]
