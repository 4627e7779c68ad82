"""``draftscope scrape`` from end to end."""

from __future__ import annotations

import io
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from rich.console import Console

from collector.domain.errors import InputError
from collector.scraping import Watch
from collector.sources.http import Endpoint
from collector.sources.pace import Pace
from collector.sources.scrape import Scraper
from collector.storage.engine import Database, open_database
from collector.storage.runs import list_runs, load_run
from dashboard.cli import main
from dashboard.cli.scrape import keep_scraping
from dashboard.durations import duration
from tests.live.conftest import Watched
from tests.live.recorded import Recorded, recorded
from tests.live.replay import QuietHandler, replay, serve

COMMAND = [sys.executable, "-c", "from dashboard.cli import main; main()", "scrape"]


def command(*arguments: str, tmp_path: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*COMMAND, *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
        env=clean_environment(tmp_path, **environment),
    )


def clean_environment(tmp_path: Path, **environment: str) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DRAFTSCOPE_")}
    home = {"HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path / "data"), "XDG_CONFIG_HOME": str(tmp_path / "config")}
    return {**inherited, **home, **environment}


def test_once_shows_configuration_and_acceptance_since_the_start(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    with replay("0.5.23-eagle3", only=slice(-1, None)) as served:
        done = command(served.url, "--once", "--database-url", url, tmp_path=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    shown = " ".join(done.stdout.split())
    for words in (
        "SGLang 0.5.23",
        "Method EAGLE3",
        "Tokens verified a step 4",
        "Acceptance length 2.275 over 1,507 steps since the start of the process",
        "Stored as run 1.",
    ):
        assert words in shown
    with open_database(url) as database, database.reading() as connection:
        assert load_run(connection, 1).windows[0].verify_steps == 1507


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "vllm/eagle3",
            (
                "vLLM 0.32.0", "Serves tiny", "Draft steps 3", "Acceptance length 2.250 over 17,459 steps",
                "Accepted by position 0.654 0.376 0.220", "Generated tokens 39,264", "VLLM_SERVER_DEV_MODE=1",
            ),
        ),
        (
            "llamacpp/draft-near",
            (
                "llama.cpp b11434", "Method draft-simple", "Draft steps 4", "Running requests at most 2",
                "Acceptance length 3.339 over 336 steps", "Accepted by position 0.810 0.685 0.476 0.369",
            ),
        ),
        ("vllm/baseline", ("Generated tokens 31,680",)),
    ],
)  # fmt: skip
def test_once_shows_what_each_engine_tells(run: Callable[..., Done], name: str, words: tuple[str, ...]) -> None:
    with recorded(name, only=slice(-1, None)) as served:
        done = run(served.url)
    assert done.code == 0
    assert [word for word in words if word not in done.out] == []
    assert ("Acceptance" in done.out) == ("baseline" not in name)


def test_requests_that_the_engine_does_not_count_are_not_said_to_be_none(run: Callable[..., Done]) -> None:
    def silent(served: Recorded) -> None:
        served.snapshots = [(at, body.replace(b"num_requests_waiting", b"num_other")) for at, body in served.snapshots]

    with recorded("vllm/eagle3", only=slice(-1, None), change=silent) as served:
        out = run(served.url).out
    assert re.search(r"Requests \d+ running", out)
    assert "waiting" not in out
    with recorded("vllm/eagle3", only=slice(-1, None)) as served:
        assert re.search(r"Requests \d+ running, 0 waiting", run(served.url).out)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., Done]:
    """The command inside this process, with a database of its own."""
    for name in [name for name in os.environ if name.startswith("DRAFTSCOPE_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)

    def scrape(*arguments: str) -> Done:
        with pytest.raises(SystemExit) as stopped:
            main(["scrape", *arguments, "--database-url", f"sqlite:///{tmp_path / 'runs.db'}"])
        out, err = capsys.readouterr()
        return Done(stopped.value.code or 0, " ".join(out.split()), err)

    return scrape


class Done(NamedTuple):
    code: int
    out: str
    err: str


def test_the_second_scrape_tells_of_the_interval(run: Callable[..., Done]) -> None:
    with replay("0.5.23-eagle3") as served:
        assert "over 98 steps since the start of the process" in run(served.url).out
        assert "over 137 steps since the last scrape" in run(served.url).out


def test_asked_and_running_values_stand_side_by_side(run: Callable[..., Done]) -> None:
    def asked_for_more(info: dict) -> dict:
        return {**info, "launch_command": "--model-path m --speculative-num-draft-tokens 16"}

    with replay("0.5.9-override-draft-tokens", only=slice(-1, None), change_info=asked_for_more) as served:
        assert "16 asked, 2 runs" in run(served.url).out


def test_the_key_comes_from_the_option_or_the_environment(
    run: Callable[..., Done], monkeypatch: pytest.MonkeyPatch
) -> None:
    with replay("0.5.23-eagle3", api_key="s3cret-key") as served:
        refused = run(served.url)
        assert refused.code == 2
        assert "--api-key" in refused.err
        assert run(served.url, "--api-key", "s3cret-key").code == 0
        monkeypatch.setenv("DRAFTSCOPE_API_KEY", "s3cret-key")
        allowed = run(served.url)
    assert allowed.code == 0
    assert "s3cret" not in allowed.out + allowed.err


def test_an_engine_that_is_down_is_an_error_of_one_scrape(tmp_path: Path) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        done = command(url, "--database-url", f"sqlite:///{tmp_path / 'runs.db'}", tmp_path=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "nothing answers at this address" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("try: ")


def test_every_goes_on_until_interrupted(tmp_path: Path) -> None:
    with replay("0.5.9-eagle3") as served:
        process = subprocess.Popen(
            [*COMMAND, served.url, "--every", "1s", "--database-url", f"sqlite:///{tmp_path / 'runs.db'}"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=clean_environment(tmp_path, PYTHONUNBUFFERED="1"),
        )
        assert process.stderr is not None
        lines = [process.stderr.readline(), process.stderr.readline()]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "")
    assert all("run 1, " in line for line in lines)
    assert "stopped after 2 scrapes: run 1" in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--once", "--every", "15s"], "exclude each other"),
        (["--every", "soon"], "not a duration"),
        (["--every", "0s"], "not a duration"),
        (["--every", "100ms"], "too often"),
        (["--timeout", "-1"], "not a duration"),
    ],
)
def test_options_that_make_no_sense_are_refused(
    capsys: pytest.CaptureFixture[str], arguments: list[str], words: str
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["scrape", "http://127.0.0.1:1", *arguments])
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("15s", 15), ("1m", 60), ("1m30s", 90), ("2h", 7200), ("500ms", 0.5), ("20", 20), (" 1.5S ", 1.5)],
)
def test_durations(text: str, seconds: float) -> None:
    assert duration(text, "--every") == seconds


@pytest.mark.parametrize("text", ["", "s", "15 s", "15x", "-3s", "1s2", "nan", "1e3", "٣s", "0"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="--every"):
        duration(text, "--every")


# ---- going on: time is passed in


class Time:
    """A clock that only moves when somebody sleeps; stops the loop when nothing is left."""

    def __init__(self, left: Callable[[], bool] = lambda: True) -> None:
        self.now = 1_000.0
        self.slept: list[float] = []
        self.left = left

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now += seconds
        if not self.left():
            raise KeyboardInterrupt


def kept(database: Database, url: str, time: Time, clock: Callable[[], float], every: float = 15.0) -> str:
    """What is printed while an address is scraped until the time is over."""
    written = io.StringIO()
    with Endpoint(url, timeout=5.0) as endpoint:
        watch = Watch(database, Scraper(endpoint, clock=clock))
        pace = Pace(every, monotonic=time.monotonic, sleep=time.sleep)
        keep_scraping(watch, pace, Console(file=written, width=200), clock=clock)
    return written.getvalue()


def test_a_whole_recording_is_watched_to_the_same_windows(
    sqlite_database: Database, watched: Callable[[str], Watched]
) -> None:
    with replay("0.5.11-restarts") as served:
        time = Time(lambda: served.left > 0)
        text = kept(sqlite_database, served.url, time, served.clock)
    assert time.slept == [15.0] * len(served.snapshots)
    assert text.count("the engine was restarted: a new run") == 2
    assert text.splitlines()[-1] == f"stopped after {len(served.snapshots)} scrapes: runs 1, 2, 3"
    with sqlite_database.reading() as connection:
        for record in watched("0.5.11-restarts").records:
            number = watched("0.5.11-restarts").records.index(record) + 1
            assert load_run(connection, number).windows == record.windows


def test_an_engine_that_is_down_at_first_is_tried_again_ever_more_slowly(sqlite_database: Database) -> None:
    with replay("0.5.23-eagle3") as served:
        answer, tries = served.answer, []

        def starting(path: str, authorization: str | None) -> tuple[int, str, bytes]:
            tries.append(path)
            down = tries.count("/metrics") <= 4 and path == "/metrics"
            return (503, "text/plain", b"") if down else answer(path, authorization)

        served.answer = starting
        time = Time(lambda: served.left > 0)
        text = kept(sqlite_database, served.url, time, served.clock)
    assert time.slept[:5] == [15.0, 30.0, 60.0, 120.0, 15.0]
    assert text.count("the server answered 503") == 4
    assert "next try in 120 s" in text
    with sqlite_database.reading() as connection:
        assert len(list_runs(connection).runs) == 1


def test_an_engine_that_went_away_and_came_back_loses_nothing(sqlite_database: Database) -> None:
    with replay("0.5.23-eagle3") as served:
        answer, asked = served.answer, []

        def failing(path: str, authorization: str | None) -> tuple[int, str, bytes]:
            asked.append(path)
            gone = path == "/metrics" and asked.count("/metrics") in (3, 4)
            return (500, "text/plain", b"") if gone else answer(path, authorization)

        served.answer = failing
        kept(sqlite_database, served.url, Time(lambda: served.left > 0), served.clock)
    with sqlite_database.reading() as connection:
        (run,) = list_runs(connection).runs
        windows = load_run(connection, run.id).windows
    truth = served.recording.sums()
    assert sum(window.verify_steps for window in windows if window.seconds) == truth.steps
    assert asked.count("/server_info") == 2  # what answers after a silence may be another process


def test_another_server_on_the_port_is_an_error_until_the_engine_is_back(sqlite_database: Database) -> None:
    class Handler(QuietHandler):
        def do_GET(self) -> None:  # noqa: N802 - the base class calls it so
            self.send(200, "text/plain", b"other:num_requests_running 1.0\n")

    with serve(Handler) as url:
        time = Time(lambda: len(time.slept) < 2)
        text = kept(sqlite_database, url, time, lambda: 0.0)
    assert text.count("their names begin with other") == 2
    assert text.splitlines()[-1] == "stopped after 0 scrapes: nothing stored"


def test_late_scrapes_do_not_shift_those_after_them() -> None:
    time = Time()
    pace = Pace(15.0, monotonic=time.monotonic, sleep=time.sleep)
    time.now += 4.0
    assert pace.next_in(failed=False) == 11.0
    time.now += 11.0 + 33.0  # one that took 33 s
    assert pace.next_in(failed=False) == 12.0
    time.now += 12.0
    assert pace.next_in(failed=False) == 15.0


def test_sources_stay_spread_and_those_that_are_close_come_together() -> None:
    time = Time()

    def due(share: float) -> list[float]:
        """When a source is tried, if each try takes a while."""
        pace = Pace(15.0, share=share, monotonic=time.monotonic, sleep=time.sleep)
        began, instants = time.now, []
        time.sleep(pace.first_in())
        for _ in range(3):
            instants.append(time.now)
            time.now += 2.5
            time.sleep(pace.next_in(failed=False))
        time.now = began + 0.01  # the next source begins a little later
        return instants

    first, close, other = due(0.301), due(0.303), due(0.7)
    assert first == close == [1_005.0, 1_020.0, 1_035.0]
    assert other == [1_011.0, 1_026.0, 1_041.0]


def test_pauses_after_failures_are_bounded() -> None:
    time = Time()
    pace = Pace(15.0, monotonic=time.monotonic, sleep=time.sleep)
    pauses = []
    for _ in range(40):
        pauses.append(pace.next_in(failed=True))
        time.now += pauses[-1]
    assert pauses[:6] == [15.0, 30.0, 60.0, 120.0, 240.0, 300.0]
    assert set(pauses[6:]) == {300.0}
    slow = Pace(600.0, monotonic=time.monotonic, sleep=time.sleep)
    time.now += 600.0
    assert [slow.next_in(failed=True), slow.next_in(failed=True)] == [600.0, 1200.0]
