"""Logs out of Loki end in the database as the files themselves would have."""

from __future__ import annotations

import json
import os
import random
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from collector.domain.errors import InputError, SourceError, StorageError
from collector.log_writer import Owner
from collector.sources import loki as loki_module
from collector.sources import spool as spool_module
from collector.sources.http import Endpoint
from collector.sources.loki import LARGEST_ANSWER, Loki
from collector.sources.spool import Spool, forget_old
from collector.storage.engine import Database, open_database
from collector.storage.runs import list_runs, load_run
from collector.streamed_logs import StreamedLogs
from dashboard.cli import main
from tests.live.loki import PROGRAM, Kept, loki, real_loki
from tests.live.replay import QuietHandler, serve

GOLDEN = Path(__file__).parents[1] / "golden" / "logs"
RESTARTS = (GOLDEN / "sglang" / "0.5.11-restarts" / "log.txt").read_text()
VLLM = next((GOLDEN / "vllm").glob("*eagle3*/log.txt")).read_text()
POD = {"namespace": "llm", "pod": "sglang-0", "container": "server"}
SECOND = 10**9
BEGIN = (round(time.time()) - 1800) * SECOND
"""Loki shows at once what is of the last hours; older lines that are sent only once they are in its store."""
SOAK = os.environ.get("DRAFTSCOPE_SOAK") == "1"


def entries(text: str, together: int = 1) -> list[tuple[int, str]]:
    """Lines as a collector sends them, so many ``together`` at one instant."""
    return [(BEGIN + number // together * (SECOND // 100), line) for number, line in enumerate(text.splitlines())]


def end_of(kept: Kept) -> float:
    return max(at for stream in kept.streams.values() for at, _ in stream) / SECOND + 60


Serve = Callable[..., AbstractContextManager[Kept]]


@pytest.fixture(
    params=[
        "documented",
        pytest.param("real", marks=pytest.mark.skipif(not PROGRAM, reason="DRAFTSCOPE_TEST_LOKI names no program")),
    ]
)
def served(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Serve:
    """Starts a server as Loki is documented, or Loki."""
    if request.param == "documented":
        return loki
    return lambda **options: real_loki(tmp_path_factory.mktemp("loki"), **options)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    with open_database(f"sqlite:///{tmp_path / 'runs.db'}") as opened:
        yield opened


@contextmanager
def reading(
    database: Database,
    kept: Kept,
    folder: Path,
    select: str = '{namespace="llm"}',
    *,
    since: int = BEGIN,
    until: float | None = None,
    **options: Any,
) -> Iterator[StreamedLogs]:
    now = end_of(kept) if until is None else until
    owner = Owner(database, lambda: now)
    with Endpoint(kept.url, largest=LARGEST_ANSWER, **options) as endpoint:
        logs = StreamedLogs(owner, folder / "streams", Loki(endpoint, select, now=lambda: now), since=since)
        try:
            yield logs
        finally:
            logs.close()


def read_all(logs: StreamedLogs) -> None:
    while logs.step():
        pass


def runs(database: Database) -> list[Any]:
    with database.reading() as connection:
        records = [load_run(connection, run.id) for run in list_runs(connection, limit=100).runs]
    return sorted(
        (
            (
                run.started_at,
                run.ended_at,
                {name: argument.effective for name, argument in run.arguments.by_name.items()},
                [(event.kind, event.at or 0.0, str(event.values)) for event in run.events],
                run.windows,
                run.prefills,
            )
            for run in records
        ),
        key=repr,
    )


def without_place(found: list[Any]) -> list[Any]:
    """Runs without where their rows stand in a file."""
    return [
        (*facts, *([row._replace(position=0, line=0) for row in rows] for rows in (windows, prefills)))
        for *facts, windows, prefills in found
    ]


@pytest.fixture(scope="module")
def of_file(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], list[Any]]:
    """What following a file with this text stores: its end is not told."""

    def stored(text: str) -> list[Any]:
        from collector.following import LogFollower

        folder = tmp_path_factory.mktemp("file")
        (folder / "server.log").write_text(text)
        with open_database(f"sqlite:///{folder / 'runs.db'}") as database:
            follower = LogFollower(Owner(database, time.time), [folder / "server.log"])
            while follower.poll():
                pass
            follower.close()
            return runs(database)

    return stored


def test_rows_are_those_of_the_file(
    database: Database,
    served: Serve,
    tmp_path: Path,
    of_file: Callable[[str], list[Any]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loki_module, "PAGE_ENTRIES", 50)
    with served(most=50) as kept:
        kept.push(POD, entries(RESTARTS))
        with reading(database, kept, tmp_path) as logs:
            read_all(logs)
            assert len(logs.run_ids) == len(of_file(RESTARTS))
            assert not logs.problems
    assert runs(database) == of_file(RESTARTS)
    with database.reading() as connection:
        run = list_runs(connection, limit=1).runs[0]
    assert run.labels == POD
    assert run.source == f'{kept.url} {{container="server",namespace="llm",pod="sglang-0"}}'


def test_months_are_asked_for_piece_by_piece(
    database: Database, tmp_path: Path, served: Serve, of_file: Callable[[str], list[Any]]
) -> None:
    with served() as kept:
        kept.push(POD, entries(RESTARTS))
        with reading(database, kept, tmp_path, since=BEGIN - 100 * 86_400 * SECOND) as logs:
            read_all(logs)
            assert not logs.problems
    assert runs(database) == of_file(RESTARTS)


def test_lines_on_both_sides_of_a_piece_are_one_log(
    database: Database, tmp_path: Path, of_file: Callable[[str], list[Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loki_module, "PAGE_ENTRIES", 50)
    day = 86_400 * SECOND
    with loki(most=50) as kept:
        lines = entries(RESTARTS)
        kept.push(
            POD,
            [(at - (400 - number) * day // 4 if number < 400 else at, line) for number, (at, line) in enumerate(lines)],
        )
        with reading(database, kept, tmp_path, since=BEGIN - 200 * day) as logs:
            read_all(logs)
            assert not logs.problems
    assert runs(database) == of_file(RESTARTS)


def test_standard_output_and_error_of_a_container_are_one_log(
    database: Database, served: Serve, tmp_path: Path, of_file: Callable[[str], list[Any]]
) -> None:
    with served() as kept:
        for number, (at, line) in enumerate(entries(RESTARTS)):
            stream = "stdout" if number % 2 else "stderr"
            kept.push({**POD, "stream": stream, "filename": "/var/log/pods/x/0.log"}, [(at, line)])
        with reading(database, kept, tmp_path) as logs:
            read_all(logs)
    assert runs(database) == of_file(RESTARTS)


@pytest.mark.parametrize("seed", range(20 if SOAK else 2))
def test_a_tail_that_is_stopped_anywhere_goes_on_exactly_once(
    database: Database,
    served: Serve,
    tmp_path: Path,
    of_file: Callable[[str], list[Any]],
    monkeypatch: pytest.MonkeyPatch,
    seed: int,
) -> None:
    chance = random.Random(seed)
    monkeypatch.setattr(loki_module, "PAGE_ENTRIES", chance.choice((7, 40, 5000)))
    monkeypatch.setattr(spool_module, "PART_BYTES", chance.choice((9_000, 60_000, 1 << 30)))
    monkeypatch.setattr(spool_module, "MOST_PARTS", 1000)
    text = entries(RESTARTS, together=3)
    with served() as kept:
        kept.push(POD, text)
        instants = sorted(chance.sample([at for at, _ in text], 5))
        for instant in instants:
            with reading(database, kept, tmp_path, until=instant / SECOND + 10) as logs:
                for _ in range(chance.randrange(6)):
                    logs.step()
        with reading(database, kept, tmp_path) as logs:
            read_all(logs)
    assert without_place(runs(database)) == without_place(of_file(RESTARTS))


def test_bytes_that_were_written_and_not_accounted_for_are_not_read_twice(
    database: Database, tmp_path: Path, of_file: Callable[[str], list[Any]]
) -> None:
    with loki() as kept:
        kept.push(POD, entries(RESTARTS))
        with reading(database, kept, tmp_path, until=BEGIN / SECOND + 10.5) as logs:
            read_all(logs)
        (part,) = (path for path in (tmp_path / "streams").glob("*.0.log") if path.stat().st_size)
        with part.open("ab") as stream:
            stream.write(b"torn off in the middle of a wri")
        with reading(database, kept, tmp_path) as logs:
            read_all(logs)
    assert runs(database) == of_file(RESTARTS)


def test_more_lines_at_one_instant_than_a_page_holds_are_told(
    database: Database, served: Serve, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loki_module, "PAGE_ENTRIES", 20)
    with served(increment=False) as kept:
        kept.push(POD, [(BEGIN, line) for line in RESTARTS.splitlines()[:50]])
        kept.push(POD, [(BEGIN + SECOND, line) for line in RESTARTS.splitlines()[50:60]])
        with reading(database, kept, tmp_path) as logs:
            read_all(logs)
            assert "some are left out" in next(iter(logs.problems.values()))


def test_that_loki_loses_the_order_of_one_instant_is_told(database: Database, tmp_path: Path, served: Serve) -> None:
    with served(increment=False) as kept:
        kept.push(POD, entries(RESTARTS, together=3))
        kept.push({**POD, "pod": "sglang-1"}, entries(RESTARTS))
        with reading(database, kept, tmp_path) as logs:
            read_all(logs)
            ((name, problem),) = logs.problems.items()
    assert "sglang-0" in name
    assert "increment_duplicate_timestamp" in problem


def test_a_tenant_is_named_where_there_are_several(database: Database, tmp_path: Path, served: Serve) -> None:
    with served(tenant="team-a") as kept:
        kept.push(POD, entries(RESTARTS))
        with reading(database, kept, tmp_path) as logs, pytest.raises(SourceError, match="who asks") as raised:
            logs.step()
        with reading(database, kept, tmp_path, headers={"X-Scope-OrgID": "team-a"}) as logs:
            read_all(logs)
            assert not logs.problems
    assert "tenant" in raised.value.hint
    assert list_all(database)


def test_logs_of_others_are_passed_over_and_told(database: Database, served: Serve, tmp_path: Path) -> None:
    with served() as kept:
        kept.push(POD, entries(RESTARTS))
        kept.push({**POD, "pod": "vllm-0"}, entries(VLLM))
        other = "".join(f'10.0.0.{i % 250} - - "GET /{i} HTTP/1.1" 200 {"x" * 200}\n' for i in range(6000))
        kept.push({"namespace": "llm", "pod": "proxy"}, entries(other))
        kept.push({"namespace": "llm"}, [(BEGIN, "a stream with fewer labels")])
        kept.push({"namespace": "other"}, entries(RESTARTS))
        with reading(database, kept, tmp_path) as logs:
            read_all(logs)
            assert [name for name in logs.problems if "proxy" in name]
        engines = {run.engine: run.labels for run in list_all(database)}
        assert {engine: labels["pod"] for engine, labels in engines.items()} == {"sglang": "sglang-0", "vllm": "vllm-0"}
        sizes = [path.stat().st_size for path in (tmp_path / "streams").glob("*.log")]
        assert sum(sizes) < len(RESTARTS) + len(VLLM) + 1000
        with reading(database, kept, tmp_path) as logs:
            read_all(logs)
            assert [name for name in logs.problems if "proxy" in name]


def list_all(database: Database) -> Sequence[Any]:
    with database.reading() as connection:
        return list_runs(connection, limit=100).runs


def test_tenant_and_key_go_with_every_question(database: Database, tmp_path: Path) -> None:
    with loki(tenant="team-a", key="k3y") as kept:
        kept.push(POD, entries(RESTARTS))
        headers = {"X-Scope-OrgID": "team-a"}
        with (
            reading(database, kept, tmp_path, headers=headers) as logs,
            pytest.raises(SourceError, match="refuses this user"),
        ):
            logs.step()
        with reading(database, kept, tmp_path, headers=headers, api_key="k3y") as logs:
            read_all(logs)
    assert list_all(database)


@pytest.mark.parametrize(
    ("status", "body", "words"),
    [(200, b"<html>", "no Loki"), (404, b"404 page not found", "no Loki"), (400, b"parse error", "refuses the question"),
     (200, b"[]", "no Loki"), (500, b"boom", "refuses the question")],
)  # fmt: skip
def test_what_is_no_loki_is_told(database: Database, tmp_path: Path, status: int, body: bytes, words: str) -> None:
    class Handler(QuietHandler):
        def do_POST(self) -> None:  # noqa: N802 - the base class calls it so
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send(status, "text/plain", body)

    with serve(Handler) as url:
        kept = Kept(url=url)
        with (
            reading(database, kept, tmp_path, until=BEGIN / SECOND + 100) as logs,
            pytest.raises(SourceError, match=words),
        ):
            logs.step()


@pytest.mark.parametrize("select", ["", "{}", "namespace", '{a="b"', '{a="b"} | json', '{a="b"} |= "x"'])
def test_a_selector_selects_streams_whole(select: str) -> None:
    with Endpoint("http://127.0.0.1:1") as endpoint, pytest.raises(InputError) as raised:
        Loki(endpoint, select)
    assert raised.value.why
    assert raised.value.hint


def test_one_program_at_a_time_reads_a_place(database: Database, tmp_path: Path) -> None:
    with loki() as kept:
        kept.push(POD, entries(RESTARTS))
        with (
            reading(database, kept, tmp_path),
            pytest.raises(StorageError, match="another program"),
            reading(database, kept, tmp_path),
        ):
            pass


def test_what_came_of_a_log_is_deleted_when_nothing_more_came(tmp_path: Path) -> None:
    old, held = Spool(tmp_path, "old"), Spool(tmp_path, "held")
    for spool in (old, held):
        spool.add(b"line\n", {"at": 1})
    old.close()
    forget_old(tmp_path, time.time())
    assert len(list(tmp_path.glob("*.log"))) == 2
    forget_old(tmp_path, time.time() + spool_module.KEPT_SECONDS + 60)
    (kept,) = tmp_path.glob("*.log")
    assert kept in held.parts
    held.close()


def test_ingest_reads_loki_and_goes_on_next_time(
    tmp_path: Path, served: Serve, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAFTSCOPE_DATABASE_URL", f"sqlite:///{tmp_path / 'runs.db'}")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    shift = round(time.time() - 300) * SECOND - BEGIN
    with served() as kept:
        kept.push(POD, [(at + shift, line) for at, line in entries(RESTARTS)])
        for _ in range(2):
            with pytest.raises(SystemExit) as ended:
                main(["ingest", "--loki", kept.url, "--select", '{namespace="llm"}', "--deployment", "chat"])
            assert ended.value.code == 0
            told = capsys.readouterr().out
            assert f"{kept.url}: 3 runs\n" in told
    with open_database(f"sqlite:///{tmp_path / 'runs.db'}") as database:
        assert [run.deployment for run in list_all(database)] == ["chat"] * 3
    states = [json.loads(path.read_text()) for path in (tmp_path / "draftscope" / "streams").rglob("*.json")]
    assert all(kept.url in state["name"] for state in states)
    assert len(states) == 2
