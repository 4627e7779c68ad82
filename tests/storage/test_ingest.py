from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from collector import ingest as ingest_module
from collector.bundle import BundleOptions, read_bundle, read_log
from collector.domain.errors import InputError, UnreadableInput
from collector.domain.findings import Confidence, Finding, Severity
from collector.domain.runs import Role, RunRecord
from collector.domain.series import SeriesSample
from collector.domain.windows import Origin, Window
from collector.ingest import IngestReport, ingest, load_for_judgement
from collector.storage.engine import Database, open_database
from collector.storage.findings import Judgement, save_judgement
from collector.storage.relations import load_bundle, previous_of
from collector.storage.runs import list_runs, load_run, load_stored
from collector.storage.scrapes import Overtaken, save_scrape, scraped_at
from collector.storage.sources import load_readings
from collector.storage.windows import load_series
from tests.storage.test_storage_records import canonical, counts

ROOT = Path(__file__).parents[2]
CASES = sorted(path.parent for path in (ROOT / "tests" / "cases").glob("*/input.log"))
GOLDEN = ROOT / "tests" / "golden" / "logs" / "sglang"
RESTARTS = GOLDEN / "0.5.11-restarts" / "log.txt"
SOAK = os.environ.get("DRAFTSCOPE_SOAK") == "1"
KILLS = 100 if SOAK else 10


def everything(database: Database) -> object:
    """All that is stored, without the numbers that rows were given."""
    with database.reading() as connection:
        runs = list_runs(connection, limit=1000).runs
        told = []
        for run in runs:
            previous = previous_of(connection, run.id)
            told.append(
                (
                    canonical(load_run(connection, run.id)),
                    [replace(reading, source="") for reading in load_readings(connection, run.id)],
                    None if previous is None else load_stored(connection, previous).started_at,
                    run.serving,
                )
            )
        return counts(connection), sorted(told, key=repr)


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest_module, "BATCH_BYTES", 4096)
    monkeypatch.setattr("collector.sources.file.BLOCK_BYTES", 1024)
    monkeypatch.setattr("collector.formats.reader.HEAD_BYTES", 4096)


@pytest.fixture
def fresh(tmp_path: Path) -> Iterator[Callable[[], Database]]:
    """Further empty SQLite databases, for what should have come out."""
    opened: list[Database] = []

    def make() -> Database:
        opened.append(open_database(f"sqlite:///{tmp_path / f'fresh-{len(opened)}.db'}"))
        return opened[-1]

    yield make
    for database in opened:
        database.close()


@pytest.mark.parametrize("case", CASES, ids=lambda path: path.name)
def test_a_stored_bundle_is_the_bundle_that_was_read(database: Database, case: Path) -> None:
    read = read_bundle([case])
    report = ingest(database, [case])
    with database.reading() as connection:
        stored = load_bundle(connection, report.subjects[0])
        for role in ("subject", "previous", "baseline"):
            expected, found = getattr(read, role), getattr(stored, role)
            assert (found is None) == (expected is None)
            if expected is not None:
                assert canonical(found) == canonical(expected)
    assert report.rows == sum(
        len(run.windows) + len(run.prefills) for run in (read.subject, read.previous, read.baseline) if run is not None
    )


def test_every_run_of_a_log_is_stored_and_follows_the_one_before(database: Database) -> None:
    expected, reading = read_log(RESTARTS, source=str(RESTARTS))
    report = ingest(database, [RESTARTS])
    assert report.files[0].reading == reading
    assert len(report.run_ids) == len(expected) == 3
    with database.reading() as connection:
        for run_id, record in zip(report.run_ids, expected, strict=True):
            assert canonical(load_run(connection, run_id)) == canonical(record)
        assert [previous_of(connection, run_id) for run_id in report.run_ids] == [None, *report.run_ids[:2]]
    assert report.subjects == report.run_ids[-1:]


def test_repeating_adds_nothing_and_reads_nothing(database: Database) -> None:
    paths = [CASES[0], CASES[1], RESTARTS]
    first = ingest(database, paths)
    once = everything(database)
    again = ingest(database, paths)
    assert everything(database) == once
    assert again.rows == 0
    assert all(file.unchanged for file in again.files)
    assert (again.run_ids, again.subjects) == (first.run_ids, first.subjects)
    assert [file.reading for file in again.files] == [file.reading for file in first.files]


@pytest.mark.usefixtures("small_batches")
def test_a_growing_log_ends_as_if_read_at_once(tmp_path: Path, fresh: Callable[[], Database]) -> None:
    content = RESTARTS.read_bytes()
    whole = tmp_path / "server.log"
    whole.write_bytes(content)
    at_once = fresh()
    ingest(at_once, [whole])
    expected = everything(at_once)
    chance = random.Random(3)
    for _ in range(20 if SOAK else 3):
        growing = fresh()
        cuts = sorted(chance.sample(range(5000, len(content)), 3))
        for cut in (*cuts, len(content)):
            whole.write_bytes(content[:cut])
            ingest(growing, [whole])
        assert everything(growing) == expected


def test_what_only_the_end_of_a_log_decided_is_decided_anew_when_more_follows(
    tmp_path: Path, fresh: Callable[[], Database]
) -> None:
    lines = RESTARTS.read_bytes().splitlines(keepends=True)
    arguments = next(line for line in lines if b"server_args=" in line)
    decode = next(line for line in lines if b"Decode batch" in line)
    failed = [b"Traceback (most recent call last):\n", b'  File "x.py", line 1, in f\n', b"ValueError: no such file\n"]
    decode = decode.replace(b"#queue-req: 0", b"#queue-req: 123")
    start = b"".join([arguments, *failed])
    log = tmp_path / "server.log"
    content = start + decode + decode
    log.write_bytes(content)
    at_once = fresh()
    ingest(at_once, [log])
    growing = fresh()
    # Cut before the run serves: the exception seems to have ended it. Cut inside the last number: it seems to be 12.
    for end in (len(start), len(start) + len(decode) // 2, len(content) - 2, len(content)):
        log.write_bytes(content[:end])
        ingest(growing, [log])
    assert everything(growing) == everything(at_once)


@pytest.mark.usefixtures("small_batches")
def test_a_log_read_to_its_end_and_not_yet_decided_is_not_taken_for_complete(
    tmp_path: Path, fresh: Callable[[], Database], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(RESTARTS.read_bytes()[:60_000] + b"\n")
    at_once, interrupted = fresh(), fresh()
    ingest(at_once, [log])
    monkeypatch.setattr(ingest_module, "BATCH_BYTES", 1)
    with monkeypatch.context() as patch:

        def interrupt(_reader: object) -> None:
            raise KeyboardInterrupt

        patch.setattr("collector.formats.reader.LogReader.finish", interrupt)
        with pytest.raises(KeyboardInterrupt):
            ingest(interrupted, [log])
    ingest(interrupted, [log])
    assert everything(interrupted) == everything(at_once)


@pytest.mark.usefixtures("small_batches")
def test_an_interruption_between_any_two_commits_is_made_good(tmp_path: Path, fresh: Callable[[], Database]) -> None:
    log = tmp_path / "server.log"
    log.write_bytes(RESTARTS.read_bytes()[:60_000])
    at_once = fresh()
    calls: list[int] = []
    ingest(at_once, [log], progress=lambda _source, done, _size: calls.append(done))
    expected = everything(at_once)
    interrupted = fresh()
    for stop in calls[:: 1 if SOAK else 6]:

        def progress(_source: str, done: int, _size: int | None, stop: int = stop) -> None:
            if done == stop:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            ingest(interrupted, [log], progress=progress)
    ingest(interrupted, [log])
    assert everything(interrupted) == expected


def long_log(path: Path, lines: int) -> None:
    """A log of several runs: real argument lines, and decode lines of a real form."""
    head = RESTARTS.read_bytes().splitlines(keepends=True)
    arguments = next(line for line in head if b"server_args=" in line)
    with path.open("wb") as stream:
        for number in range(lines):
            minutes, seconds = divmod(number // 4, 60)
            hours, minutes = divmod(minutes, 60)
            stamp = b"2026-11-29 %02d:%02d:%02d" % (hours, minutes, seconds)
            if number % (lines // 3 + 1) == 0:
                stream.write(b"[%s%s" % (stamp, arguments[20:]))
            stream.write(
                b"[%s] Decode batch, #running-req: %d, #token: %d, token usage: 0.05, accept len: %.2f, "
                b"accept rate: %.2f, cuda graph: True, gen throughput (token/s): %.2f, #queue-req: 0\n"
                % (stamp, 1 + number % 7, 100 + number, 1.5 + number % 9 / 10, 0.4, 100 + number % 50)
            )
            if number % 3 == 0:
                stream.write(b"[%s] Prefill batch, #new-seq: 1, #new-token: %d, #cached-token: 1, token usage: 0.00, "
                             b"#running-req: 0, #queue-req: 0\n" % (stamp, number))  # fmt: skip


CHILD = """
import sys
from pathlib import Path
import collector.sources.file, collector.formats.blocks, collector.formats.reader, collector.formats.sglang.session
from collector import ingest
from collector.storage.engine import open_database
ingest.BATCH_BYTES = 32768
collector.sources.file.BLOCK_BYTES = collector.formats.reader.HEAD_BYTES = 16384
collector.formats.blocks.LARGE = collector.formats.sglang.session.LARGE = 1  # read as arrays
database = open_database(sys.argv[1], migrate=True)
print("ready", flush=True)
sys.stdin.readline()
ingest.ingest(database, [Path(sys.argv[2])])
print("done", flush=True)
"""


def start_child(url: str, log: Path) -> subprocess.Popen[str]:
    """A process that has opened the database and begins to store on the first line of its input."""
    child = subprocess.Popen(
        [sys.executable, "-c", CHILD, url, str(log)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    return child


def go(child: subprocess.Popen[str]) -> None:
    assert child.stdin is not None
    child.stdin.write("go\n")
    child.stdin.flush()


@pytest.mark.soak
def test_after_kills_at_random_moments_the_rows_are_those_of_an_undisturbed_run(
    tmp_path: Path, database_url: str, fresh: Callable[[], Database]
) -> None:
    log = tmp_path / "server.log"
    long_log(log, 3000)
    at_once = fresh()
    began = time.monotonic()
    ingest(at_once, [log])
    duration = time.monotonic() - began
    expected = everything(at_once)
    chance = random.Random(11)
    killed = 0
    for _ in range(KILLS // 2):
        child = start_child(database_url, log)
        go(child)
        time.sleep(chance.uniform(0, 2 * duration))
        child.send_signal(signal.SIGKILL)
        output, errors = child.communicate(timeout=60)
        assert errors == ""
        killed += "done" not in output
    assert killed > 0
    with open_database(database_url, migrate=True) as database:
        ingest(database, [log])
        assert everything(database) == expected
        assert ingest(database, [log]).rows == 0


def test_processes_that_store_one_log_at_once_store_it_once(
    tmp_path: Path, database_url: str, fresh: Callable[[], Database]
) -> None:
    log = tmp_path / "server.log"
    long_log(log, 1500)
    at_once = fresh()
    ingest(at_once, [log])
    children = [start_child(database_url, log) for _ in range(3)]
    for child in children:
        go(child)
    for child in children:
        output, errors = child.communicate(timeout=60)
        assert (output, errors) == ("done\n", "")
    with open_database(database_url) as database:
        assert everything(database) == everything(at_once)


def test_readers_see_whole_batches_while_a_log_is_stored(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = tmp_path / "server.log"
    long_log(log, 600)
    monkeypatch.setattr(ingest_module, "BATCH_BYTES", 20_000)
    monkeypatch.setattr("collector.sources.file.BLOCK_BYTES", 10_000)
    monkeypatch.setattr("collector.formats.reader.HEAD_BYTES", 10_000)
    seen: list[int] = []

    def look(_source: str, _done: int, _size: int | None) -> None:
        with open_database(database_url, migrate=True) as other, other.reading() as connection:
            seen.append(sum(len(load_run(connection, run.id).windows) for run in list_runs(connection).runs))

    with open_database(database_url, migrate=True) as database:
        report = ingest(database, [log], progress=look)
    assert seen == sorted(seen)
    assert len(set(seen)) > 3
    assert report.files[0].windows == 600


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    script = """
import re, sys
from pathlib import Path
from collector import ingest
from collector.storage.engine import open_database
def peak():
    return int(re.search(r"VmHWM:\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1])
ingest.BATCH_BYTES = 1_000_000
database = open_database(f"sqlite:///{sys.argv[1]}/x.db")
ingest.ingest(database, [Path(sys.argv[2])])
before = peak()
ingest.ingest(database, [Path(sys.argv[3])])
print((peak() - before) // 1024)
"""
    small, large = tmp_path / "small.log", tmp_path / "large.log"
    long_log(small, 24_000)
    long_log(large, 200_000)
    done = subprocess.run(
        [sys.executable, "-c", script, tmp_path, small, large], cwd=ROOT, capture_output=True, text=True, check=True
    )
    # Measured: 8 MiB; 25 MiB where all rows of these 47 MB are held until the end.
    assert int(done.stdout) < 14


def test_a_copy_and_a_renamed_log_are_the_same_source(database: Database, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    shutil.copy(RESTARTS, log)
    first = ingest(database, [log])
    copy = tmp_path / "copy.log"
    shutil.copy(log, copy)
    assert ingest(database, [copy]).run_ids == first.run_ids
    rotated = log.rename(tmp_path / "server.log.1")
    again = ingest(database, [rotated])
    assert (again.run_ids, again.rows) == (first.run_ids, 0)


def test_a_new_log_under_an_old_name_is_another_source(database: Database, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    shutil.copy(RESTARTS, log)
    first = ingest(database, [log])
    shutil.copy(GOLDEN / "0.5.9-eagle3" / "log.txt", log)
    second = ingest(database, [log])
    assert not set(first.run_ids) & set(second.run_ids)
    with database.reading() as connection:
        assert len(list_runs(connection).runs) == len(first.run_ids) + len(second.run_ids)


def test_replicas_whose_logs_begin_alike_stay_apart(database: Database, tmp_path: Path) -> None:
    one, other = tmp_path / "one.log", tmp_path / "other.log"
    long_log(one, 300)
    other.write_bytes(one.read_bytes().replace(b"#running-req: 7", b"#running-req: 9"))
    assert not set(ingest(database, [one]).run_ids) & set(ingest(database, [other]).run_ids)


def test_what_is_stated_about_a_log_later_is_believed(database: Database, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    lines = [line for line in RESTARTS.read_bytes().splitlines(keepends=True) if b"Decode batch" in line]
    log.write_bytes(b"".join(lines[:10]))
    (run_id,) = ingest(database, [log]).run_ids
    with database.reading() as connection:
        before = load_run(connection, run_id)
    launch = tmp_path / "launch.txt"
    launch.write_text("python -m sglang.launch_server --model-path /models/t --decode-log-interval 10\n")
    report = ingest(database, [log], BundleOptions(launch=launch))
    assert report.run_ids == [run_id]
    with database.reading() as connection:
        after = load_run(connection, run_id)
    expected = read_bundle([log], BundleOptions(launch=launch)).subject
    assert canonical(after) == canonical(expected)
    assert [window.verify_steps for window in after.windows] != [window.verify_steps for window in before.windows]


def test_labels_deployment_and_the_sample_mark_are_put_on_every_run(database: Database) -> None:
    report = ingest(database, [RESTARTS], deployment="chat", labels={"team": "a"}, sample=True)
    with database.reading() as connection:
        for run_id in report.run_ids:
            stored = load_stored(connection, run_id)
            assert (stored.deployment, stored.labels, stored.sample) == ("chat", {"team": "a"}, True)


def test_logs_that_lie_together_are_not_taken_for_each_others_past(database: Database, tmp_path: Path) -> None:
    for name in ("0.5.9-eagle3", "0.5.11-eagle3"):
        shutil.copy(GOLDEN / name / "log.txt", tmp_path / f"{name}.log")
    report = ingest(database, [tmp_path])
    with database.reading() as connection:
        rows = [load_bundle(connection, run_id) for run_id in report.run_ids]
    starts = sorted(row.subject.started_at or 0 for row in rows)
    earlier = [row.previous.started_at for row in rows if row.previous is not None]
    assert earlier in ([], starts[:1])


def test_a_launch_command_alone_is_a_run(database: Database, tmp_path: Path) -> None:
    launch = tmp_path / "launch.txt"
    launch.write_text("python -m sglang.launch_server --model-path /models/t --speculative-num-steps 3\n")
    (run_id,) = ingest(database, [launch]).run_ids
    assert ingest(database, [launch]).run_ids == [run_id]
    with database.reading() as connection:
        assert load_run(connection, run_id).arguments["speculative_num_steps"].requested == 3


@pytest.mark.parametrize("content", [b"", b"\n\n", b"<!doctype html><html>", random.Random(5).randbytes(20_000)])
def test_what_cannot_be_read_is_an_error_and_stores_nothing(database: Database, tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "input.log"
    path.write_bytes(content)
    with pytest.raises(InputError):
        ingest(database, [path])
    with database.reading() as connection:
        assert set(counts(connection).values()) == {0}


def test_one_unreadable_input_does_not_hide_the_rest(database: Database, tmp_path: Path) -> None:
    report = ingest(database, [tmp_path / "missing.log", RESTARTS])
    assert len(report.run_ids) == 3
    assert "there is no such file" in report.problems[0]
    with pytest.raises(UnreadableInput, match="no such file"):
        ingest(database, [tmp_path / "missing.log"])


def test_a_pipe_is_read_once_and_known_again(sqlite_database: Database, tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)

    def through_the_pipe() -> IngestReport:
        writer = threading.Thread(target=lambda: pipe.write_bytes(RESTARTS.read_bytes()))
        writer.start()
        report = ingest(sqlite_database, [pipe])
        writer.join()
        return report

    first = through_the_pipe()
    again = through_the_pipe()
    assert (len(first.run_ids), first.rows > 0) == (3, True)
    assert (again.run_ids, again.rows) == (first.run_ids, 0)


def test_lines_are_quoted_from_the_log_and_from_the_store_once_it_is_gone(
    sqlite_database: Database, tmp_path: Path
) -> None:
    log = tmp_path / "server.log"
    shutil.copy(RESTARTS, log)
    run_id = ingest(sqlite_database, [log]).run_ids[1]
    with sqlite_database.transaction() as connection:
        record = load_for_judgement(connection, run_id).subject
        assert record.line_text is not None
        quoted, other = record.windows[2], record.windows[3]
        text = record.line_text(quoted.position)
        assert text == log.read_text().splitlines()[quoted.line - 1]
        from collector.domain.evidence import Evidence

        found = Finding(
            "MEA005", "warmup-window-excluded", Severity.INFO, Confidence.HIGH, "left out", "it is the first",
            evidence=(Evidence(str(log), quoted.line, text),),
        )  # fmt: skip
        save_judgement(connection, run_id, Judgement(findings=(found,)), at=1.0)
    log.unlink()
    with sqlite_database.reading() as connection:
        record = load_for_judgement(connection, run_id).subject
        assert record.line_text is not None
        assert record.line_text(quoted.position) == text
        assert record.line_text(other.position) is None


def test_scrapes_of_one_process_are_one_run_and_a_restart_is_another(database: Database) -> None:
    address = "http://127.0.0.1:30000/metrics"

    def scrape(start: float, at: float) -> int:
        window = Window(int(at * 1000), 0, at, "TP0", verify_steps=40.0, accepted_tokens=30.0, origin=Origin.COUNTERS)
        record = RunRecord(
            "sglang", address, started_at=start, ended_at=at, host="127.0.0.1", port=30000, windows=[window]
        )
        with database.transaction() as connection:
            after, series = scraped_at(connection, address), [SeriesSample("queue", {}, at, 1.0)]
            return save_scrape(connection, record, series, address=address, after=after, at=at)

    first = scrape(100.25, 200.0)
    assert scrape(100.25, 215.0) == first
    assert scrape(100.25, 215.0) == first
    second = scrape(300.5, 310.0)
    assert second != first
    assert scrape(300.5, 325.0) == second
    with database.reading() as connection:
        record = load_run(connection, first)
        assert [window.at for window in record.windows] == [200.0, 215.0]
        assert (record.started_at, record.ended_at) == (100.25, 215.0)
        assert [sample.at for sample in load_series(connection, first, "queue")] == [200.0, 215.0]
        assert len(load_run(connection, second).windows) == 2


def test_a_scrape_that_was_overtaken_is_not_stored(database: Database) -> None:
    record = RunRecord("sglang", "http://gpu7:30000/metrics", started_at=100.0, host="gpu7", port=30000)
    with database.transaction() as connection:
        save_scrape(connection, record, address="http://gpu7:30000", after=None, at=200.0)
    with database.transaction() as connection, pytest.raises(Overtaken):
        save_scrape(connection, record, address="http://gpu7:30000", after=None, at=215.0)
    with database.reading() as connection:
        assert scraped_at(connection, "http://gpu7:30000") == 200.0
        assert scraped_at(connection, "http://gpu8:30000") is None


def test_roles_are_stored_as_runs_of_their_own_and_linked(database: Database, tmp_path: Path) -> None:
    subject, previous, baseline = (tmp_path / name for name in ("now.log", "before.log", "plain.log"))
    shutil.copy(GOLDEN / "0.5.11-eagle3" / "log.txt", subject)
    shutil.copy(GOLDEN / "0.5.9-eagle3" / "log.txt", previous)
    shutil.copy(GOLDEN / "0.5.9-baseline" / "log.txt", baseline)
    options = BundleOptions(previous=previous, baseline=baseline)
    read = read_bundle([subject], options)
    report = ingest(database, [subject], options)
    with database.reading() as connection:
        stored = load_bundle(connection, report.subjects[0])
    for role in Role:
        assert canonical(getattr(stored, role.value)) == canonical(getattr(read, role.value))
