"""Engines that misbehave beside one that does not: no false figure, no lost interval, and a line of ``doctor`` for each."""

from __future__ import annotations

import asyncio
import json
import time
import tomllib
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import ExitStack
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from collector.domain.runs import RunRecord
from collector.scraping import Watch
from collector.sources.fetching import Client
from collector.sources.http import Endpoint
from collector.sources.scrape import Scraper
from collector.storage.engine import Database, open_database
from collector.storage.runs import list_runs, load_run
from dashboard.cli import main
from dashboard.collecting import Collection
from dashboard.examination import EXTRAS
from dashboard.targets import Target
from tests.live.recorded import Recorded, recorded
from tests.live.replay import QuietHandler
from tests.live.test_scrape_faults import (
    _RELEASE,
    FAULTS,
    TEXT,
    answering,
    endless,
    endless_in_chunks,
    hanging,
    hanging_in_the_middle,
    saying,
    trickling,
)
from tests.live.test_targets import free_port, until

RECORDING = "vllm/eagle3"
FAULTY = [
    *(fault for fault in FAULTS if fault[1] is not endless_in_chunks),  # takes a while to be too large
    ("hanging", hanging, "no complete answer", "timeout"),
    ("hanging in the middle", hanging_in_the_middle, "no complete answer", "timeout"),
    ("trickling", trickling, "no complete answer", "timeout"),
]


@pytest.fixture
def faulty() -> Iterator[dict[str, tuple[str, str, str]]]:
    """A server for each fault: its address, and what has to be said of it."""
    with ExitStack() as stack:
        info = saying(200, b"{}", "application/json")
        found = {
            name: (stack.enter_context(answering(metrics, info)), what, hint) for name, metrics, what, hint in FAULTY
        }
        _RELEASE.clear()
        yield {**found, "down": (f"http://127.0.0.1:{free_port()}", "nothing answers", "host and port")}
        _RELEASE.set()


def totals(record: RunRecord) -> float:
    return sum(window.verify_steps or 0 for window in record.windows)


Look = Callable[[Callable[[], dict[str, Any]]], Awaitable[None]]


def collected(database: Database, targets: Sequence[Target], client: Client, good: Recorded, look: Look) -> RunRecord:
    """The run of the one good target, after all were collected for as long as ``look`` takes; it is given the targets' states."""

    async def whole() -> None:
        stop = asyncio.Event()
        collection = Collection(database, targets, client=client, now=good.clock)
        task = asyncio.create_task(collection.run(stop))
        try:
            await until(lambda: len(collection.states()) == len(targets), 60)
            await look(lambda: {state.address: state for state in collection.states()})
        finally:
            _RELEASE.set()
            stop.set()
            await asyncio.wait_for(task, 60)

    asyncio.run(whole())
    with database.reading() as connection:
        (run,) = list_runs(connection).runs
        return load_run(connection, run.id)


@pytest.mark.parametrize("client", list(Client))
def test_an_engine_loses_no_interval_to_others_that_misbehave(
    sqlite_database: Database, faulty: dict[str, tuple[str, str, str]], client: Client
) -> None:
    with recorded(RECORDING) as good:
        targets = [
            Target(url=url, interval_seconds=1, timeout_seconds=0.5 if hint == "timeout" else 30)
            for url, _, hint in faulty.values()
        ]

        async def look(states: Callable[[], dict[str, Any]]) -> None:
            await until(lambda: states()[good.url].scrapes >= 3, 60)
            await until(lambda: all(states()[url].error for url, _, _ in faulty.values()), 60)
            for url, what, _ in faulty.values():
                assert what in states()[url].error
            assert not states()[good.url].error

        record = collected(sqlite_database, [*targets, Target(url=good.url, interval_seconds=1)], client, good, look)
    assert totals(record) == good.at(good.index, "vllm:spec_decode_num_drafts_total")


def without_end(handler: QuietHandler) -> None:
    """One line after the other, without an end; it goes on for as long as somebody listens."""
    handler.send_response(200)
    handler.send_header("Transfer-Encoding", "chunked")
    handler.end_headers()
    while not _RELEASE.wait(0.02):
        handler.wfile.write(b"8\r\n# again\n\r\n")


@pytest.mark.parametrize("client", list(Client))
def test_a_body_without_end_takes_no_interval_from_others(sqlite_database: Database, client: Client) -> None:
    with recorded(RECORDING) as good, answering(without_end) as slow, answering(endless) as huge:
        targets = [
            Target(url=slow, interval_seconds=1, timeout_seconds=120),
            Target(url=huge, interval_seconds=1, timeout_seconds=120),
            Target(url=good.url, interval_seconds=1),
        ]

        async def look(states: Callable[[], dict[str, Any]]) -> None:
            await until(lambda: states()[good.url].scrapes >= 4 and states()[huge].failures >= 2, 60)
            assert "larger than 16 MiB" in states()[huge].error
            assert (states()[slow].scrapes, states()[slow].failures) == (0, 0)  # its first answer still comes in
            assert (states()[good.url].failures, states()[good.url].error) == (0, "")

        record = collected(sqlite_database, targets, client, good, look)
    assert {window.at for window in record.windows} == {at for at, _ in good.snapshots[: good.index + 1]}


def test_doctor_has_a_line_for_each_fault(
    tmp_path: Path,
    faulty: dict[str, tuple[str, str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    with recorded(RECORDING, only=slice(-1, None)) as good:
        tables = [f'[[targets]]\nurl = "{url}"\ntimeout_seconds = 0.5\n' for url, _, _ in faulty.values()]
        settings = tmp_path / "draftscope.toml"
        settings.write_text("".join(tables) + f'[[targets]]\nurl = "{good.url}"\ntimeout_seconds = 30\n')
        monkeypatch.setenv("DRAFTSCOPE_DATABASE_URL", f"sqlite:///{tmp_path / 'draftscope.db'}")
        with pytest.raises(SystemExit) as stopped:
            main(["doctor", "--config", str(settings), "--format", "json"])
    assert stopped.value.code == 1
    checks = json.loads(capsys.readouterr().out)["checks"]
    for name, (url, what, hint) in faulty.items():
        (line,) = [check for check in checks if check["about"] == url]
        assert line["health"] == "error", name
        assert what in line["told"]
        assert hint in line["hint"]
    seen = {check["aspect"]: check["health"] for check in checks if check["about"] == good.url}
    assert seen["acceptance"] == "reading"
    assert {check["health"] for check in checks if check["about"] == "formats"} == {"reading"}


def test_doctor_knows_every_extra() -> None:
    declared = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
    packages = declared["optional-dependencies"]
    assert set(packages) == set(EXTRAS)
    for extra, (module, _) in EXTRAS.items():
        assert any(package.startswith(module) for package in packages[extra])


def test_doctor_says_what_is_missing_without_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAFTSCOPE_DATABASE_URL", f"sqlite:///{tmp_path / 'draftscope.db'}")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stopped:
        main(["doctor"])
    out = " ".join(capsys.readouterr().out.split())
    assert stopped.value.code == 0
    assert "no engine is watched try: write [[targets]]" in out
    (tmp_path / "draftscope.toml").write_text("targets = 3")
    with pytest.raises(SystemExit) as stopped:
        main(["doctor"])
    assert stopped.value.code == 1
    assert "targets is not a list of tables" in capsys.readouterr().out


# ---- pages of other forms


def watched(database: Database, change: Callable[[bytes], bytes], at_most: int = 4) -> tuple[RunRecord, Recorded]:
    """A recording scraped to its end, each page changed before it is sent."""
    with recorded(RECORDING, only=slice(-at_most, None)) as served:
        served.snapshots = [(at, change(body)) for at, body in served.snapshots]
        with Endpoint(served.url) as endpoint:
            watch = Watch(database, Scraper(endpoint, clock=served.clock))
            run_id = [watch.take().run_id for _ in served.snapshots][-1]
    with database.reading() as connection:
        return load_run(connection, run_id), served


def many_series(body: bytes) -> bytes:
    lines = [b'vllm:other{a="%d"} %d' % (number, number) for number in range(10_000)]
    return body + b"# TYPE vllm:other gauge\n" + b"\n".join(lines) + b"\n"


def with_times(body: bytes) -> bytes:
    lines = [line if line[:1] in (b"#", b"") else line + b" 1395066363000" for line in body.split(b"\n")]
    return b"\n".join(lines)


def with_exemplars(body: bytes) -> bytes:
    lines = [
        line + b' # {trace_id="a } b"} 0.67 1520879607.789' if b"_bucket{" in line else line
        for line in body.split(b"\n")
    ]
    return b"\n".join(lines) + b"# EOF\n"


@pytest.mark.parametrize("change", [many_series, with_times, with_exemplars])
def test_pages_of_other_forms_give_the_same_figures(
    sqlite_database: Database, tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    with open_database(f"sqlite:///{tmp_path / 'plain.db'}") as other:
        plain, _ = watched(other, lambda body: body)
    changed, _ = watched(sqlite_database, change)
    assert changed.windows == plain.windows
    assert changed.latencies == plain.latencies
    assert changed.arguments.keys() == plain.arguments.keys()


def test_a_value_that_is_no_number_is_told_and_counts_nothing(sqlite_database: Database) -> None:
    name = b"vllm:kv_cache_usage_perc"

    def broken(body: bytes) -> bytes:
        lines = [line.rpartition(b" ")[0] + b" NaN" if line.startswith(name) else line for line in body.split(b"\n")]
        return b"\n".join(lines)

    record, served = watched(sqlite_database, broken)
    assert totals(record) == served.at(-1, "vllm:spec_decode_num_drafts_total")


# ---- clocks


@pytest.mark.parametrize("jump", [-3_600.0, 3_600.0])
def test_a_clock_that_jumps_makes_no_interval_longer_or_shorter(sqlite_database: Database, jump: float) -> None:
    with recorded(RECORDING) as served, Endpoint(served.url) as endpoint:
        shown = count()
        clock = [served.snapshots[0][0] + 10.0 * number + (jump if number >= 3 else 0.0) for number in range(6)]
        steady = iter(range(0, 600, 10))
        scraper = Scraper(endpoint, clock=lambda: clock[next(shown)], steady=lambda: float(next(steady)))
        watch = Watch(sqlite_database, scraper)
        run_id = [watch.take().run_id for _ in range(6)][-1]
    with sqlite_database.reading() as connection:
        record = load_run(connection, run_id)
    lengths = [window.seconds for window in record.windows if window.seconds is not None]
    assert lengths == pytest.approx([10.0] * 5)
    (event,) = record.events_of("clock-jump")
    assert event.values["shown"] == pytest.approx(jump + 10.0)
    assert totals(record) == served.at(5, "vllm:spec_decode_num_drafts_total")
    speeds = {w.generation_throughput: w.generated_tokens for w in record.windows if w.seconds}
    assert all(speed == pytest.approx(tokens / 10.0) for speed, tokens in speeds.items())


def test_doctor_tells_of_counters_that_fell_and_clocks_that_jumped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    address = f"sqlite:///{tmp_path / 'draftscope.db'}"
    page = b"# TYPE vllm:generation_tokens_total counter\n" + b'vllm:generation_tokens_total{engine="0"} %d\n'
    start = b"# TYPE process_start_time_seconds gauge\nprocess_start_time_seconds 1700000000.5\n"
    tokens = iter([100, 200, 50, 60])
    clock = iter([time.time() - 300.0, time.time() - 290.0, time.time() - 280.0, time.time()])
    steady = iter([0.0, 10.0, 20.0, 30.0])
    with (
        answering(lambda handler: handler.send(200, TEXT, start + page % next(tokens))) as url,
        open_database(address) as database,
        Endpoint(url) as endpoint,
    ):
        watch = Watch(database, Scraper(endpoint, clock=lambda: next(clock), steady=lambda: next(steady)))
        for _ in range(4):
            watch.take()
    monkeypatch.setenv("DRAFTSCOPE_DATABASE_URL", address)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["doctor", "--format", "json"])
    lines = {check["aspect"]: check for check in json.loads(capsys.readouterr().out)["checks"]}
    assert lines["counter-reset"]["health"] == "warning"
    assert "200, then 50" in lines["counter-reset"]["told"]
    assert "while 10.0 s passed" in lines["clock-jump"]["told"]


def test_doctor_tells_of_engines_that_were_restarted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Counters that are smaller afterwards belong to another run: nothing fell, and nothing is taken off."""
    now = time.time()
    pages = iter([(now - 900, 5_000), (now - 900, 6_000), (now - 60, 50), (now - 60, 90)])
    clock = iter([now - 600.0, now - 300.0, now - 30.0, now - 20.0])

    def page(handler: QuietHandler) -> None:
        start, tokens = next(pages)
        text = f'process_start_time_seconds {start}\nvllm:generation_tokens_total{{engine="0"}} {tokens}\n'
        handler.send(200, TEXT, text.encode())

    address = f"sqlite:///{tmp_path / 'draftscope.db'}"
    with answering(page) as url, open_database(address) as database, Endpoint(url) as endpoint:
        watch = Watch(database, Scraper(endpoint, clock=lambda: next(clock)), deployment="chat")
        ids = [watch.take().run_id for _ in range(4)]
        with database.reading() as connection:
            counted = [
                sum(window.generated_tokens or 0 for window in load_run(connection, run_id).windows)
                for run_id in dict.fromkeys(ids)
            ]
    assert counted == [6_000, 90]
    monkeypatch.setenv("DRAFTSCOPE_DATABASE_URL", address)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit):
        main(["doctor", "--format", "json"])
    checks = json.loads(capsys.readouterr().out)["checks"]
    (line,) = [check for check in checks if check["aspect"] in ("restart", "counter-reset")]
    assert (line["about"], line["health"]) == (f"run {ids[-1]}", "fine")
    assert f"in place of run {ids[0]}" in line["told"]
