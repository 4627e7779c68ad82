"""Files and patterns of the settings: followed as they grow, appear, are rotated, or turn out to be none."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from collector.domain.errors import InputError
from collector.followed_logs import FollowedLogs
from collector.log_writer import Owner
from collector.storage.engine import Database, open_database
from dashboard.feeds.files import FilesSource
from dashboard.settings import load_settings
from tests.live.test_loki import RESTARTS, VLLM, list_all, of_file, runs, without_place
from tests.out.test_serve import Place

assert of_file  # a fixture


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with open_database(f"sqlite:///{tmp_path / 'runs.db'}") as opened:
        yield opened


@pytest.fixture
def followed(database: Database, tmp_path: Path) -> Iterator[FollowedLogs]:
    logs = FollowedLogs(Owner(database, time.time, labels={"team": "search"}), [f"{tmp_path}/logs/**/*.log*"])
    yield logs
    logs.close()


def read_all(logs: FollowedLogs) -> None:
    while logs.step():
        pass


def test_files_that_fit_are_followed_also_those_that_come_later(
    followed: FollowedLogs, database: Database, tmp_path: Path, of_file: Callable[[str], list[Any]]
) -> None:
    read_all(followed)
    assert "no file is there" in next(iter(followed.problems.values()))
    (tmp_path / "logs" / "gpu7").mkdir(parents=True)
    half = len(RESTARTS) // 2
    (tmp_path / "logs" / "gpu7" / "server.log").write_text(RESTARTS[:half])
    read_all(followed)
    with (tmp_path / "logs" / "gpu7" / "server.log").open("a") as stream:
        stream.write(RESTARTS[half:])
    (tmp_path / "logs" / "vllm.log").write_text(VLLM)
    (tmp_path / "logs" / "access.log").write_text('10.0.0.1 - - "GET / HTTP/1.1" 200\n' * 50_000)
    read_all(followed)
    assert list(followed.problems) == [f"{tmp_path}/logs/access.log"]
    assert len(followed.run_ids) == 4
    assert runs(database) == sorted(of_file(RESTARTS) + of_file(VLLM), key=repr)
    assert all(run.labels["team"] == "search" for run in list_all(database))


def test_a_file_that_is_rotated_stays_one_log(
    followed: FollowedLogs, database: Database, tmp_path: Path, of_file: Callable[[str], list[Any]]
) -> None:
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "server.log"
    half = RESTARTS.index("\n", len(RESTARTS) // 2) + 1
    log.write_text(RESTARTS[:half])
    read_all(followed)
    log.rename(tmp_path / "logs" / "server.log.1")
    log.write_text(RESTARTS[half:])
    read_all(followed)
    assert without_place(runs(database)) == without_place(of_file(RESTARTS))
    assert len(followed.run_ids) == 3


def test_a_file_that_was_none_is_looked_at_again_once_it_is_another(
    followed: FollowedLogs, database: Database, tmp_path: Path
) -> None:
    (tmp_path / "logs").mkdir()
    log = tmp_path / "logs" / "server.log"
    log.write_text('10.0.0.1 - - "GET / HTTP/1.1" 200\n' * 50_000)
    read_all(followed)
    assert not list_all(database)
    fresh = tmp_path / "fresh"
    fresh.write_text(RESTARTS)
    fresh.replace(log)
    read_all(followed)
    assert len(list_all(database)) == 3
    assert not followed.problems


def test_the_settings_name_patterns(tmp_path: Path) -> None:
    file = tmp_path / "draftscope.toml"
    file.write_text('[[sources]]\nkind = "files"\npaths = ["/var/log/*.log"]\nlabels = { team = "search" }\n')
    assert load_settings(file, {}).sources == (FilesSource(paths=("/var/log/*.log",), labels={"team": "search"}),)
    for paths in ("[]", '[" "]', '"a.log"'):
        file.write_text(f'[[sources]]\nkind = "files"\npaths = {paths}\n')
        with pytest.raises(InputError, match="paths is") as raised:
            load_settings(file, {})
        assert raised.value.hint


def test_the_service_follows_files(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "server.log").write_text(RESTARTS)
    place.settings(f'[[sources]]\nkind = "files"\npaths = ["{tmp_path}/*.log"]\ndeployment = "chat"\n')
    with place.serving() as running:
        running.until(lambda: running.client.get("/api/v1/runs").json()["total"] == 3)
        rows = running.client.get("/api/v1/sources").json()["sources"]
    assert (rows[0]["kind"], rows[0]["place"]) == ("files", f"{tmp_path}/*.log")
