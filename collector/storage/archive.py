"""The whole database as Parquet files, one a table, and back.

Any program that reads Parquet can use them: instants are times with zone, JSON is text, packed figures are columns
of their own, counts by position are lists.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from itertools import chain
from pathlib import Path
from shutil import rmtree
from types import ModuleType
from typing import Any, Final

from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    Connection,
    Double,
    Integer,
    LargeBinary,
    SmallInteger,
    Table,
    func,
    insert,
    select,
    text,
    update,
)

from collector.domain.arguments import UNSEEN
from collector.domain.errors import MalformedInput, RefusedError, UnreadableInput
from collector.domain.windows import PrefillWindow, Window
from collector.storage.bulk import add_rows
from collector.storage.check import orphans
from collector.storage.engine import Database
from collector.storage.locking import lock_for_this_process
from collector.storage.packing import pack_counts, pack_figures, unpack_counts, unpack_figures
from collector.storage.partitions import SPANS, make_room
from collector.storage.schema import head
from collector.storage.tables import (
    DECODE_SAMPLES,
    LEASES,
    LIVE_SAMPLES,
    METADATA,
    PREFILL_SAMPLES,
    REPORTS,
    RUNS,
    SERIES_SAMPLES,
)
from collector.storage.types import Instant, Json, SeenJson, dump_json, load_json

FORMAT: Final = "draftscope.export/1"
MANIFEST: Final = "draftscope.json"
"""Written last: a folder without it is no whole export."""
_BATCH: Final = 20_000
_FIGURES: Final = Window._fields[4:]
_PROMPTS: Final = ("new_tokens", "cached_tokens")
_NUMBERS: Final = {*SPANS, DECODE_SAMPLES.name, PREFILL_SAMPLES.name, SERIES_SAMPLES.name}
"""Tables of plain numbers, which go to the driver as they are."""

Progress = Callable[[str, int], None]
"""Called with a table's name and how many of its rows are done."""


def _tables() -> list[Table]:
    """All but who collects, and what is made again when it is asked for."""
    return [table for table in METADATA.sorted_tables if table not in (LEASES, REPORTS)]


def _silent(_table: str, _rows: int) -> None:
    """Report no progress."""


# ---- writing


def export_database(database: Database, folder: Path, progress: Progress = _silent) -> dict[str, int]:
    """Write everything into a new folder, as it stands at one moment; returns the rows of each table.

    Raises:
        RefusedError: the folder is there and not empty, cannot be made, or pyarrow is not installed.
        StorageError: the database refused.
    """
    arrow, parquet = _pyarrow()
    with _workplace(folder) as work:
        written = {}
        with database.reading() as connection:
            for table in _tables():
                schema = _schema(arrow, table)
                rows = 0
                with parquet.ParquetWriter(work / f"{table.name}.parquet", schema, compression="zstd") as writer:
                    for part in _batches(connection, table):
                        writer.write_table(arrow.Table.from_pylist(part, schema=schema))
                        rows += len(part)
                        progress(table.name, rows)
                written[table.name] = rows
        manifest = {"format": FORMAT, "schema": head(), "rows": written}
        (work / MANIFEST).write_text(json.dumps(manifest, indent=2) + "\n", encoding="utf-8")
    return written


@contextmanager
def _workplace(folder: Path) -> Iterator[Path]:
    """A hidden folder beside the one that is asked for, whose place it takes in the end, or else is removed.

    What an export that was killed left there is removed first.
    """
    work, locked = (folder.parent / f".{folder.name}.{end}" for end in ("part", "lock"))
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        with locked.open("ab") as lock:
            lock_for_this_process(lock)
            try:
                _check_empty(folder)
                rmtree(work, ignore_errors=True)
                work.mkdir()
                yield work
                with suppress(OSError):
                    folder.rmdir()
                work.replace(folder)
            finally:
                rmtree(work, ignore_errors=True)
                locked.unlink()
    except BlockingIOError:
        raise RefusedError("another export into this folder is under way", where=str(folder)) from None
    except OSError as error:
        raise RefusedError(
            "the export cannot be written", why=error.strerror or str(error), where=str(folder)
        ) from error


def _check_empty(folder: Path) -> None:
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        what = "the folder is not empty" if folder.is_dir() else "this is no folder"
        raise RefusedError(what, where=str(folder), hint="give a new one")


def _batches(connection: Connection, table: Table) -> Iterator[list[dict[str, Any]]]:
    query = select(table).order_by(*table.primary_key.columns).execution_options(yield_per=_BATCH)
    outward = _live_outward if table is LIVE_SAMPLES else _outward(table)
    for part in connection.execute(query).partitions():
        yield [outward(row) for row in part]


def _schema(arrow: ModuleType, table: Table) -> Any:
    if table is LIVE_SAMPLES:
        keys = [
            arrow.field(name, arrow.int64() if name != "at" else arrow.float64())
            for name in ("stream_id", "at", "place")
        ]
        kinds = {
            "graph": arrow.bool_(),
            "prefills": arrow.int64(),
            "origin": arrow.string(),
            "accepted_at": arrow.list_(arrow.float64()),
        }
        return arrow.schema(
            [*keys, *(arrow.field(name, kinds.get(name, arrow.float64())) for name in (*_FIGURES, *_PROMPTS))]
        )
    return arrow.schema([arrow.field(column.name, _arrow_type(arrow, column)) for column in table.columns])


def _arrow_type(arrow: ModuleType, column: Column[Any]) -> Any:
    kind = column.type
    if isinstance(kind, Instant):
        return arrow.timestamp("us", tz="UTC")
    if isinstance(kind, Boolean):
        return arrow.bool_()
    if isinstance(kind, (Integer, BigInteger, SmallInteger)):
        return arrow.int64()
    if isinstance(kind, Double):
        return arrow.float64()
    return arrow.list_(arrow.float64()) if isinstance(kind, LargeBinary) else arrow.string()


def _outward(table: Table) -> Callable[[Sequence[Any]], dict[str, Any]]:
    columns = [(column.name, _to_plain(column)) for column in table.columns]
    return lambda row: {name: plain(value) for (name, plain), value in zip(columns, row, strict=True)}


def _to_plain(column: Column[Any]) -> Callable[[Any], Any]:
    kind = column.type
    if isinstance(kind, Instant):
        return lambda value: None if value is None else round(value * 1_000_000)
    if isinstance(kind, SeenJson):
        return lambda value: None if value is UNSEEN else dump_json(value)
    if isinstance(kind, Json):
        return lambda value: None if value is None else dump_json(value)
    if isinstance(kind, LargeBinary):
        return lambda value: None if value is None else list(unpack_counts(value) or ())
    if isinstance(kind, Double):
        return lambda value: float("nan") if value == "nan" else value
    return lambda value: value


def _live_outward(row: Sequence[Any]) -> dict[str, Any]:
    stream_id, at, place, figures = row
    window, prefill = unpack_figures(figures, 0, at, "")
    plain: dict[str, Any] = {"stream_id": stream_id, "at": at, "place": place}
    if window is not None:
        plain |= {name: getattr(window, name) for name in _FIGURES}
        plain["origin"] = window.origin.value
    if prefill is not None:
        plain |= {"new_tokens": prefill.new_tokens, "cached_tokens": prefill.cached_tokens}
    return plain


# ---- reading


def import_database(database: Database, folder: Path, progress: Progress = _silent) -> dict[str, int]:
    """Fill an empty database from an export, all or nothing; returns the rows of each table.

    Raises:
        UnreadableInput, MalformedInput: the folder holds no whole export of this schema.
        RefusedError: the database is not empty, or pyarrow is not installed.
        StorageError: the database refused; nothing was stored.
    """
    arrow, parquet = _pyarrow()
    rows = _rows_told(folder)
    with database.transaction() as connection:
        for table in _tables():
            if connection.execute(select(func.count()).select_from(table)).scalar_one():
                raise RefusedError(
                    "the database is not empty",
                    why=f"it has rows in {table.name}",
                    where=database.name,
                    hint="give a new one: DRAFTSCOPE_DATABASE_URL=sqlite:///FILE",
                )
        for table in _tables():
            inward = _inward(table)
            there = done = 0
            for part in _stored_batches(arrow, parquet, folder, table):
                try:
                    stored = [inward(row) for row in part]
                except (KeyError, OverflowError, TypeError, ValueError) as error:
                    raise _damaged(folder, f"{table.name} holds what cannot be read: {error}") from None
                done += _store(connection, table, stored)
                there += len(part)
                progress(table.name, done)
            if not there == done == rows.get(table.name):
                twice = f", {there - done} of them twice" if there != done else ""
                raise _damaged(folder, f"{table.name} has {there} rows of {rows.get(table.name)}{twice}")
            _restart_numbers(connection, table)
        if lost := orphans(connection):
            raise _damaged(folder, lost[0])
        _link_runs(connection, _stored_batches(arrow, parquet, folder, RUNS))
    return rows


def _damaged(where: Path, why: str) -> MalformedInput:
    return MalformedInput("the export is damaged", why=why, where=str(where), hint="export again")


def _rows_told(folder: Path) -> dict[str, int]:
    """How many rows each table of an export has, as it says itself."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text(encoding="utf-8"))
    except OSError as error:
        raise UnreadableInput(
            "this is no whole export",
            why=f"{MANIFEST}: {error.strerror}",
            where=str(folder),
            hint="draftscope db export FOLDER",
        ) from None
    except ValueError:
        raise MalformedInput("this is no whole export", why=f"{MANIFEST} cannot be read", where=str(folder)) from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT or manifest.get("schema") != head():
        raise MalformedInput(
            "the export is of another release",
            why=f"its schema is {manifest.get('schema') if isinstance(manifest, dict) else None}, this release has {head()}",
            where=str(folder),
            hint="import it with that release, then draftscope db upgrade",
        )
    rows = manifest.get("rows")
    if not isinstance(rows, dict):
        raise _damaged(folder, f"{MANIFEST} does not say how many rows there are")
    return rows


def _stored_batches(
    arrow: ModuleType, parquet: ModuleType, folder: Path, table: Table
) -> Iterator[list[dict[str, Any]]]:
    path = folder / f"{table.name}.parquet"
    try:
        with parquet.ParquetFile(path) as file:
            if not file.schema_arrow.equals(_schema(arrow, table)):
                raise _damaged(path, "its columns are not those that an export writes")
            for part in file.iter_batches(_BATCH):
                yield part.to_pylist()
    except (OSError, ValueError) as error:
        raise UnreadableInput("the export is not whole", why=str(error), where=str(path), hint="export again") from None


_LINKS: Final = ("previous_run_id", "baseline_run_id")


def _inward(table: Table) -> Callable[[dict[str, Any]], Any]:
    """What makes a row of a file one to store: a tuple for tables of plain numbers, else values by column."""
    if table is LIVE_SAMPLES:
        return _live_inward
    columns = [(column.name, _from_plain(column)) for column in table.columns if column.name not in _LINKS]
    if table.name in _NUMBERS:
        return lambda row: tuple(plain(row[name]) for name, plain in columns)
    return lambda row: {name: plain(row[name]) for name, plain in columns}


def _store(connection: Connection, table: Table, rows: list[Any]) -> int:
    """Store rows; returns how many of them were new."""
    if table.name not in _NUMBERS:
        if rows:
            connection.execute(insert(table), rows)
        return len(rows)
    if table.name in SPANS:
        make_room(connection, [table], {row[1] for row in rows})
    if connection.dialect.name == "sqlite":
        rows = [tuple("nan" if value != value else value for value in row) for row in rows]  # noqa: PLR0124
    return add_rows(connection, table, rows)


def _from_plain(column: Column[Any]) -> Callable[[Any], Any]:
    kind = column.type
    if isinstance(kind, Instant):
        return lambda value: None if value is None else value.timestamp()
    if isinstance(kind, SeenJson):
        return lambda value: UNSEEN if value is None else _loaded(value)
    if isinstance(kind, Json):
        return lambda value: None if value is None else _loaded(value)
    if isinstance(kind, LargeBinary):
        return pack_counts
    return lambda value: value


def _loaded(document: str) -> Any:
    return None if document == "null" else load_json(document)


def _live_inward(row: dict[str, Any]) -> tuple[Any, ...]:
    window = prefill = None
    if row["origin"] is not None:
        figures = {name: row[name] for name in _FIGURES}
        counts = figures["accepted_at"]
        figures |= {"accepted_at": None if counts is None else tuple(counts)}
        window = Window(0, 0, row["at"], "", **figures)
    if row["new_tokens"] is not None:
        prefill = PrefillWindow(0, 0, row["at"], "", row["new_tokens"], row["cached_tokens"])
    return row["stream_id"], row["at"], row["place"], pack_figures(window, prefill)


def _link_runs(connection: Connection, parts: Iterable[list[dict[str, Any]]]) -> None:
    """Runs point at one another, so that is done when all are there."""
    for row in chain.from_iterable(parts):
        links = {name: row[name] for name in _LINKS if row[name] is not None}
        if links:
            connection.execute(update(RUNS).where(RUNS.c.id == row["id"]).values(links))


def _restart_numbers(connection: Connection, table: Table) -> None:
    """New rows get numbers behind those that were imported."""
    if connection.dialect.name != "postgresql" or "id" not in table.c:
        return
    sequence = text(
        "SELECT setval(pg_get_serial_sequence(:name, 'id'), coalesce(max(id), 0) + 1, false) "  # noqa: S608 - our names
        f"FROM {table.name}"
    )
    connection.execute(sequence, {"name": table.name})


def _pyarrow() -> tuple[ModuleType, ModuleType]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise RefusedError(
            "pyarrow is not installed",
            why="exports are Parquet files",
            hint="pip install 'draftscope[parquet]'",
        ) from None
