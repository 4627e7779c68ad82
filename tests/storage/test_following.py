"""Logs that are rotated, compressed, cut or still written end in the database as the whole log does."""

from __future__ import annotations

import bz2
import gzip
import lzma
import os
import random
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path

import pytest
import zstandard

from collector import ingest as ingest_module
from collector.bundle import BundleOptions, read_bundle
from collector.dry_run import dry_run
from collector.following import LogFollower
from collector.ingest import ingest
from collector.log_writer import Owner
from collector.storage.engine import Database, open_database
from collector.storage.runs import list_runs, load_run

GOLDEN = Path(__file__).parents[1] / "golden" / "logs" / "sglang"
RESTARTS = (GOLDEN / "0.5.11-restarts" / "log.txt").read_bytes()
SOAK = os.environ.get("DRAFTSCOPE_SOAK") == "1"
PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with open_database(f"sqlite:///{tmp_path / 'runs.db'}") as opened:
        yield opened


@pytest.fixture
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (ingest_module, "collector.following"):
        target = module if isinstance(module, str) else module.__name__
        monkeypatch.setattr(f"{target}.BATCH_BYTES", 4096)
    monkeypatch.setattr("collector.sources.file.BLOCK_BYTES", 1024)
    monkeypatch.setattr("collector.formats.reader.HEAD_BYTES", 4096)


def runs(database: Database) -> list[object]:
    """All runs without where their rows stand in a file."""
    with database.reading() as connection:
        records = [load_run(connection, run.id) for run in list_runs(connection, limit=100).runs]
    return sorted(
        (
            (
                run.started_at,
                run.ended_at,
                {name: argument.effective for name, argument in run.arguments.by_name.items()},
                sorted((event.kind, event.at or 0.0, str(event.values)) for event in run.events),
                sorted(window._replace(position=0, line=0) for window in run.windows),
                sorted(prefill._replace(position=0, line=0) for prefill in run.prefills),
            )
            for run in records
        ),
        key=repr,
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    folder = tmp_path_factory.mktemp("whole")
    (folder / "server.log").write_bytes(RESTARTS)
    with open_database(f"sqlite:///{folder / 'runs.db'}") as database:
        ingest(database, [folder / "server.log"])
        return runs(database)


@pytest.mark.parametrize("suffix", PACK)
def test_a_compressed_log_is_the_log(database: Database, tmp_path: Path, whole: list[object], suffix: str) -> None:
    packed, plain = tmp_path / f"a.log{suffix}", tmp_path / "b.log"
    packed.write_bytes(PACK[suffix](RESTARTS[:70_000]) + PACK[suffix](RESTARTS[70_000:]))
    report = ingest(database, [packed])
    assert runs(database) == whole
    assert dry_run([packed]).logs[0].windows == report.files[0].windows
    plain.write_bytes(RESTARTS)
    again = ingest(database, [plain])
    assert (again.rows, again.run_ids, again.files[0].unchanged) == (0, report.run_ids, True)


def test_a_damaged_archive_gives_what_is_left_and_says_so(database: Database, tmp_path: Path) -> None:
    log = tmp_path / "server.log.gz"
    log.write_bytes(gzip.compress(RESTARTS)[:-500])
    report = ingest(database, [log])
    assert report.files[0].windows > 0
    assert any("the compressed file is damaged (it ends early)" in problem for problem in report.problems)


def split(folder: Path, content: bytes, cuts: list[int], suffixes: list[str]) -> list[Path]:
    """Write a log as the rotated files ``server.log.N`` and the current one; oldest first."""
    edges = [0, *cuts, len(content)]
    paths = []
    for number, (start, end) in enumerate(pairwise(edges)):
        age = len(cuts) - number
        suffix = suffixes[number] if age else ""
        path = folder / (f"server.log.{age}{suffix}" if age else "server.log")
        path.write_bytes(PACK[suffix](content[start:end]))
        paths.append(path)
    return paths


@pytest.mark.usefixtures("small_batches")
def test_rotated_files_are_one_log_wherever_they_were_cut(tmp_path: Path, whole: list[object]) -> None:
    chance = random.Random(5)
    for number in range(100 if SOAK else 10):
        folder = tmp_path / str(number)
        folder.mkdir()
        cuts = sorted(chance.sample(range(1, len(RESTARTS)), 3))
        paths = split(folder, RESTARTS, cuts, [chance.choice(list(PACK)) for _ in cuts])
        chance.shuffle(paths)
        with open_database(f"sqlite:///{folder / 'runs.db'}") as database:
            report = ingest(database, paths)
            assert runs(database) == whole
            assert len(report.files) == 1
            again = ingest(database, paths)
            assert (again.rows, again.run_ids, again.files[0].unchanged) == (0, report.run_ids, True)


def test_rotated_files_are_judged_as_one_log(tmp_path: Path) -> None:
    paths = split(tmp_path, RESTARTS, [40_000, 90_000], ["", ".gz"])
    plain = tmp_path / "whole.txt"
    plain.write_bytes(RESTARTS)
    one, several = read_bundle([plain]), read_bundle(paths)
    assert several.subject.windows == one.subject.windows
    assert "server.log.2, server.log.1.gz, server.log" in several.readings[0].notes[-1]
    for window in one.subject.windows:
        assert several.subject.line_text(window.position) == one.subject.line_text(window.position)


def test_replicas_with_numbers_for_names_stay_apart(tmp_path: Path) -> None:
    for number in (1, 2):
        (tmp_path / f"replica.{number}").write_bytes(RESTARTS)
    assert all(len(file.older) == 0 for file in read_files(tmp_path))
    assert len(dry_run([tmp_path]).logs) == 2


def read_files(folder: Path) -> list:
    from collector.bundle import _files

    return _files([folder], BundleOptions(), [])


def test_a_log_that_is_rotated_on_goes_on(database: Database, tmp_path: Path, whole: list[object]) -> None:
    first = split(tmp_path, RESTARTS[:100_000], [60_000], [""])
    ingest(database, first)
    (tmp_path / "server.log.1").rename(tmp_path / "server.log.2")
    (tmp_path / "server.log").rename(tmp_path / "server.log.1")
    (tmp_path / "server.log").write_bytes(RESTARTS[100_000:])
    report = ingest(database, sorted(tmp_path.glob("server.log*")))
    assert runs(database) == whole
    assert len(report.run_ids) == len(whole)


def test_a_run_whose_beginning_was_thrown_away_goes_on(database: Database, tmp_path: Path, whole: list[object]) -> None:
    """Files that held the argument line are gone; its decode interval still holds for what comes."""
    lines = RESTARTS.splitlines(keepends=True)
    starts = [number for number, line in enumerate(lines) if b"server_args=" in line]
    decodes = [number for number, line in enumerate(lines) if b"Decode batch" in line and number > starts[1]]
    cut, later = (sum(map(len, lines[: decodes[at]])) for at in (4, 8))
    first = split(tmp_path, RESTARTS[:later], [cut], [""])
    ingest(database, first)
    first[0].unlink()
    (tmp_path / "server.log").rename(tmp_path / "server.log.1")
    (tmp_path / "server.log").write_bytes(RESTARTS[later:])
    report = ingest(database, [tmp_path / "server.log.1", tmp_path / "server.log"])
    assert len(report.run_ids) == 2
    assert runs(database) == whole


@pytest.mark.usefixtures("small_batches")
def test_a_log_that_is_followed_ends_as_if_read_at_once(tmp_path: Path, whole: list[object]) -> None:
    for seed in range(30 if SOAK else 3):
        chance = random.Random(seed)
        folder = tmp_path / str(seed)
        folder.mkdir()
        log = folder / "server.log"
        cuts = [0, *sorted(chance.sample(range(1, len(RESTARTS)), 12)), len(RESTARTS)]
        rotations = set(chance.sample(range(3, 12), 2))
        with open_database(f"sqlite:///{folder / 'runs.db'}") as database:
            follower = LogFollower(Owner(database, lambda: 1e9), [log])
            for number, (start, end) in enumerate(pairwise(cuts)):
                if number in rotations:
                    if (folder / "server.log.1").exists():
                        (folder / "server.log.1").rename(folder / "server.log.2")
                    log.rename(folder / "server.log.1")
                with log.open("ab") as stream:
                    stream.write(RESTARTS[start:end])
                if chance.random() < 0.7:
                    follower.poll()
                if number == 8:  # the follower is started anew, with what is there
                    follower.close()
                    follower = LogFollower(Owner(database, lambda: 1e9), sorted(folder.glob("server.log*")))
            follower.poll()
            follower.poll()
            follower.close()
            report = ingest(database, sorted(folder.glob("server.log*")))
            assert report.rows <= 2
            assert runs(database) == whole


def test_a_log_that_says_nothing_yet_is_waited_for(database: Database, tmp_path: Path) -> None:
    log = tmp_path / "server.log"
    follower = LogFollower(Owner(database, lambda: 1e9), [log])
    for data in (b"", b"some noise of a library\n", RESTARTS):
        with log.open("ab") as stream:
            stream.write(data)
        follower.poll()
    follower.close()
    assert len(follower.logs[0].runs) == 3
    assert follower.logs[0].rows == dry_run([log]).logs[0].windows + dry_run([log]).logs[0].prefills


def test_what_is_given_beside_a_followed_log_is_about_its_latest_run(database: Database, tmp_path: Path) -> None:
    log, launch = tmp_path / "server.log", tmp_path / "launch.txt"
    log.write_bytes(RESTARTS)
    launch.write_text("python -m sglang.launch_server --model-path /models/t --max-running-requests 6\n")
    follower = LogFollower(Owner(database, lambda: 1e9), [log], BundleOptions(launch=launch))
    follower.poll()
    follower.close()
    with database.reading() as connection:
        told = [load_run(connection, run.id).launch is not None for run in follower.logs[0].runs]
    assert told == [False, False, True]
