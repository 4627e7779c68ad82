from __future__ import annotations

import random
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from sqlalchemy import text

from collector.domain.errors import StorageError
from collector.domain.runs import RunRecord
from collector.domain.windows import Window
from collector.storage import engine as engine_module
from collector.storage.engine import open_database
from collector.storage.runs import list_runs, load_run, save_run
from collector.storage.sources import source_at

ROOT = Path(__file__).parents[2]


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="folder does not exist") as caught:
        open_database(f"sqlite:///{tmp_path / 'nowhere' / 'draftscope.db'}")
    assert caught.value.where == str(tmp_path / "nowhere")


def test_a_folder_in_place_of_a_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be opened"):
        open_database(f"sqlite:///{tmp_path}")


@pytest.mark.parametrize("content", [b"<!DOCTYPE html><html></html>" * 100, random.Random(7).randbytes(5000)])
def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "page.db"
    path.write_bytes(content)
    with pytest.raises(StorageError, match="not a draftscope database"):
        open_database(f"sqlite:///{path}")
    assert path.read_bytes() == content


def test_a_damaged_database_is_called_damaged(tmp_path: Path) -> None:
    path = tmp_path / "draftscope.db"
    with open_database(f"sqlite:///{path}") as database, database.transaction() as connection:
        source = source_at(connection, "input.log", at=1.0)
        windows = [Window(position, 1, float(position)) for position in range(5000)]
        save_run(connection, RunRecord("sglang", "input.log", windows=windows), source_id=source, at=1.0)
    content = bytearray(path.read_bytes())
    content[8192:-8192] = b"\xa5" * (len(content) - 16384)
    path.write_bytes(content)

    def read_all() -> None:
        with open_database(f"sqlite:///{path}") as damaged, damaged.reading() as reading:
            load_run(reading, 1)

    with pytest.raises(StorageError, match="damaged"):
        read_all()


def test_a_read_only_database_can_be_read_and_says_why_it_cannot_be_written(tmp_path: Path) -> None:
    path = tmp_path / "draftscope.db"
    with open_database(f"sqlite:///{path}") as database, database.transaction() as connection:
        source_at(connection, "input.log", at=1.0)
    with open_database(f"sqlite:///file:{path}?mode=ro&uri=true") as database:
        with database.reading() as connection:
            assert list_runs(connection).runs == ()
        with pytest.raises(StorageError, match="cannot be written to"), database.transaction() as connection:
            source_at(connection, "other.log", at=1.0)


def test_an_older_read_only_database_says_that_it_cannot_be_upgraded(tmp_path: Path) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    with pytest.raises(StorageError, match="cannot be written to"):
        open_database(f"sqlite:///file:{path}?mode=ro&uri=true")


def test_a_second_writer_waits_and_is_then_told(database_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engine_module, "BUSY_SECONDS", 0.2)
    with open_database(database_url, migrate=True) as first, open_database(database_url) as second:
        with first.transaction() as connection:
            source_at(connection, "input.log", at=1.0)
            with pytest.raises(StorageError, match="another process is writing"), second.transaction() as other:
                source_at(other, "other.log", at=1.0)
        with second.transaction() as other:
            assert source_at(other, "other.log", at=1.0) > 0


def test_a_reader_sees_one_moment_while_others_write(database_url: str) -> None:
    with open_database(database_url, migrate=True) as database:

        def add(ordinal: int) -> None:
            with database.transaction() as connection:
                source = source_at(connection, "input.log", at=1.0)
                save_run(connection, RunRecord("sglang", "input.log"), source_id=source, ordinal=ordinal, at=1.0)

        add(0)
        with database.reading() as connection:
            assert len(list_runs(connection).runs) == 1
            add(1)
            assert len(list_runs(connection).runs) == 1
        with database.reading() as connection:
            assert len(list_runs(connection).runs) == 2


def test_a_full_disk_is_called_full(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'draftscope.db'}"
    with open_database(url) as database:
        with database.transaction() as connection:
            source_at(connection, "input.log", at=1.0)
            pages = connection.execute(text("PRAGMA page_count")).scalar_one()

        def write_much() -> None:
            with database.transaction() as connection:
                connection.execute(text(f"PRAGMA max_page_count = {pages + 5}"))  # as a full disk answers
                windows = [Window(position, 1, float(position)) for position in range(5000)]
                save_run(connection, RunRecord("sglang", "input.log", windows=windows), source_id=1, at=1.0)

        with pytest.raises(StorageError, match="disk is full"):
            write_much()
        with database.reading() as connection:
            assert list_runs(connection).runs == ()


@pytest.mark.parametrize(
    "url", ["mysql://localhost/x", "sqlite://", "nonsense", "sqlite:///:memory:", "http://host:x/"]
)
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(StorageError, match=r"address|not supported"):
        open_database(url)


def test_a_server_that_is_not_there_is_unreachable_and_its_password_is_not_shown(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match="cannot be reached") as caught:
        open_database(f"postgresql://user:hidden-word@/draftscope?host={tmp_path}")
    assert "hidden-word" not in str(caught.value)


def test_a_database_that_is_not_there_is_named(own_postgres: str) -> None:
    with pytest.raises(StorageError, match="does not know the database"):
        open_database(own_postgres.replace("/postgres?", "/nowhere?"))


def test_a_connection_that_breaks_is_an_error_and_the_next_unit_of_work_goes_on(postgres_url: str) -> None:
    with open_database(postgres_url, migrate=True) as database:

        def write_on_a_connection_that_breaks() -> None:
            with database.transaction() as connection:
                source_at(connection, "input.log", at=1.0)
                with open_database(postgres_url) as other, other.reading() as killer:
                    pid = connection.execute(text("SELECT pg_backend_pid()")).scalar_one()
                    killer.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": pid})
                source_at(connection, "other.log", at=1.0)

        with pytest.raises(StorageError, match="cannot be reached"):
            write_on_a_connection_that_breaks()
        with database.transaction() as connection:
            assert source_at(connection, "again.log", at=1.0) > 0


def test_what_was_committed_survives_a_kill(tmp_path: Path) -> None:
    path = tmp_path / "draftscope.db"
    script = f"""
import os, signal
from collector.storage.engine import open_database
from collector.storage.sources import source_at
database = open_database("sqlite:///{path}")
with database.transaction() as connection:
    source_at(connection, "committed", at=1.0)
with database.transaction() as connection:
    source_at(connection, "not committed", at=1.0)
    os.kill(os.getpid(), signal.SIGKILL)
"""
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, check=False)
    assert done.returncode == -9
    with sqlite3.connect(path) as connection:
        assert connection.execute("SELECT path FROM sources").fetchall() == [("committed",)]
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
