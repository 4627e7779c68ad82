"""Retention, export, import and the check of a database."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sqlalchemy import select, text

from collector.domain.errors import InputError, RefusedError, StorageError
from collector.domain.requests import RequestResult
from collector.domain.series import SeriesSample
from collector.domain.windows import PrefillWindow
from collector.ingest import ingest
from collector.storage.archive import MANIFEST, export_database, import_database
from collector.storage.check import check_database
from collector.storage.engine import Database, open_database
from collector.storage.limits import Retention
from collector.storage.live import streams_of, watched_runs
from collector.storage.requests import append_requests
from collector.storage.retention import due_cuts, let_go, prune_logs
from collector.storage.runs import list_runs, load_run
from collector.storage.states import run_states
from collector.storage.tables import LEASES, METADATA
from collector.storage.traces import traces_of_group, traces_of_run
from collector.storage.windows import append_series
from tests.storage.test_storage_tiers import START, scrape, window

LOG = Path(__file__).parents[1] / "golden" / "logs" / "sglang" / "0.5.11-eagle3" / "log.txt"
DAY = 86_400
NOW = START + 20 * DAY + 7200


@pytest.fixture
def filled(database: Database) -> Database:
    """A run that was watched for weeks, with pauses, and one from a log."""
    with database.transaction() as connection:
        for day in (0, 5, 12, 19, 20):
            windows = [window(START + day * DAY + 15 * number, length=1.5 + number % 7 / 4) for number in range(30)]
            prefills = [PrefillWindow(one.position, 0, one.at, one.unit, 10.0, 5.0) for one in windows[::3]]
            scrape(connection, windows, prefills)
    ingest(database, [LOG], now=lambda: START)
    return database


def everything(database: Database) -> dict[str, list[Any]]:
    with database.reading() as connection:
        return {
            table.name: [tuple(row) for row in connection.execute(select(table).order_by(*table.primary_key.columns))]
            for table in METADATA.sorted_tables
            if table is not LEASES
        }


def comparable(value: Any) -> Any:
    """The same for both databases: one orders JSON and writes its numbers its own way, the other holds NaN as text."""
    if isinstance(value, dict):
        return sorted((key, comparable(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return [comparable(item) for item in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return repr(float(value) + 0.0)
    return repr(value).strip("'")


def problems(database: Database) -> list[str]:
    return [f"{result.what}: {result.problem}" for result in check_database(database) if result.problem]


def totals(database: Database) -> list[tuple[float, ...]]:
    with database.reading() as connection:
        runs = [load_run(connection, run.id) for run in list_runs(connection).runs]
    names = ("verify_steps", "accepted_tokens", "generated_tokens", "prefills")
    return [tuple(sum(getattr(one, name) or 0 for one in run.windows) for name in names) for run in runs]


def test_an_export_is_read_by_others_and_gives_the_same_rows_back(filled: Database, tmp_path: Path) -> None:
    folder = tmp_path / "export"
    rows = export_database(filled, folder)
    assert json.loads((folder / MANIFEST).read_text())["rows"] == rows
    frame = pd.read_parquet(folder / "live_samples.parquet")
    assert len(frame) == rows["live_samples"] == 150
    assert frame["accepted_at"][0].tolist() == [200.0, 100.0]
    counted = (
        duckdb.connect()
        .execute(
            f"SELECT count(*), sum(verify_steps), max(epoch(started_at)) FROM '{folder}/decode_samples.parquet' AS windows "
            f"JOIN '{folder}/runs.parquet' AS runs ON runs.id = windows.run_id"
        )
        .fetchone()
    )
    assert counted is not None
    with filled.reading() as connection:
        steps = connection.execute(text("SELECT count(*), sum(verify_steps) FROM decode_samples")).one()
    assert counted[:2] == tuple(steps)
    assert counted[2] > 0
    with open_database(f"sqlite:///{tmp_path / 'again.db'}") as again:
        assert import_database(again, folder) == rows
        assert everything(again) == everything(filled)
        assert problems(again) == []
        with pytest.raises(RefusedError, match="not empty"):
            import_database(again, folder)
    with pytest.raises(RefusedError, match="not empty"):
        export_database(filled, folder)
    assert sorted(path.name for path in tmp_path.iterdir() if "draftscope.db" not in path.name) == [
        "again.db",
        "export",
    ]


KILLED = """
import os, signal, sys
from pathlib import Path
from collector.storage.archive import export_database
from collector.storage.engine import open_database
with open_database(sys.argv[1]) as database:
    export_database(database, Path(sys.argv[2]), lambda table, rows: os.kill(os.getpid(), signal.SIGKILL))
"""


def test_what_a_killed_export_leaves_goes_with_the_next_one(sqlite_database: Database, tmp_path: Path) -> None:
    ingest(sqlite_database, [LOG], now=lambda: START)
    folder = tmp_path / "exports" / "today"
    command = [sys.executable, "-c", KILLED, f"sqlite:///{tmp_path / 'draftscope.db'}", str(folder)]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert [path.name for path in folder.parent.iterdir() if path.is_dir()] == [".today.part"]

    def meanwhile(_table: str, _rows: int) -> None:
        with pytest.raises(RefusedError, match="another export into this folder is under way"):
            export_database(sqlite_database, folder)

    assert export_database(sqlite_database, folder, meanwhile)["runs"] == 1
    assert [path.name for path in folder.parent.iterdir()] == ["today"]
    with open_database(f"sqlite:///{tmp_path / 'again.db'}") as again:
        import_database(again, folder)
        assert everything(again) == everything(sqlite_database)


def test_an_export_of_sqlite_becomes_the_same_database_on_a_server(
    sqlite_database: Database, postgres_url: str, tmp_path: Path
) -> None:
    with sqlite_database.transaction() as connection:
        run_id = scrape(connection, [window(START), window(START + 15, printed_length=float("nan"))])
    ingest(sqlite_database, [LOG], now=lambda: START)
    export_database(sqlite_database, tmp_path / "export")
    with open_database(postgres_url, migrate=True) as server:
        import_database(server, tmp_path / "export")
        assert comparable(everything(server)) == comparable(everything(sqlite_database))
        assert problems(server) == []
        with server.transaction() as connection:  # numbers go on behind those that came
            assert scrape(connection, [window(START + 30)]) == run_id
            assert len(load_run(connection, run_id).windows) == 3


def altered(folder: Path, table: str, change: Callable[[pa.Table], pa.Table]) -> None:
    path = folder / f"{table}.parquet"
    pq.write_table(change(pq.read_table(path)), path)


def with_column(name: str, value: Any, kind: pa.DataType) -> Callable[[pa.Table], pa.Table]:
    return lambda rows: rows.set_column(rows.schema.get_field_index(name), name, pa.array([value] * len(rows), kind))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("no manifest", "no whole export; draftscope.json"),
        ("missing file", "runs.parquet"),
        ("cut file", "arguments.parquet"),
        ("missing rows", "arguments has"),
        ("no rows", "does not say how many rows"),
        ("other schema", "its schema is 0000"),
        ("a column less", "its columns are not those"),
        ("another type", "its columns are not those"),
        ("no JSON", "runs holds what cannot be read"),
        ("an origin that is none", "live_samples holds what cannot be read"),
        ("rows twice", "of them twice"),
        ("rows of no run", "run_id 99 is not in runs"),
    ],
)
def test_a_damaged_export_leaves_the_database_empty(
    sqlite_database: Database, tmp_path: Path, damage: str, said: str
) -> None:
    folder = tmp_path / "export"
    ingest(sqlite_database, [LOG], now=lambda: START)
    with sqlite_database.transaction() as connection:
        scrape(connection, [window(START)])
    export_database(sqlite_database, folder)
    manifest = json.loads((folder / MANIFEST).read_text())
    if damage == "no manifest":
        (folder / MANIFEST).unlink()
    elif damage == "missing file":
        (folder / "runs.parquet").unlink()
    elif damage == "cut file":
        file = folder / "arguments.parquet"
        file.write_bytes(file.read_bytes()[:-20])
    elif damage == "missing rows":
        manifest["rows"]["arguments"] += 1
        (folder / MANIFEST).write_text(json.dumps(manifest))
    elif damage == "no rows":
        (folder / MANIFEST).write_text(json.dumps({**manifest, "rows": None}))
    elif damage == "other schema":
        (folder / MANIFEST).write_text(json.dumps({**manifest, "schema": "0000"}))
    elif damage == "a column less":
        altered(folder, "decode_samples", lambda rows: rows.drop_columns(["accepted_at"]))
    elif damage == "another type":
        altered(folder, "runs", with_column("started_at", "yesterday", pa.string()))
    elif damage == "no JSON":
        altered(folder, "runs", with_column("labels", "{", pa.string()))
    elif damage == "an origin that is none":
        altered(folder, "live_samples", with_column("origin", "heaven", pa.string()))
    elif damage == "rows twice":
        altered(folder, "decode_samples", lambda rows: pa.concat_tables([rows, rows]))
    else:
        altered(folder, "decode_samples", with_column("run_id", 99, pa.int64()))
    with open_database(f"sqlite:///{tmp_path / 'other.db'}") as other:
        with pytest.raises(InputError, match=said):
            import_database(other, folder)
        assert not any(everything(other).values())


def test_what_is_older_than_it_is_kept_is_let_go_and_no_count_is_lost(filled: Database) -> None:
    assert problems(filled) == []
    before = totals(filled)
    with filled.reading() as connection:
        states = run_states(connection)
        planned = due_cuts(connection, Retention(), now=NOW)
    done = let_go(filled, Retention(), now=NOW)
    assert done == planned
    with filled.reading() as connection:
        again = due_cuts(connection, Retention(), now=NOW)
        assert [cut.rows for cut in again] == [0] * len(again)
        assert run_states(connection) == states
        raw = connection.execute(text("SELECT min(at), count(*) FROM live_samples")).one()
    assert (raw[0], raw[1]) == (START + 19 * DAY, 60)
    assert {cut.table: cut.rows > 0 for cut in done} == {
        "live_samples": True,
        "minute_samples": True,
        "fleet_minute_samples": True,
        "hour_samples": False,
        "fleet_hour_samples": False,
        "series_samples": False,
    }
    assert totals(filled) == before
    assert problems(filled) == []


def test_who_reads_for_long_keeps_what_is_read_and_it_goes_the_next_time(postgres_url: str) -> None:
    with open_database(postgres_url, migrate=True) as database, open_database(postgres_url) as other:
        with database.transaction() as connection:
            scrape(connection, [window(START), window(START + 20 * DAY)])
        count = text("SELECT count(*) FROM live_samples")
        with other.reading() as reader:
            assert reader.execute(count).scalar_one() == 2
            with pytest.raises(StorageError, match="another process"):
                let_go(database, Retention(), now=NOW)
            with database.transaction() as connection:  # nobody waits for it
                scrape(connection, [window(START + 20 * DAY + 15)])
            assert reader.execute(count).scalar_one() == 2
        assert sum(cut.rows for cut in let_go(database, Retention(), now=NOW)) > 0
        with database.reading() as connection:
            assert connection.execute(count).scalar_one() == 2
        assert problems(database) == []


def test_windows_of_old_logs_are_added_up_when_asked(filled: Database) -> None:
    before = totals(filled)
    with filled.reading() as connection:
        states = run_states(connection)
        count = connection.execute(text("SELECT count(*) FROM decode_samples")).scalar_one()
        ended = max(run.ended_at or 0.0 for run in list_runs(connection).runs if run.source != "http://gpu7:30000")
    assert list(prune_logs(filled, ended)) == []
    pruned = list(prune_logs(filled, ended + 1))
    assert sum(windows for _, windows in pruned) == count > 0
    assert list(prune_logs(filled, ended + 1)) == []
    assert totals(filled) == before
    assert problems(filled) == []
    with filled.reading() as connection:
        assert run_states(connection) == states
        assert connection.execute(text("SELECT count(*) FROM decode_samples")).scalar_one() == 0


def test_a_log_that_grows_after_its_windows_were_added_up_is_counted_once(database: Database, tmp_path: Path) -> None:
    lines = LOG.read_bytes().splitlines(keepends=True)
    log = tmp_path / "server.log"
    log.write_bytes(b"".join(lines[:-6]))
    ingest(database, [log], now=lambda: START)
    part = totals(database)
    pruned = sum(windows for _, windows in prune_logs(database, NOW * 2))
    ingest(database, [log], now=lambda: START)
    assert totals(database) == part
    with database.reading() as connection:
        assert watched_runs(connection) == set()
    log.write_bytes(b"".join([*lines, *lines[-6:]]))
    ingest(database, [log], now=lambda: START)
    whole = totals(database)
    with database.reading() as connection:
        (run,) = list_runs(connection).runs
        assert len(load_run(connection, run.id).windows) >= pruned > 0
        assert streams_of(connection, [run.id]) == {}
    with open_database(f"sqlite:///{tmp_path / 'other.db'}") as other:
        ingest(other, [log], now=lambda: START)
        assert totals(other) == whole
    assert sum(windows for _, windows in prune_logs(database, NOW * 2)) >= pruned
    assert totals(database) == whole
    assert problems(database) == []


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE minute_samples SET verify_steps = verify_steps + 1", "minutes are the sums of raw windows"),
        ("UPDATE hour_samples SET acceptance_low = acceptance_low - 0.1", "hours are the sums of minutes"),
        ("DELETE FROM fleet_minute_samples", "the fleet is the sum of its runs"),
        ("UPDATE live_samples SET stream_id = stream_id + 100", "samples belong to something"),
    ],
)
def test_the_check_finds_what_does_not_fit(database: Database, damage: str, said: str) -> None:
    with database.transaction() as connection:
        scrape(connection, [window(START), window(START + 15)])
        connection.execute(text(damage))
    assert any(problem.startswith(said) for problem in problems(database))


@pytest.mark.parametrize(
    ("damage", "said"),
    [
        ("UPDATE decode_samples SET run_id = 77", "decode_samples: run_id 77 is not in runs"),
        ("UPDATE prefill_samples SET source_id = 78", "prefill_samples: source_id 78 is not in sources"),
        ("UPDATE decode_samples SET unit_id = 79", "decode_samples: unit_id 79 is not in units"),
        ("UPDATE request_results SET run_id = 80", "request_results: run_id 80 is not in runs"),
        ("UPDATE series_samples SET series_id = 81", "series_samples: series_id 81 is not in series"),
        ("DELETE FROM live_streams", "live_samples: stream_id 1 is not in live_streams"),
        ("DELETE FROM run_groups", "fleet_hour_samples: group_id 1 is not in run_groups"),
    ],
)
def test_the_check_finds_rows_that_belong_to_nothing(database: Database, damage: str, said: str) -> None:
    ingest(database, [LOG], now=lambda: START)
    with database.transaction() as connection:
        run_id = scrape(connection, [window(START)])
        append_series(connection, run_id, [SeriesSample("queue", {}, START, 1.0)])
        append_requests(connection, run_id, 1, [RequestResult("vllm", "key")])
    assert problems(database) == []
    with database.transaction() as connection:
        connection.execute(text(damage))
    assert any(said in problem for problem in problems(database))


def test_a_trace_has_the_lowest_and_highest_of_each_stretch(filled: Database) -> None:
    seeded = {"length": 1.1}
    with filled.transaction() as connection:
        run_id = scrape(
            connection, [window(START + 20 * DAY + 3600 + 15 * n, **(seeded if n == 37 else {})) for n in range(240)]
        )
        (whole,) = traces_of_run(connection, run_id, ["acceptance_length"])
        (recent,) = traces_of_run(connection, run_id, ["acceptance_length"], since=START + 20 * DAY)
        (few,) = traces_of_run(connection, run_id, ["acceptance_length"], since=START + 20 * DAY, points=5)
        (fleet,) = traces_of_group(connection, "chat", ["acceptance_length"], since=START + 20 * DAY)
        (busy,) = traces_of_run(connection, run_id, ["running_requests"])
    assert (recent.tier, fleet.tier) == ("raw", "minute")
    dip = 1 + 32 / 320
    for trace in (whole, recent, few, fleet):
        assert min(trace.low) == dip
        assert len(trace.at) == len(trace.value) == len(trace.low) == len(trace.high) <= 2000
        assert all(low <= value <= high for low, value, high in zip(trace.low, trace.value, trace.high, strict=True))
    assert len(few.at) <= 6
    assert set(busy.value) == {8.0}
