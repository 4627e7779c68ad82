"""Settings: strict, complete in the documentation, and secret where they are secret."""

from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest

from analysis.thresholds import Thresholds
from collector.domain.errors import DraftscopeError, InputError, MalformedInput, UnknownName, UnreadableInput
from collector.domain.findings import Severity
from dashboard.masked import Secret
from dashboard.settings import Alerts, Service, Settings, load_settings, variables
from dashboard.sinks import sink_kinds
from dashboard.targets import Target

PAGE = (Path(__file__).parents[2] / "docs" / "settings.md").read_text(encoding="utf-8")
SECRET = "whsec_U0lHTklOR1NFQ1JFVC1TSUdOSU5HU0VDUkVU"
CHANNEL = f"""
[[alerts.channel]]
name = "on-call"
kind = "webhook"
url = "https://hooks.example.org/PATHSECRET"
secret = "{SECRET}"
"""
MAIL = """
[[alerts.channel]]
name = "mail"
kind = "email"
host = "mail.example.org"
sender = "draftscope@example.org"
to = ["ops@example.org"]
"""


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))

    def load(text: str, **environ: str) -> Settings:
        (tmp_path / "draftscope.toml").write_text(text, encoding="utf-8")
        return load_settings(environ=environ)

    return load


def test_nothing_is_needed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    settings = load_settings(environ={})
    assert settings == Settings(Service(), Thresholds())
    assert settings.public_url == "http://127.0.0.1:8787"


def test_the_environment_wins_over_the_file(read) -> None:
    settings = read(
        'host = "10.0.0.1"\nport = 80\ntoken = "of-the-file"\n[thresholds]\nfew_windows = 5\nregression_share = 1\n',
        DRAFTSCOPE_PORT="8080",
        DRAFTSCOPE_TOKEN="of-the-environment",
        DRAFTSCOPE_PUBLIC_URL="https://draftscope.example.org/",
        DRAFTSCOPE_HOST="  ",
        DRAFTSCOPE_DATABASE_URL="postgresql://u:p@db/x",
        DRAFTSCOPE_THRESHOLDS_FEW_WINDOWS="7",
    )
    service = settings.service
    assert (service.host, service.port, settings.public_url) == ("10.0.0.1", 8080, "https://draftscope.example.org")
    assert service.token == Secret("of-the-environment")
    assert service.database_url is not None
    assert service.database_url.reveal() == "postgresql://u:p@db/x"
    assert settings.thresholds == Thresholds(few_windows=7, regression_share=1.0)
    assert isinstance(settings.thresholds.regression_share, float)


def test_a_channel_is_read_with_the_settings_of_its_kind(read) -> None:
    (channel,) = read(CHANNEL + 'min_severity = "critical"\nallow_private = false').channels
    assert channel.kind == "webhook"
    config = channel.config
    assert (config.name, config.min_severity, config.allow_private) == ("on-call", Severity.CRITICAL, False)
    assert config.secret.reveal() == SECRET


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ('databse_url = "x"', UnknownName, "'databse_url'.*did you mean database_url"),
        ("[thresholds]\nfew_window = 3", UnknownName, "'few_window'.*did you mean few_windows"),
        ("[alerts]\nchannels = []", UnknownName, "'channels'.*did you mean channel"),
        (CHANNEL + "min_severty = 1", UnknownName, "'min_severty'.*number 1.*did you mean min_severity"),
        ('[[alerts.channel]]\nname = "a"\nkind = "webhok"', UnknownName, "'webhok'.*webhook"),
        ('[[alerts.channel]]\nname = "a"', UnknownName, "kind of the channel is missing"),
        ('[[alerts.channel]]\nname = "a"\nkind = "webhook"\nurl = "https://x/y"', MalformedInput, "secret is missing"),
        (CHANNEL + CHANNEL, MalformedInput, "two alert channels are named 'on-call'"),
        (CHANNEL.replace("on-call", " "), MalformedInput, "name is empty"),
        (CHANNEL.replace("https:", "ftp:"), MalformedInput, "url needs the form"),
        (CHANNEL.replace("whsec_", ""), MalformedInput, "secret needs the form"),
        (CHANNEL.replace(SECRET, "whsec_c2hvcnQ="), MalformedInput, "secret needs the form"),
        (CHANNEL + 'min_severity = "loud"', MalformedInput, "min_severity is not info, warning or critical"),
        (CHANNEL + "rules = 3", MalformedInput, r'rules is not a list of texts.*for instance rules = \["text"\]'),
        (CHANNEL + "labels = { team = 3 }", MalformedInput, "labels.team is not a text"),
        (CHANNEL + "open_after_seconds = -1", MalformedInput, "no wait can be below 0"),
        (CHANNEL + "most_per_minute = 0", MalformedInput, "most_per_minute is 1 or more"),
        (CHANNEL + "group_seconds = 3", MalformedInput, "group_seconds does nothing here"),
        (MAIL + 'encryption = "ssl"', MalformedInput, "encryption is not one of starttls, tls, none"),
        (MAIL + 'username = "ops"', MalformedInput, "username and password belong together"),
        ("[alerts]\nquiet_start = 3", UnknownName, "did you mean quiet_start_seconds"),
        ("alerts = 3", MalformedInput, "alerts is not a table"),
        ("[alerts]\nchannel = 3", MalformedInput, "list of tables"),
        ("thresholds = []", MalformedInput, "thresholds is not a table"),
        ('port = "80"', MalformedInput, "port is not a whole number"),
        ("port = true", MalformedInput, "port is not a whole number"),
        ("port = 80000", MalformedInput, "port 80000 is no port"),
        ("host = 3", MalformedInput, "host is not a text"),
        ("token = 3", MalformedInput, "token is not a text"),
        ('[thresholds]\nregression_share = "much"', MalformedInput, "regression_share is not a number"),
        ("[thresholds]\nregression_share = nan", MalformedInput, "regression_share is not a number"),
        ("[thresholds]\nfew_windows = 2.5", MalformedInput, "few_windows is not a whole number"),
        ('public_url = "draftscope"', MalformedInput, "public_url is no address"),
        ('public_url = "https://user:word@host"', MalformedInput, "public_url is no address"),
        ('database_url = "https://[x"', MalformedInput, "database_url is no address"),
        ("port = ", MalformedInput, "no TOML"),
    ],
)
def test_what_does_not_fit_is_named(read, text: str, kind: type[InputError], words: str) -> None:
    with pytest.raises(kind) as caught:
        read(text)
    assert re.search(words, str(caught.value))
    assert "draftscope.toml" in caught.value.where
    assert caught.value.hint


@pytest.mark.parametrize("name", ["DRAFTSCOPE_TOKN", "DRAFTSCOPE_DATABSE_URL", "DRAFTSCOPE_THRESHOLDS_FEW_WINDOW"])
def test_a_slip_of_the_pen_in_the_environment_is_an_error(read, name: str) -> None:
    with pytest.raises(UnknownName, match=f"{name}.*did you mean DRAFTSCOPE_"):
        read("", **{name: "3"})


def test_what_others_put_into_the_environment_is_left_alone(read) -> None:
    others = (
        "SERVICE_HOST",
        "SERVICE_PORT",
        "PORT_8787_TCP",
        "PORT_8787_TCP_ADDR",
        "TEST_DATABASE_URL",
        "SOAK",
        "API_KEY",
    )
    assert read("", **{f"DRAFTSCOPE_{name}": "tcp://10.0.0.1:8787" for name in others}) == Settings()


def test_a_port_that_is_an_address_is_no_port(read) -> None:
    with pytest.raises(MalformedInput, match="port is not a whole number; the environment"):
        load_settings(environ={"DRAFTSCOPE_PORT": "tcp://10.0.0.1:8787"})


def test_the_named_file_is_taken_and_must_be_there(tmp_path: Path, read) -> None:
    other = tmp_path / "other.toml"
    other.write_text("port = 1234", encoding="utf-8")
    assert read("port = 1", DRAFTSCOPE_CONFIG=str(other)).service.port == 1234
    assert load_settings(other, {"DRAFTSCOPE_CONFIG": "nowhere"}).service.port == 1234
    with pytest.raises(UnreadableInput, match=r"nowhere\.toml; check DRAFTSCOPE_CONFIG"):
        load_settings(environ={"DRAFTSCOPE_CONFIG": str(tmp_path / "nowhere.toml")})
    other.write_bytes(b"\xff\xfe")
    with pytest.raises(MalformedInput, match="not UTF-8"):
        load_settings(other, {})


def test_no_error_and_no_print_shows_a_secret(read) -> None:
    file = 'token = "TOKENSECRET"\ndatabase_url = "postgresql://u:WORDSECRET@db/x"\n' + CHANNEL
    shown = f"{read(file)!r}"
    for broken in ("\nport = 1", 'allow_private = "PATHSECRET"', "x = 1", "min_severity = 4", "]"):
        with pytest.raises(DraftscopeError) as caught:
            read(file + broken)
        shown += repr(caught.value) + str(caught.value)
    planted = ("TOKENSECRET", "WORDSECRET", SECRET, SECRET.removeprefix("whsec_"))
    assert not [secret for secret in planted if secret in shown]
    assert set(planted[:3]) < {*read(file).secrets()}


def documented(heading: str) -> dict[str, str]:
    """Keys of a section's table with what stands in the second column."""
    section = PAGE.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return {key: default.strip() for key, default in re.findall(r"^\| `(\w+)` \|([^|]*)\|", section, re.MULTILINE)}


def documented_channels() -> dict[str, set[str]]:
    """The keys that the page gives each kind of channel."""
    section = PAGE.partition("\n## [[alerts.channel]]\n")[2].partition("\n## ")[0]
    shared, *tables = re.split(r"^Keys? of (?!all)", section, flags=re.MULTILINE)
    rows = re.compile(r"^\| `(\w+)` \|([^|]*)\|", re.MULTILINE)
    found = {kind: {key for key, _ in rows.findall(shared)} for kind in sink_kinds()}
    for table in tables:
        for kind in re.findall(r"`(\w+)`", table.partition("\n")[0].partition(", which")[0]):
            found[kind] |= {key for key, note in rows.findall(table) if "only" not in note or f"`{kind}` only" in note}
    return found


def test_every_key_is_documented_with_its_default() -> None:
    assert list(documented("At the top of the file")) == [item.name for item in fields(Service)]
    limits = {item.name: f"{item.default}".removesuffix("0") for item in fields(Thresholds)}
    shown = {key: default.removesuffix("0") for key, default in documented("[thresholds]").items()}
    assert shown == limits
    keys_of = documented_channels()
    for name, kind in sink_kinds().items():
        keys = {item.name for item in fields(kind.Config)}  # type: ignore[arg-type]
        assert keys_of[name] == {*keys, "kind"}, name
    assert list(documented("[alerts]")) == [item.name for item in fields(Alerts)]
    assert list(documented("[[targets]]")) == [item.name for item in fields(Target)]


def test_every_variable_is_documented() -> None:
    named = [name for name in variables() if "THRESHOLDS" not in name]
    assert [name for name in named if f"`{name}`" not in PAGE] == []
    assert "`DRAFTSCOPE_THRESHOLDS_`" in PAGE
