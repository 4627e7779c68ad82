"""``draftscope alerts`` as people use it."""

from __future__ import annotations

from pathlib import Path

import pytest

from collector.storage.engine import open_database
from dashboard.alerts import Alerting
from dashboard.cli import main
from dashboard.settings import load_settings
from tests.out.channels import PLANTED, SIGNING
from tests.out.receiver import Answer, Receiver, receiving
from tests.out.stored import finding, judge, save


class Cli:
    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str) -> tuple[int, str]:
        """Exit code, and all that was printed as one line."""
        with pytest.raises(SystemExit) as ended:
            main(["alerts", *arguments])
        printed = self._capsys.readouterr()
        text = " ".join((printed.out + printed.err).split())
        assert not [word for word in PLANTED if word in text]
        return int(ended.value.code or 0), text


@pytest.fixture
def cli(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> Cli:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DRAFTSCOPE_DATABASE_URL", sqlite_url)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    monkeypatch.setenv("COLUMNS", "300")
    return Cli(capsys)


def settings(*receivers: Receiver) -> None:
    tables = [
        f'[[alerts.channel]]\nname = "hook{n}"\nkind = "webhook"\nurl = "{receiver.url}"\nsecret = "{SIGNING}"\n'
        for n, receiver in enumerate(receivers)
    ]
    Path("draftscope.toml").write_text("\n".join(tables), encoding="utf-8")


def test_without_anything_it_says_so(cli: Cli) -> None:
    assert cli("list") == (0, "Nothing fires.")
    assert cli("channels")[1].startswith("No channel is set.")
    assert cli("silences") == (0, "No silence holds.")
    assert cli("deliveries") == (0, "Nothing was sent so far.")
    code, text = cli("test")
    assert (code, "no alert channel is set" in text) == (2, True)


def test_a_test_message_tells_what_came_back(cli: Cli) -> None:
    with receiving([Answer(200)]) as fine, receiving([Answer(404)]) as gone:
        settings(fine, gone)
        code, text = cli("test")
        assert code == 2
        assert "hook0: arrived, 200 OK" in text
        assert "hook1: did not arrive, the receiver answered 404 Not Found" in text
        assert cli("test", "hook0") == (0, "hook0: arrived, 200 OK")
        code, text = cli("test", "hok0")
        assert (code, "did you mean hook0?" in text) == (2, True)
        _, text = cli("channels")
        assert [word for word in ("hook0", "***", "ready", "failing", "404") if word not in text] == []
        _, text = cli("deliveries")
        assert [word for word in ("hook0", "test", "sent", "failed", "200 OK", "404") if word not in text] == []


def test_what_fires_and_what_is_silenced(cli: Cli, sqlite_url: str) -> None:
    settings(Receiver("http://127.0.0.1:9/hook-PATHSECRET", []))
    with open_database(sqlite_url) as database, database.transaction() as connection:
        alerting = Alerting(load_settings().channels, "https://x.example")
        judge(connection, save(connection, deployment="chat"), finding(), alerting=alerting, at=1000.0)
    _, text = cli("list")
    assert [word for word in ("warning", "PAY001", "chat, run 1", "1 January 1970", "nobody") if word not in text] == []
    code, text = cli("silence", "--rule", "PAY*", "--label", "team=search", "--for", "2h", "--comment", "new draft")
    assert (code, "silence 1 holds until" in text) == (0, True)
    assert "nobody" not in cli("list")[1]
    assert "new draft" in cli("silences")[1]
    assert cli("unsilence", "1") == (0, "silence 1 has ended")
    code, text = cli("unsilence", "1")
    assert (code, "no silence 1 holds" in text) == (2, True)
    assert cli("silences") == (0, "No silence holds.")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), "nothing says what to keep quiet"),
        (("--rule", "PAY001", "--for", "soon"), "'soon' is no duration"),
        (("--rule", "PAY001", "--for", "90d"), "up to 30 days"),
        (("--label", "team"), "is not NAME=TEXT"),
    ],
)
def test_a_silence_that_cannot_be_is_named(cli: Cli, arguments: tuple[str, ...], words: str) -> None:
    code, text = cli("silence", *arguments)
    assert (code, words in text) == (2, True)
