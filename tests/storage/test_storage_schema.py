from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, inspect, select, text

from collector.domain.errors import StorageError
from collector.ingest import ingest
from collector.storage import schema
from collector.storage.check import check_database
from collector.storage.engine import Database, open_database
from collector.storage.tables import METADATA
from tests.storage.test_storage_tiers import START, scrape, window

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests" / "golden" / "logs" / "sglang" / "0.5.11-eagle3" / "log.txt"


def test_models_and_migrations_agree(database: Database) -> None:
    with database.engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True, "compare_server_default": True})
        assert compare_metadata(context, METADATA) == []


def test_every_revision_can_be_undone_and_done_again(database: Database) -> None:
    from alembic import command

    with database.engine.begin() as connection:
        config = schema.alembic_config()
        config.attributes["connection"] = connection
        command.downgrade(config, "base")
        assert set(inspect(connection).get_table_names()) <= {"alembic_version"}
        command.upgrade(config, "head")
        assert set(inspect(connection).get_table_names()) == {*METADATA.tables, "alembic_version"}
    assert schema.current(database.engine) == schema.head()


def test_every_constraint_and_index_has_a_name_by_the_convention() -> None:
    items = [item for table in METADATA.tables.values() for item in (*table.constraints, *table.indexes)]
    assert items
    for item in items:
        assert item.name is not None
        assert str(item.name)[:3] in {"pk_", "uq_", "ck_", "fk_", "ix_"}


def test_the_head_read_from_the_files_is_alembics() -> None:
    from alembic.script import ScriptDirectory

    script = ScriptDirectory.from_config(schema.alembic_config())
    assert script.get_current_head() == schema.head()
    assert {revision.revision for revision in script.walk_revisions()} == schema.revisions()


def test_sqlite_migrates_itself(sqlite_url: str) -> None:
    with open_database(sqlite_url) as database:
        assert schema.current(database.engine) == schema.head()
        with database.reading() as connection:
            pragmas = ("journal_mode", "auto_vacuum", "foreign_keys")
            set_to = [connection.execute(text(f"PRAGMA {pragma}")).scalar_one() for pragma in pragmas]
    assert set_to == ["wal", 2, 1]
    with open_database(sqlite_url) as again:
        assert schema.current(again.engine) == schema.head()


def test_postgresql_asks_before_it_is_migrated(postgres_url: str) -> None:
    with pytest.raises(StorageError, match="no draftscope schema") as caught:
        open_database(postgres_url)
    assert caught.value.hint == "draftscope db upgrade, or draftscope serve --migrate"
    with open_database(postgres_url, migrate=True) as database:
        assert schema.current(database.engine) == schema.head()
    open_database(postgres_url).close()


def rows_of(database: Database) -> dict[str, list[Any]]:
    with database.reading() as connection:
        tables = [METADATA.tables[name] for name in inspect(connection).get_table_names() if name in METADATA.tables]
        return {
            table.name: [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key.columns))]
            for table in tables
        }


def test_a_database_of_the_first_schema_is_brought_up_to_date_with_its_rows(database_url: str) -> None:
    from alembic import command

    with open_database(database_url, migrate=True) as database:
        with database.engine.begin() as connection:
            config = schema.alembic_config()
            config.attributes["connection"] = connection
            command.downgrade(config, "0001")
        ingest(database, [LOG])
        with database.transaction() as connection:
            scrape(connection, [window(START), window(START + 15)])
        before = rows_of(database)
    assert len(before) < len(METADATA.tables)
    assert {"decode_samples", "live_samples", "hour_samples"} <= {name for name, rows in before.items() if rows}
    if database_url.startswith("postgresql"):
        with pytest.raises(StorageError, match="older schema") as caught:
            open_database(database_url)
        assert caught.value.why == f"its schema is 0001, this release needs {schema.head()}"
        assert caught.value.hint == "draftscope db upgrade, or draftscope serve --migrate"
    with open_database(database_url, migrate=database_url.startswith("postgresql")) as database:
        after = rows_of(database)
        assert {name: after[name] for name in before} == before
        assert not any(rows for name, rows in after.items() if name not in before)
        assert [result for result in check_database(database) if result.problem] == []


def test_a_newer_schema_is_refused_and_left_alone(database_url: str) -> None:
    with open_database(database_url, migrate=True) as database, database.transaction() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(StorageError, match="newer draftscope") as caught:
        open_database(database_url, migrate=True)
    assert "upgrade draftscope" in caught.value.hint


def test_a_database_of_something_else_is_refused_and_left_alone(database_url: str) -> None:
    engine = create_engine(database_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE songs (title text)"))
    with pytest.raises(StorageError, match="belongs to something else"):
        open_database(database_url, migrate=True)
    assert inspect(engine).get_table_names() == ["songs"]
    engine.dispose()


def test_processes_that_open_an_empty_database_at_once_all_succeed(database_url: str) -> None:
    script = "import sys; from collector.storage.engine import open_database; open_database(sys.argv[1], migrate=True).close()"
    racers = [
        subprocess.Popen([sys.executable, "-c", script, database_url], cwd=ROOT, stderr=subprocess.PIPE)
        for _ in range(4)
    ]
    for racer in racers:
        _, errors = racer.communicate(timeout=60)
        assert racer.returncode == 0, errors.decode()


def test_migrations_are_found_in_an_installed_package(tmp_path: Path) -> None:
    """A wheel holds them below collector/storage; here its layout, made from the checkout."""
    import shutil

    site = tmp_path / "site"
    ignored = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "collector", site / "collector", ignore=ignored)
    shutil.copytree(ROOT / "migrations", site / "collector" / "storage" / "_migrations", ignore=ignored)
    script = (
        "from collector.storage import schema; from collector.storage.engine import open_database;"
        "print(schema.migrations_folder()); open_database('sqlite:///new.db').close()"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env={"PYTHONPATH": str(site)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(site / "collector" / "storage" / "_migrations")
