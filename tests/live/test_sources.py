"""Sources: what the settings may say of them, and reading them by command and by the service."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from collector.domain.errors import InputError, MalformedInput, UnknownName
from collector.storage.engine import open_database
from collector.storage.runs import load_run
from dashboard.cli import main
from dashboard.feeds.base import HttpSource, Source
from dashboard.feeds.prometheus import PrometheusSource
from dashboard.masked import Secret
from dashboard.settings import Settings, load_settings
from tests.live.recorded import Recorded
from tests.live.stores import labelled, prometheus
from tests.out.test_serve import Place

NAME = "vllm/eagle3"
STEPS = Recorded(NAME).last("vllm:spec_decode_num_drafts_total")


@pytest.fixture
def read(tmp_path: Path) -> Callable[[str], Settings]:
    def load(text: str) -> Settings:
        file = tmp_path / "draftscope.toml"
        file.write_text(text, encoding="utf-8")
        return load_settings(file, {})

    return load


def recently(seconds: float = 60.0) -> list[tuple[float, bytes]]:
    """The recorded snapshots as if the last one had been taken so long ago."""
    recorded = Recorded(NAME).snapshots
    shift = time.time() - seconds - recorded[-1][0]
    return [(at + shift, body) for at, body in recorded]


# ---- settings


def test_a_source_says_where_what_and_with_which_secrets(
    read: Callable[[str], Settings], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "word").write_text("from-file\n")
    monkeypatch.setenv("STORE_KEY", "from-env")
    settings = read(
        '[[sources]]\nkind = "prometheus"\nurl = "https://u:in-url@mimir/prometheus"\nselect = \'{namespace="llm"}\'\n'
        f'tenant = "team-a"\nsince = "24h"\nheaders = {{ X-Scope = {{ file = "{tmp_path}/word" }}, X-Plain = "said" }}\n'
        'api_key = { env = "STORE_KEY" }\nlabels = { cluster = "eu" }\n'
    )
    (source,) = settings.sources
    assert isinstance(source, PrometheusSource)
    assert source.api_key == Secret("from-env")
    assert source.headers == {"X-Scope": Secret("from-file"), "X-Plain": Secret("said")}
    assert (source.tenant, source.since, source.labels) == ("team-a", "24h", {"cluster": "eu"})
    assert set(settings.secrets()) == {"from-env", "from-file", "said", "in-url"}
    assert not any(word in repr(source) for word in ("from-env", "from-file", "said"))
    assert "in-url" not in source.place


@pytest.mark.parametrize(
    ("text", "kind", "words"),
    [
        ("sources = 3", MalformedInput, "list of tables"),
        ('[[sources]]\nurl = "a:1"', UnknownName, "kind of the source is missing"),
        ('[[sources]]\nkind = "promtheus"\nurl = "a:1"', UnknownName, "did you mean prometheus"),
        ('[[sources]]\nkind = "prometheus"', MalformedInput, "url is missing"),
        ('[[sources]]\nkind = "prometheus"\nurl = "ftp://a"', MalformedInput, "url is no address"),
        ('[[sources]]\nkind = "prometheus"\nurl = "a:1"\nselct = "{}"', UnknownName, "did you mean select"),
        ('[[sources]]\nkind = "prometheus"\nurl = "a:1"\ninterval_seconds = 0.1', MalformedInput, "too short"),
        ('[[sources]]\nkind = "prometheus"\nurl = "a:1"\nheaders = "x"', MalformedInput, "not a table of texts"),
        (
            '[[sources]]\nkind = "prometheus"\nurl = "a:1"\nheaders = { a = 3 }',
            MalformedInput,
            "headers.a is not a text",
        ),
        ('[[sources]]\nkind = "prometheus"\nurl = "a:1"\nsince = "soon"', MalformedInput, "not a duration"),
        ('[[sources]]\nkind = "prometheus"\nurl = "a:1"\nselect = "up"', MalformedInput, "not a selector"),
        ('[[sources]]\nkind = "prometheus"\nurl = "a:1"\nuser = "u"\napi_key = "k"', MalformedInput, "exclude"),
        (
            '[[sources]]\nkind = "prometheus"\nurl = "a:1"\napi_key = { env = "NOT_SET" }',
            MalformedInput,
            "NOT_SET is not set",
        ),
        (
            '[[sources]]\nkind = "prometheus"\nurl = "a:1"\napi_key = { file = "/no/where" }',
            MalformedInput,
            "/no/where",
        ),
        (
            '[[sources]]\nkind = "prometheus"\nurl = "a:1"\napi_key = { vault = "x" }',
            MalformedInput,
            "no place of a secret",
        ),
    ],
)
def test_what_does_not_fit_is_named(
    read: Callable[[str], Settings], text: str, kind: type[InputError], words: str
) -> None:
    with pytest.raises(kind, match=words) as raised:
        read(text)
    assert "draftscope.toml" in raised.value.where
    assert raised.value.hint


def test_every_kind_of_source_has_a_place_and_says_what_it_is(read: Callable[[str], Settings]) -> None:
    from dashboard.feeds import source_kinds

    assert "prometheus" in source_kinds()
    for kind, source in source_kinds().items():
        assert issubclass(source, Source)
        assert source.kind == kind
        assert source.__doc__
        assert issubclass(source, HttpSource) or source.place


# ---- by command


def run(*arguments: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 0


@pytest.mark.needs("promtool")
def test_ingest_reads_a_store_and_judges_what_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DRAFTSCOPE_DATABASE_URL", f"sqlite:///{tmp_path / 'runs.db'}")
    monkeypatch.chdir(tmp_path)
    with prometheus(tmp_path / "store", labelled(recently(), job="vllm", instance="gpu1:8000")) as url:
        asked = ["ingest", "--prometheus", url, "--select", '{job="vllm"}', "--label", "team=search"]
        run(*asked, "--since", "2h")
        first = capsys.readouterr().out
        assert f"{url}: 1 run\n" in first
        assert "run 1  " in first
        run(*asked)
        assert f"{url}: 0 runs\n" in capsys.readouterr().out
    with open_database(f"sqlite:///{tmp_path / 'runs.db'}") as database, database.reading() as connection:
        record = load_run(connection, 1)
    assert sum(window.verify_steps or 0 for window in record.windows) == STEPS
    assert record.labels == {"job": "vllm", "team": "search"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--select", "{}"], "no store was named"),
        (["--tenant", "a"], "--prometheus URL"),
        (["--prometheus", "http://127.0.0.1:1", "server.log"], "read by itself"),
        (["--prometheus", "ftp://a"], "url is no address"),
        (["--prometheus", "a:1", "--header", "s3cret"], "NAME=TEXT"),
        (["--prometheus", "a:1", "--since", "yesterday"], "not a duration"),
    ],
)
def test_a_command_that_does_not_fit_is_told(
    arguments: list[str],
    words: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("DRAFTSCOPE_DATABASE_URL", f"sqlite:///{tmp_path / 'runs.db'}")
    with pytest.raises(SystemExit) as raised:
        main(["ingest", *arguments])
    told = capsys.readouterr().err
    assert raised.value.code == 2
    assert words in told
    assert "s3cret" not in told


# ---- by the service


@pytest.mark.needs("promtool")
def test_the_service_reads_its_sources_until_the_settings_change(tmp_path: Path) -> None:
    place = Place(tmp_path)
    (tmp_path / "dead").mkdir()
    with prometheus(tmp_path / "store", labelled(recently(), job="vllm", instance="gpu1:8000")) as url:
        place.settings(
            f'[[sources]]\nkind = "prometheus"\nurl = "{url}"\napi_key = "s3cret-key"\n'
            '[[sources]]\nkind = "prometheus"\nurl = "http://127.0.0.1:1"\ninterval_seconds = 1\n'
        )
        with place.serving() as running:

            def sources() -> list[dict[str, Any]]:
                rows: list[dict[str, Any]] = running.client.get("/api/v1/sources").json()["sources"]
                return rows

            running.until(lambda: [row["runs"] for row in sources()] == [1, 0])
            running.until(lambda: sources()[1]["failures_in_a_row"])
            dead = sources()[1]
            assert (dead["kind"], dead["place"], dead["error"]) == (
                "prometheus", "http://127.0.0.1:1", "nothing answers at this address",
            )  # fmt: skip
            run = running.until(lambda: running.client.get("/api/v1/runs").json()["runs"])[0]
            document = running.until(lambda: running.client.get(f"/api/v1/runs/{run['id']}/diagnosis").json())
            assert document["runs"][0]["quantities"]["verify_steps"]["value"] == STEPS
            place.settings("")
            running.process.send_signal(signal.SIGHUP)
            running.until(lambda: not sources())
            assert "s3cret-key" not in running.log
