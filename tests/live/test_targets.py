"""Targets: what the settings may say, which addresses that means, what can be seen of an engine, and watching many."""

from __future__ import annotations

import asyncio
import json
import os
import socket
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from collector.domain.conditions import Aspect, Condition
from collector.domain.errors import DraftscopeError, InputError, MalformedInput, SourceError, UnknownName
from collector.scraping import Recorder
from collector.sources.discovery import addresses_of_name, groups_of_file
from collector.sources.http import Endpoint
from collector.sources.probe import probe
from collector.sources.scrape import Scrape, Scraper
from collector.storage.engine import Database
from collector.storage.runs import list_runs, load_run
from dashboard.cli import main
from dashboard.collecting import Collection, TargetState, spread
from dashboard.masked import Secret
from dashboard.settings import load_settings
from dashboard.targets import Target, find_all
from tests.live.recorded import recorded
from tests.live.replay import QuietHandler, replay, serve


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return int(taken.getsockname()[1])


# ---- settings


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str], tuple[Target, ...]]:
    def load(text: str) -> tuple[Target, ...]:
        file = tmp_path / "draftscope.toml"
        file.write_text(text, encoding="utf-8")
        return load_settings(file, {}).targets

    return load


def test_a_target_says_where_how_often_and_what_is_put_on_its_runs(read: Callable[[str], tuple[Target, ...]]) -> None:
    one, two = read(
        '[[targets]]\nurl = "gpu7:30000"\ndeployment = "chat"\napi_key = "s3cret"\ninterval_seconds = 5\n'
        'labels = { team = "search", cluster = "eu-1" }\n[[targets]]\nfile = "engines.json"\n'
    )
    assert (one.url, one.deployment, one.interval_seconds, one.timeout_seconds) == ("gpu7:30000", "chat", 5.0, 10.0)
    assert one.labels == {"team": "search", "cluster": "eu-1"}
    assert one.api_key == Secret("s3cret")
    assert "s3cret" not in repr(one)
    assert (two.file, two.interval_seconds, two.verify_tls, two.take_iterations) == ("engines.json", 15.0, True, False)


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("targets = 3", MalformedInput, "list of tables"),
        ('[[targets]]\nurll = "a"', UnknownName, "did you mean url"),
        ("[[targets]]\ninterval_seconds = 5", MalformedInput, "no address"),
        ('[[targets]]\nurl = "a:1"\ndns = "b:1"', MalformedInput, "url and dns"),
        ('[[targets]]\nurl = "ftp://a:1"', MalformedInput, "url is no address"),
        ('[[targets]]\ndns = "http://[a"', MalformedInput, "dns is no address"),
        ('[[targets]]\nurl = "a:1"\ninterval_seconds = 0.5', MalformedInput, "too short"),
        ('[[targets]]\nurl = "a:1"\ntimeout_seconds = 0', MalformedInput, "timeout_seconds 0"),
        ('[[targets]]\nurl = "a:1"\nlabels = { rank = 3 }', MalformedInput, "labels"),
        ('[[targets]]\nurl = "a:1"\nlabels = "team"', MalformedInput, "labels"),
        ('[[targets]]\nurl = "a:1"\nverify_tls = "no"', MalformedInput, "verify_tls is not true or false"),
    ],
)
def test_what_does_not_fit_is_named(
    read: Callable[[str], tuple[Target, ...]], text: str, kind: type[InputError], words: str
) -> None:
    with pytest.raises(kind, match=words) as raised:
        read(text)
    assert "draftscope.toml" in raised.value.where
    assert raised.value.hint


def test_keys_and_passwords_are_secrets_of_the_settings(tmp_path: Path) -> None:
    file = tmp_path / "draftscope.toml"
    file.write_text('[[targets]]\nurl = "http://u:WORD@gpu7:1"\napi_key = "KEY"\n')
    assert set(load_settings(file, {}).secrets()) == {"WORD", "KEY"}


# ---- addresses


@pytest.mark.parametrize("form", ["json", "yaml"])
def test_files_in_the_form_of_prometheus(tmp_path: Path, form: str) -> None:
    groups = [
        {"targets": ["gpu7:30000", "gpu8:30000"], "labels": {"team": "search", "__meta_rack": "r1"}},
        {"targets": ["gpu9:443"], "labels": {"__scheme__": "https", "__metrics_path__": "/engine/metrics"}},
    ]
    file = tmp_path / "engines"
    text = (
        json.dumps(groups)
        if form == "json"
        else "- targets:\n  - gpu7:30000\n  - gpu8:30000\n  labels: {team: search}\n"
    )
    file.write_text(text)
    first, *others = groups_of_file(file)
    assert first.addresses == ("http://gpu7:30000", "http://gpu8:30000")
    assert first.labels == {"team": "search"}
    assert [group.addresses for group in others] == ([("https://gpu9:443/engine",)] if form == "json" else [])


@pytest.mark.parametrize("text", ["", "{}", "3", "[3]", '[{"targets": "a"}]', "[{]", '[{"targets": [], "labels": 3}]'])
def test_files_of_another_form_are_refused_with_an_example(tmp_path: Path, text: str) -> None:
    (tmp_path / "engines").write_text(text)
    with pytest.raises(MalformedInput) as raised:
        groups_of_file(tmp_path / "engines")
    assert "targets" in raised.value.hint


def test_a_name_stands_for_each_machine_once() -> None:
    assert addresses_of_name("http://127.0.0.1:30000/base") == ["http://127.0.0.1:30000/base"]
    assert "http://127.0.0.1:30000" in addresses_of_name("localhost:30000")
    assert addresses_of_name("[::1]:30000") == ["http://[::1]:30000"]


@pytest.mark.parametrize(("address", "error"), [("no-such-host.invalid:1", SourceError), ("http://", InputError)])
def test_a_name_that_nobody_knows_is_told(address: str, error: type[DraftscopeError]) -> None:
    with pytest.raises(error):
        addresses_of_name(address)


def test_what_cannot_be_looked_up_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "engines").write_text('[{"targets": ["a:1", "b:1"], "labels": {"team": "x", "rack": "1"}}]')
    listed = Target(file=str(tmp_path / "engines"), labels={"team": "y"})
    missing = Target(file=str(tmp_path / "nowhere"))
    found, problems = find_all([missing, Target(url="http://a:1"), listed])
    assert [item.address for item in found] == ["http://a:1", "http://b:1"]
    assert found[1].labels == {"team": "y", "rack": "1"}  # what the settings say wins
    assert list(problems) == [missing]


# ---- what can be seen


def aspects(url: str, **options: Any) -> dict[str, Aspect]:
    with Endpoint(url, **options) as endpoint:
        return {aspect.name: aspect for aspect in probe(Scraper(endpoint))}


@pytest.mark.parametrize(
    ("name", "reaches", "words"),
    [
        ("vllm/eagle3", {"configuration": Condition.PARTLY}, {"acceptance": "by position", "engine": "vLLM 0.32.0"}),
        ("vllm/eagle3-mixed-temperature", {}, {"configuration": "arguments that run", "latency": "5 histograms"}),
        ("vllm/baseline", {"acceptance": Condition.MISSING, "configuration": Condition.PARTLY}, {"acceptance": "does not speculate"}),
        ("llamacpp/draft-near", {"latency": Condition.MISSING}, {"acceptance": "by position", "engine": "llama.cpp b11434"}),
        (
            "llamacpp/b9093-draft-near",
            {"acceptance": Condition.MISSING, "engine": Condition.PARTLY, "latency": Condition.MISSING},
            {"acceptance": "it drafts (draft_model) and counts no drafts"},
        ),
    ],
)  # fmt: skip
def test_what_is_seen_and_what_is_not_is_said(name: str, reaches: dict[str, Condition], words: dict[str, str]) -> None:
    with recorded(name, only=slice(-1, None)) as served:
        seen = aspects(served.url)
    assert {
        key: aspect.condition for key, aspect in seen.items() if aspect.condition is not Condition.READING
    } == reaches
    for key, text in words.items():
        assert text in seen[key].says


def test_sglang_is_seen_whole() -> None:
    with replay("0.5.23-eagle3", only=slice(-1, None)) as served:
        seen = aspects(served.url)
    assert {aspect.condition for aspect in seen.values()} == {Condition.READING}


def test_an_engine_that_does_not_answer_is_one_error() -> None:
    seen = aspects(f"127.0.0.1:{free_port()}")
    assert list(seen) == ["metrics"]
    assert seen["metrics"].condition is Condition.ERROR
    assert seen["metrics"].hint


def test_certificates_that_cannot_be_read_are_told() -> None:
    with pytest.raises(InputError, match="certificates"):
        Endpoint("https://gpu7:443", verify="/no/such/file.pem")


# ---- the command


@pytest.fixture
def command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Any]:
    for name in [name for name in os.environ if name.startswith("DRAFTSCOPE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[int, str, str]:
        with pytest.raises(SystemExit) as stopped:
            main(["targets", *arguments])
        out, err = capsys.readouterr()
        return stopped.value.code or 0, " ".join(out.split()), err

    return run


def test_list_shows_every_address_and_no_password(tmp_path: Path, command: Callable[..., Any]) -> None:
    (tmp_path / "draftscope.toml").write_text(
        '[[targets]]\nurl = "http://u:WORD@gpu7:1"\nlabels = { team = "search" }\n[[targets]]\nfile = "nowhere.json"\n'
    )
    code, out, err = command("list")
    assert code == 0
    assert "gpu7:1" in out
    assert "team=search" in out
    assert "WORD" not in out + err
    assert "nowhere.json" in err


def test_list_says_how_to_begin(command: Callable[..., Any]) -> None:
    code, out, _ = command("list")
    assert code == 0
    assert "[[targets]]" in out


def test_test_takes_an_address_or_all_of_the_settings(tmp_path: Path, command: Callable[..., Any]) -> None:
    with recorded("vllm/eagle3") as served:
        code, out, _ = command("test", served.url)
        assert code == 0
        assert "acceptance reading counted, by position" in out
        (tmp_path / "draftscope.toml").write_text(
            f'[[targets]]\nurl = "{served.url}"\n[[targets]]\nurl = "http://127.0.0.1:{free_port()}"\n'
        )
        code, out, _ = command("test")
    assert code == 2
    assert "nothing answers" in out
    assert "by position" in out


def test_test_without_any_target_says_what_to_give(command: Callable[..., Any]) -> None:
    code, _, err = command("test")
    assert code == 2
    assert "targets test http://" in err


# ---- watching many


@dataclass
class Collected:
    """A collection that works in the background of a test."""

    collection: Collection

    def state(self, address: str) -> TargetState:
        known = (state for state in self.collection.states() if state.address == address)
        return next(known, TargetState(address))


async def until(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    for _ in range(int(seconds / 0.02)):
        if condition():
            return
        await asyncio.sleep(0.02)
    pytest.fail("it did not come to that")


def collecting(database: Database, targets: list[Target], test: Callable[[Collected], Any], **options: Any) -> None:
    """Run a test beside a collection, which must end when told to."""

    async def whole() -> None:
        stop = asyncio.Event()
        collection = Collection(database, targets, **options)
        task = asyncio.create_task(collection.run(stop))
        try:
            await test(Collected(collection))
        finally:
            stop.set()
            await asyncio.wait_for(task, 20)

    asyncio.run(whole())


def fast(url: str, **options: Any) -> Target:
    return Target(url=url, interval_seconds=1.0, timeout_seconds=5.0, **options)


@pytest.fixture
def hanging() -> Iterator[str]:
    class Handler(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 - the base class calls it so
            self.connection.settimeout(3)
            self.rfile.read(1)

    with serve(Handler) as url:
        yield url


def test_engines_of_all_kinds_are_watched_beside_those_that_fail(sqlite_database: Database, hanging: str) -> None:
    names = ("vllm/eagle3", "llamacpp/draft-near", "vllm/ngram")
    with ExitStack() as stack:
        served = [stack.enter_context(recorded(name)) for name in names]
        down = f"http://127.0.0.1:{free_port()}"
        targets = [fast(item.url, deployment="chat", labels={"team": "search"}) for item in served]
        targets += [fast(down), Target(url=hanging, interval_seconds=1.0, timeout_seconds=0.5)]

        async def check(collected: Collected) -> None:
            await until(lambda: all(collected.state(item.url).scrapes >= 2 for item in served))
            await until(lambda: collected.state(down).failures_in_a_row >= 2)
            await until(lambda: collected.state(hanging).failures_in_a_row >= 1)
            assert collected.state(down).error == "nothing answers at this address"
            assert collected.state(down).next_in_seconds > 1.0
            assert "within 0.5 s" in collected.state(hanging).error
            assert not any(collected.state(item.url).error for item in served)
            assert {collected.state(item.url).engine for item in served} == {"vllm", "llamacpp"}

        collecting(sqlite_database, targets, check)
    with sqlite_database.reading() as connection:
        runs = list_runs(connection).runs
        assert len(runs) == len(names)
        assert {run.deployment for run in runs} == {"chat"}
        assert {run.labels["team"] for run in runs} == {"search"}


def test_targets_can_be_replaced_while_the_others_go_on(sqlite_database: Database) -> None:
    with recorded("vllm/eagle3") as first, recorded("llamacpp/draft-near") as second, recorded("vllm/ngram") as third:

        async def check(collected: Collected) -> None:
            await until(lambda: all(collected.state(item.url).scrapes for item in (first, second)))
            before = collected.state(first.url)
            collected.collection.replace([fast(first.url), fast(third.url)])
            await until(lambda: {s.address for s in collected.collection.states()} == {first.url, third.url})
            assert collected.state(first.url) is before
            await until(lambda: bool(collected.state(third.url).scrapes))

        collecting(sqlite_database, [fast(first.url), fast(second.url)], check)


def test_a_file_that_changes_is_read_again_and_one_that_breaks_changes_nothing(
    sqlite_database: Database, tmp_path: Path
) -> None:
    file = tmp_path / "engines.json"
    with recorded("vllm/eagle3") as first, recorded("vllm/ngram") as second:
        file.write_text(json.dumps([{"targets": [first.url]}]))
        target = Target(file=str(file), interval_seconds=1.0)

        async def check(collected: Collected) -> None:
            await until(lambda: bool(collected.collection.states()))
            file.write_text("[broken")
            await until(lambda: target in collected.collection.problems)
            assert [state.address for state in collected.collection.states()] == [first.url]
            file.write_text(json.dumps([{"targets": [first.url, second.url]}]))
            await until(lambda: len(collected.collection.states()) == 2)
            assert not collected.collection.problems

        collecting(sqlite_database, [target], check, look_up_seconds=0.05)


def test_what_is_watched_has_the_counts_of_one_long_watch(sqlite_database: Database) -> None:
    with recorded("vllm/eagle3") as served:

        async def check(_: Collected) -> None:
            await until(lambda: served.index == len(served.snapshots) - 1, 30)

        collecting(sqlite_database, [fast(served.url)], check, now=served.clock)
    with sqlite_database.reading() as connection:
        (run,) = list_runs(connection).runs
        windows = load_run(connection, run.id).windows
    assert sum(window.verify_steps or 0 for window in windows) == 17459


def test_a_fault_of_ours_is_one_targets_alone(
    sqlite_database: Database, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    prepare = Recorder.prepare

    def faulty(recorder: Recorder, scrape: Scrape) -> Any:
        if recorder.address == broken.url:
            raise ZeroDivisionError
        return prepare(recorder, scrape)

    monkeypatch.setattr(Recorder, "prepare", faulty)
    with recorded("vllm/eagle3") as good, recorded("vllm/ngram") as broken:

        async def check(collected: Collected) -> None:
            await until(lambda: collected.state(good.url).scrapes >= 1 and bool(collected.state(broken.url).error))
            assert "fault of draftscope" in collected.state(broken.url).error

        collecting(sqlite_database, [fast(good.url), fast(broken.url)], check)
    assert "ZeroDivisionError" in caplog.text


def test_scrapes_are_spread_over_the_interval_and_the_same_at_every_start() -> None:
    places = [spread(f"http://gpu{number}:30000") for number in range(1_000)]
    assert places == [spread(f"http://gpu{number}:30000") for number in range(1_000)]
    for tenth in range(10):
        assert 60 < sum(tenth / 10 <= place < (tenth + 1) / 10 for place in places) < 140
