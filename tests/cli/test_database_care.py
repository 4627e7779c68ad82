"""``draftscope db`` as people use it, from one database to another."""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.cli.conftest import Ran

LOG = Path(__file__).parents[1] / "golden" / "logs" / "sglang" / "0.5.11-eagle3" / "log.txt"


@pytest.fixture
def named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Makes the settings name a database file in the test's folder, which is not made."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))

    def name(file: str) -> Path:
        monkeypatch.setenv("DRAFTSCOPE_DATABASE_URL", f"sqlite:///{tmp_path / file}")
        return tmp_path / file

    return name


def test_a_database_goes_into_files_and_back(draftscope: Callable[..., Ran], named: Callable[[str], Path]) -> None:
    named("first.db")
    assert draftscope("ingest", LOG).code == 0
    exported = draftscope("db", "export", "files")
    assert (exported.code, " tables in files" in exported.out) == (0, True)
    for folder, said in (("files", "the folder is not empty"), ("first.db", "this is no folder")):
        refused = draftscope("db", "export", folder)
        assert (refused.code, refused.out, said in refused.err) == (2, "", True)
    full = draftscope("db", "import", "files")
    assert (full.code, "the database is not empty" in full.err) == (2, True)
    named("second.db")
    imported = draftscope("db", "import", "files")
    assert imported.code == 0
    assert imported.out.split(" from ")[0] == exported.out.split(" in ")[0]
    checked = draftscope("db", "check")
    assert (checked.code, checked.out.count("fine"), "problem" in checked.out) == (0, 6, False)
    assert "known already" in draftscope("ingest", LOG).out
    nowhere = draftscope("db", "import", "nowhere")
    assert (nowhere.code, "this is no whole export" in nowhere.err) == (2, True)


@pytest.mark.parametrize("command", [("check",), ("prune",), ("export", "files")])
def test_a_database_that_is_not_there_is_not_taken_for_an_empty_one(
    draftscope: Callable[..., Ran], named: Callable[[str], Path], command: tuple[str, ...]
) -> None:
    file = named("misspelt.db")
    for _ in range(2):
        refused = draftscope("db", *command)
        assert (refused.code, refused.out) == (2, "")
        assert "there is no database yet" in refused.err
        assert "misspelt.db" in refused.err
        assert not file.exists()
    assert not Path("files").exists()


def test_old_windows_of_logs_are_added_up_once_and_the_run_stays(
    draftscope: Callable[..., Ran], named: Callable[[str], Path]
) -> None:
    file = named("draftscope.db")
    assert draftscope("ingest", LOG).code == 0
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("UPDATE runs SET ended_at = '2026-01-01T00:00:00.000000Z'")
    planned = draftscope("db", "prune", "--dry-run", "--logs-before", "1d")
    assert "logs: 19 windows of 1 run would be added up" in planned.out
    assert draftscope("db", "prune", "--dry-run", "--logs-before", "99999999d").out.count("0 windows of 0 runs") == 1
    done = draftscope("db", "prune", "--logs-before", "1d")
    assert (done.code, "logs: 19 windows of 1 run were added up" in done.out) == (0, True)
    assert "logs: 0 windows of 0 runs were" in draftscope("db", "prune", "--logs-before", "1d").out
    assert draftscope("db", "check").code == 0
    assert "3 windows read" in draftscope("runs", "show", "1").out


@pytest.mark.parametrize(
    ("age", "said"), [("90", "has no unit"), ("soon", "is not a duration"), ("-5d", "is not a duration")]
)
def test_an_age_that_could_mean_anything_is_refused(
    draftscope: Callable[..., Ran], named: Callable[[str], Path], age: str, said: str
) -> None:
    named("draftscope.db")
    assert draftscope("ingest", LOG).code == 0
    refused = draftscope("db", "prune", "--logs-before", age)
    assert (refused.code, refused.out, said in refused.err) == (2, "", True)


def test_all_can_be_kept_for_ever(draftscope: Callable[..., Ran], named: Callable[[str], Path]) -> None:
    named("draftscope.db")
    assert draftscope("ingest", LOG).code == 0
    Path("draftscope.toml").write_text("[retention]\nhour_days = 1000000000000000\n")
    assert draftscope("db", "prune").out.endswith("0 rows were deleted\n")


def test_what_a_damaged_database_lacks_is_told(draftscope: Callable[..., Ran], named: Callable[[str], Path]) -> None:
    file = named("draftscope.db")
    assert draftscope("ingest", LOG).code == 0
    shutil.copy(file, "copy.db")
    with closing(sqlite3.connect(file)) as connection, connection:
        connection.execute("DELETE FROM runs")
    checked = draftscope("db", "check")
    assert checked.code == 1
    assert "decode_samples: run_id 1 is not in runs" in checked.out
    assert "points to a row of runs that is not there" in checked.out
    named("copy.db")
    assert draftscope("db", "check").code == 0
