"""Whatever stops a collector, the rows are those of one that nothing disturbed."""

from __future__ import annotations

import json
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import create_engine, event, make_url, select, text

from collector.domain.errors import StorageError
from collector.ingest import ingest
from collector.storage.check import check_database
from collector.storage.engine import Database, open_database
from collector.storage.live import streams_of
from collector.storage.runs import list_runs, load_run
from collector.storage.tables import (
    FLEET_HOUR_SAMPLES,
    FLEET_MINUTE_SAMPLES,
    HOUR_SAMPLES,
    METADATA,
    MINUTE_SAMPLES,
    POINTS_TO,
    SERIES,
    SERIES_SAMPLES,
)
from collector.storage.units import unit_names
from tests.live.recorded import Recorded
from tests.live.replay import QuietHandler, serve
from tests.storage.collector_process import ASKED
from tests.storage.test_storage_records import canonical

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests" / "golden" / "logs" / "sglang" / "0.5.11-eagle3" / "log.txt"
KILLS = 100 if os.environ.get("DRAFTSCOPE_SOAK") == "1" else 4
UNCHECKED = [
    table.name for table in METADATA.sorted_tables if any(POINTS_TO in column.info for column in table.columns)
]
"""Tables whose rows do not go with what they belong to."""
PATIENCE_SECONDS = 180
"""After so long a collector that says nothing is ended, so that its test fails."""


@pytest.fixture(scope="module")
def engine() -> Iterator[str]:
    """An engine that answers with the snapshot whose number is its key."""
    served = Recorded("vllm/eagle3")

    class Handler(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 - the base class calls it so
            if self.path == "/instants":
                self.send(200, "application/json", json.dumps([at for at, _ in served.snapshots]).encode())
            elif self.path == "/metrics":
                index = int((self.headers.get("Authorization") or "Bearer 0").rpartition(" ")[2])
                self.send(200, "text/plain; version=0.0.4", served.snapshots[index][1])
            else:
                self.send(*served.answer(self.path, None))

    with serve(Handler) as url:
        yield url


@contextmanager
def collector(database: str, engine: str, pace: float | str, how: str) -> Iterator[subprocess.Popen[str]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.storage.collector_process", database, engine, str(pace), how],
        cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    watchdog = threading.Timer(PATIENCE_SECONDS, process.kill)
    watchdog.start()
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n", process.communicate()[1]
        yield process
    finally:
        watchdog.cancel()
        if process.poll() is None:
            process.send_signal(signal.SIGCONT)
            process.kill()
        process.communicate(timeout=60)


def line_of(process: subprocess.Popen[str], *beginnings: str) -> str:
    assert process.stdout is not None
    for line in process.stdout:
        if line.startswith(beginnings):
            return line
    raise AssertionError(process.communicate()[1])


def ask(process: subprocess.Popen[str], snapshots: int = 100) -> None:
    """Let a collector that rests until it is asked store some more snapshots, or all."""
    assert process.stdin is not None
    process.stdin.write("\n" * snapshots)
    process.stdin.flush()


def picture(database: Database) -> list[Any]:
    """All that was stored of watched engines, without the numbers that a database gives."""
    with database.reading() as connection:
        units, runs = unit_names(connection), list_runs(connection, limit=100).runs
        told: list[Any] = []
        for run in runs:
            told.append(canonical(load_run(connection, run.id)))
            query = select(SERIES.c.name, SERIES.c.labels, SERIES_SAMPLES.c.at, SERIES_SAMPLES.c.value)
            series = connection.execute(
                query.where(SERIES.c.id == SERIES_SAMPLES.c.series_id, SERIES.c.run_id == run.id)
            )
            told.append(sorted(repr((row.name, sorted(row.labels.items()), row.at, row.value)) for row in series))
            for stream in streams_of(connection, [run.id]).values():
                for table in (MINUTE_SAMPLES, HOUR_SAMPLES):
                    rows = connection.execute(select(table).where(table.c.stream_id == stream.id))
                    told.append(sorted((units[stream.unit_id], repr(tuple(row)[1:])) for row in rows))
        fleet = (connection.execute(select(table)) for table in (FLEET_MINUTE_SAMPLES, FLEET_HOUR_SAMPLES))
        return [*told, *(sorted(repr(tuple(row)[1:]) for row in rows) for rows in fleet)]


def problems(database: Database) -> list[str]:
    return [f"{result.what}: {result.problem}" for result in check_database(database) if result.problem]


@pytest.fixture(scope="module")
def undisturbed(engine: str, tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    url = f"sqlite:///{tmp_path_factory.mktemp('undisturbed') / 'draftscope.db'}"
    with collector(url, engine, 0, "alone") as process:
        line_of(process, "done")
    with open_database(url) as database:
        made = picture(database)
    assert any(made)
    return made


@pytest.mark.soak
def test_collectors_that_are_killed_lose_nothing_and_store_nothing_twice(
    database_url: str, engine: str, undisturbed: list[Any]
) -> None:
    chance = random.Random(21)
    with open_database(database_url, migrate=True) as database:
        for _ in range(KILLS):
            with collector(database_url, engine, 0.02, "alone") as process:
                if line_of(process, "stored", "done") == "done\n":
                    with database.transaction() as connection:  # begin anew, so that all kills hit something
                        for table in ("runs", "sources", *UNCHECKED):
                            connection.execute(text(f"DELETE FROM {table}"))
                time.sleep(chance.uniform(0, 0.2))
                process.send_signal(signal.SIGKILL)
        with collector(database_url, engine, 0, "alone") as process:
            line_of(process, "done")
        assert picture(database) == undisturbed
        assert problems(database) == []


def test_collectors_that_race_store_each_scrape_once(database_url: str, engine: str, undisturbed: list[Any]) -> None:
    with open_database(database_url, migrate=True) as database:
        with collector(database_url, engine, 0, "alone") as one, collector(database_url, engine, 0, "alone") as other:
            for process in (one, other):
                line_of(process, "done")
        assert picture(database) == undisturbed
        assert problems(database) == []


def test_a_standby_takes_over_from_a_collector_that_dies(
    postgres_url: str, engine: str, undisturbed: list[Any]
) -> None:
    with open_database(postgres_url, migrate=True) as database:
        with collector(postgres_url, engine, ASKED, "elected") as one:
            line_of(one, "stored")
            with collector(postgres_url, engine, 0, "elected") as other:
                ask(one, 1)
                line_of(one, "stored")
                one.send_signal(signal.SIGKILL)
                line_of(other, "collects")
                line_of(other, "done")
        assert picture(database) == undisturbed
        assert problems(database) == []


def test_a_collector_that_was_paused_cannot_write_once_another_took_over(
    postgres_url: str, engine: str, undisturbed: list[Any]
) -> None:
    with open_database(postgres_url, migrate=True) as database:
        with collector(postgres_url, engine, ASKED, "elected") as one:
            line_of(one, "stored")
            with collector(postgres_url, engine, ASKED, "elected") as other:
                one.send_signal(signal.SIGSTOP)
                line_of(other, "collects")
                line_of(other, "stored")
                with database.reading() as connection:
                    token = connection.execute(text("SELECT token FROM leases")).scalar_one()
                ask(one)
                one.send_signal(signal.SIGCONT)
                ask(other)
                line_of(other, "done")
        assert token == 2
        assert picture(database) == undisturbed
        assert problems(database) == []


def test_a_database_that_is_away_for_a_while_leaves_no_gap(
    own_postgres: str, engine: str, undisturbed: list[Any]
) -> None:
    server = make_url(own_postgres).set(drivername="postgresql+psycopg")
    admin = create_engine(server, isolation_level="AUTOCOMMIT")
    name = "draftscope_away"
    url = server.set(database=name).render_as_string(hide_password=False)
    end = text("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = :name")
    with admin.connect() as connection:
        connection.execute(text(f"CREATE DATABASE {name}"))
        try:
            with open_database(url, migrate=True):
                pass
            with collector(url, engine, ASKED, "elected") as process:
                line_of(process, "stored")
                connection.execute(text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS false"))
                connection.execute(end, {"name": name})
                ask(process)
                line_of(process, "refused")
                connection.execute(text(f"ALTER DATABASE {name} ALLOW_CONNECTIONS true"))
                line_of(process, "done")
            with open_database(url) as database:
                assert picture(database) == undisturbed
                assert problems(database) == []
        finally:
            connection.execute(text(f"DROP DATABASE {name} WITH (FORCE)"))
    admin.dispose()


def rows(database: Database) -> list[Any]:
    with database.reading() as connection:
        return [canonical(load_run(connection, run.id)) for run in list_runs(connection, limit=100).runs]


def test_a_full_database_stores_nothing_by_halves(tmp_path: Path, sqlite_database: Database) -> None:
    ingest(sqlite_database, [LOG])
    expected = rows(sqlite_database)
    limit: list[int] = [80]
    with open_database(f"sqlite:///{tmp_path / 'full.db'}") as database:

        @event.listens_for(database.engine, "checkout")
        def cap(connection: Any, *_: Any) -> None:
            connection.execute(f"PRAGMA max_page_count = {limit[0]}")

        with pytest.raises(StorageError, match="disk is full"):
            ingest(database, [LOG])
        assert problems(database) == []
        limit[0] = 100_000
        ingest(database, [LOG])
        assert rows(database) == expected


def fill(path: Path) -> None:
    with path.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(4096))


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if not mount or not umount or os.geteuid() != 0:
        pytest.skip("a small disk can be made by root alone")
    made = subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=1m", "tmpfs", folder], check=False, capture_output=True, text=True
    )
    if made.returncode:
        pytest.skip(f"a small disk cannot be made here: {made.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run([umount, folder], check=True)


def test_a_full_disk_is_told_and_what_was_stored_stays(small_disk: Path, sqlite_database: Database) -> None:
    ingest(sqlite_database, [LOG])
    with open_database(f"sqlite:///{small_disk / 'draftscope.db'}") as database:
        filling = small_disk / "filling"
        with pytest.raises(OSError, match="No space"):
            fill(filling)
        with pytest.raises(StorageError, match="disk"):
            ingest(database, [LOG])
        filling.unlink()
        ingest(database, [LOG])
        assert rows(database) == rows(sqlite_database)
        assert problems(database) == []
