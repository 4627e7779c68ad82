"""``draftscope watch``: running engines on the terminal, without a database."""

from __future__ import annotations

import contextlib
import os
import pty
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from collector.domain.errors import SourceError
from collector.sources.http import Endpoint
from collector.sources.live import MOST_WINDOWS, LiveRun
from collector.sources.scrape import Scraper
from dashboard.cli import main
from tests.live.recorded import Recorded, recorded
from tests.live.replay import replay

ROOT = Path(__file__).parents[2]
LOG = ROOT / "tests" / "golden" / "logs" / "vllm" / "baseline" / "log.txt"
COMMAND = [sys.executable, "-c", "from dashboard.cli import main; main()", "watch"]


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """The command inside this process; gives what was shown last, of each engine a panel."""
    for name in [name for name in os.environ if name.startswith("DRAFTSCOPE_")]:
        monkeypatch.delenv(name)
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> str:
        with pytest.raises(SystemExit) as stopped:
            main(["watch", *arguments, "--every", "1s"])
        assert not stopped.value.code
        words = " ".join(capsys.readouterr().out.replace("│", " ").split())
        return words[words.rindex(f"╭─ {arguments[0].removesuffix('/')}") :]

    return run


def test_an_engine_is_shown_with_acceptance_cost_latency_and_verdicts(watch: Callable[..., str]) -> None:
    with recorded("vllm/eagle3") as served:
        shown = watch(served.url, "--count", "4", "--validation-accuracy", "0.678,0.657", "--baseline", str(LOG))
    for words in (
        "vllm 0.32.0", "depth 3", "Accepted enough?", "Pays?", "Acceptance length 2.2", "By position 0.66 0.39 0.23 ▆▄▃",
        "Draft coverage 0.97", "Throughput", "Step time", "Speed-up x", "Step cost", "Time to first token", "p99",
        "Time per output token", "of what validation promises", "4 scrapes",
    ):  # fmt: skip
        assert words in shown, words


def test_several_engines_stand_below_one_another_and_one_that_is_down_hides_none(watch: Callable[..., str]) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        down = f"http://127.0.0.1:{taken.getsockname()[1]}"
        with recorded("llamacpp/draft-near") as first, replay("0.5.23-eagle3") as second:
            shown = watch(first.url, second.url, down, "--count", "2")
    assert "llamacpp b11434 · draft_model · depth 4" in shown
    assert "sglang 0.5.23 · eagle3 · depth 3" in shown
    assert "does not answer: nothing answers at this address" in shown


def test_what_the_launch_command_says_is_compared_with_what_runs(watch: Callable[..., str], tmp_path: Path) -> None:
    command = (
        'vllm serve /models/tiny-target --speculative-config \'{"method": "eagle3", "num_speculative_tokens": 5}\''
    )
    (tmp_path / "launch.txt").write_text(command)
    with recorded("vllm/eagle3") as served:
        shown = watch(served.url, "--count", "1", "--launch", str(tmp_path / "launch.txt"))
    assert "eagle3 · depth 3" in shown
    assert "3 flags asked for" in shown


@pytest.mark.parametrize(("option", "words"), [("100ms", "too often"), ("soon", "not a duration")])
def test_a_pause_that_makes_no_sense_is_refused(capsys: pytest.CaptureFixture[str], option: str, words: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["watch", "http://127.0.0.1:1", "--every", option])
    assert stopped.value.code == 2
    assert words in capsys.readouterr().err


def test_it_ends_quietly_when_interrupted(tmp_path: Path) -> None:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DRAFTSCOPE_")}
    with recorded("vllm/eagle3") as served:
        process = subprocess.Popen(
            [*COMMAND, served.url, "--every", "1s"],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            cwd=tmp_path,
            env={**inherited, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": "1"},
        )
        assert process.stdout is not None
        first = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert served.url in first + out
    assert (process.returncode, err) == (0, "")


def test_a_terminal_is_drawn_in_place(tmp_path: Path) -> None:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("DRAFTSCOPE_")}
    ours, theirs = pty.openpty()
    with recorded("vllm/eagle3") as served:
        process = subprocess.Popen(
            [*COMMAND, served.url, "--every", "1s", "--count", "2"], stdout=theirs, stderr=subprocess.PIPE, cwd=tmp_path,
            env={**inherited, "PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "100"},
        )  # fmt: skip
        os.close(theirs)
        drawn = b""
        with contextlib.suppress(OSError):  # what Linux says once the other end is closed
            while data := os.read(ours, 65536):
                drawn += data
        os.close(ours)
        assert process.stderr is not None
        with process.stderr as err:
            assert (process.wait(30), err.read()) == (0, b"")
    assert b"Acceptance length" in drawn
    assert drawn.count(b"\x1b[1A") > 10  # the cursor goes up and draws over what stood there


# ---- the run in memory


def live_of(served: Recorded, endpoint: Endpoint) -> LiveRun:
    return LiveRun(Scraper(endpoint, clock=served.clock))


@pytest.mark.parametrize("name", ["vllm/eagle3", "llamacpp/draft-near"])
def test_the_run_in_memory_counts_like_the_engine(name: str) -> None:
    drafts = {"vllm": "vllm:spec_decode_num_drafts_total", "llamacpp": "llamacpp:spec_decode_num_drafts_total"}
    with recorded(name) as served, Endpoint(served.url) as endpoint:
        live = live_of(served, endpoint)
        for _ in served.snapshots:
            record = live.take()
        assert sum(window.verify_steps or 0 for window in record.windows) == served.last(drafts[served.engine])
    assert live.scrapes == len(served.snapshots)


def test_a_restart_begins_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    with recorded("llamacpp/draft-near") as served, Endpoint(served.url) as endpoint:
        live = live_of(served, endpoint)
        live.take()
        live.take()
        served.token = "86400999999"
        record = live.take()
    (window,) = record.windows
    assert window.seconds is None


def test_an_engine_that_goes_away_keeps_what_is_known() -> None:
    with recorded("vllm/eagle3") as served, Endpoint(served.url) as endpoint:
        live = live_of(served, endpoint)
        live.take()
        answer = served.answer
        served.answer = lambda *_: (500, "text/plain", b"")
        with pytest.raises(SourceError):
            live.take()
        served.answer = answer
        record = live.take()
    assert record.windows[-1].verify_steps == 1250  # the interval in which it was away is not lost


def test_memory_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("collector.sources.live.MOST_WINDOWS", 3)
    with recorded("vllm/eagle3") as served, Endpoint(served.url) as endpoint:
        live = live_of(served, endpoint)
        for _ in served.snapshots:
            record = live.take()
    assert len(record.windows) == 3 < MOST_WINDOWS
