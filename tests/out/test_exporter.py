"""The Prometheus exposition, as whole text."""

from __future__ import annotations

import asyncio
import gzip
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client.core import Metric
from prometheus_client.exposition import generate_latest
from prometheus_client.openmetrics import exposition as openmetrics_exposition
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families
from sqlalchemy import event

from collector.domain.errors import MalformedInput, StorageError, UnknownName
from collector.domain.findings import Severity
from collector.storage.deliveries import due, enqueue, mark_sent, save_channel
from collector.storage.engine import Database
from collector.storage.overview import load_judged, present_runs
from collector.storage.runs import extend_run, label_run, list_runs
from dashboard.collecting import TargetState
from dashboard.exporter.choices import ExporterChoices, read_choices
from dashboard.exporter.endpoint import Exporter, metrics_router
from dashboard.exporter.families import MOST_POSITIONS, all_families
from dashboard.exporter.runs import Given
from dashboard.pages.templating import product_version
from dashboard.samples import load_samples
from tests.out.stored import finding, judge, save

GOLDEN = Path(__file__).parent / "golden" / "metrics.txt"
NOW = 2000.0
PLAIN = "text/plain;version=0.0.4"
OPEN = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"


def answer(exporter: Exporter, accept: str = PLAIN, encoding: str = "identity") -> httpx.Response:
    app = FastAPI()
    app.include_router(metrics_router(exporter))

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://draftscope.test") as client:
            return await client.get("/metrics", headers={"Accept": accept, "Accept-Encoding": encoding})

    return asyncio.run(ask())


def scrape(database: Database, accept: str = PLAIN, choices: ExporterChoices | None = None) -> httpx.Response:
    return answer(Exporter(database, choices, clock=lambda: NOW), accept)


def series(text: str, name: str) -> list[tuple[dict[str, str], float]]:
    return [
        (sample.labels, sample.value)
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if sample.name == name
    ]


def summary(**values: object) -> dict:
    return {
        "method": "eagle3",
        "quantities": {key: {"value": value} for key, value in values.items()},
        "baseline_throughput": 89.9,
        "overridden": 3,
        "changed": 2,
        "drift": {"statistic": 9.5, "threshold": 8.0, "drifted": True, "onset": 1200.0},
    }


@pytest.fixture
def filled(database: Database) -> Database:
    """Two deployments: one with a run before the present one, one that nobody judged; and a sample."""
    with database.transaction() as connection:
        before = save(connection, started=100.0, ended=200.0, source="before.log")
        judge(connection, before, finding(), at=300.0, summary=summary(acceptance_length=1.9))
        run = save(connection, deployment='kimi "prod"\\eu')
        critical = finding("PAY001", Severity.CRITICAL)
        units = [finding("ACC007", scope=f"DP{i} TP0", values={"unit": f"DP{i} TP0"}) for i in range(2)]
        figures = {
            "acceptance_length": 1.8,
            "expected_acceptance_length": 3.27,
            "realistic_acceptance_length": 2.86,
            "retained_share": 0.353,
            "draft_acceptance_rate": 0.16,
            "conditional_acceptance_rate": 0.449,
            "generation_throughput": 54.8,
            "step_cost_ratio": 2.96,
            "speedup": 0.609,
            "acceptance_rate_at": [0.45, 0.2],
            "conditional_acceptance_rate_at": [0.45, float("nan")],
            "verify_steps": 720.0,
            "drafted_tokens": 3600.0,
            "step_seconds": None,
        }
        judge(connection, run, critical, *units, at=1600.0, summary=summary(**figures))
        save(connection, host="gpu8", port=None, ended=1999.5)
        sample = save(connection, host="sample", sample=True)
        judge(connection, sample, finding(), at=1600.0, summary=summary(acceptance_length=5.0))
        save_channel(connection, "ops", "webhook")
        for event in ("opened", "resolved"):
            enqueue(connection, "ops", event, {}, at=1600.0)
        mark_sent(connection, due(connection, at=1600.0)[:1], answer="200 OK", at=1601.0)
    return database


def test_the_whole_exposition(filled: Database) -> None:
    response = scrape(filled)
    assert response.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert response.text.replace(f'version="{product_version()}"', 'version="VERSION"') == GOLDEN.read_text(
        encoding="utf-8"
    )


def test_open_metrics_on_request(filled: Database) -> None:
    response = scrape(filled, "application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
    assert response.headers["content-type"].startswith("application/openmetrics-text; version=1.0.0")
    assert response.text.endswith("# EOF\n")
    families = {family.name for family in openmetrics.text_string_to_metric_families(response.text)}
    assert families == {family.name for family in text_string_to_metric_families(scrape(filled).text)}


@pytest.mark.needs("promtool")
def test_prometheus_finds_nothing_to_complain_about(filled: Database) -> None:
    done = subprocess.run(
        ["promtool", "check", "metrics"], input=scrape(filled).text, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout + done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("accept", "read", "write"),
    [
        (PLAIN, text_string_to_metric_families, generate_latest),
        (OPEN, openmetrics.text_string_to_metric_families, openmetrics_exposition.generate_latest),
    ],
    ids=["plain", "open"],
)
def test_the_text_is_the_librarys_letter_by_letter(
    filled: Database, accept: str, read: Callable[[str], Iterable[Metric]], write: Callable[[Given], bytes]
) -> None:
    with filled.transaction() as connection:
        run = save(connection, host="gpu9", deployment='"\\\n\\n\u00e9\u3042 {,}', labels={"zone": 'a"b'})
        numbers = {
            "acceptance_length": 1e6,
            "verify_steps": 123456789.5,
            "drafted_tokens": 1e22,
            "accepted_tokens": 999999.875,
            "generated_tokens": 7,
            "step_seconds": 1e-7,
            "speedup": -1.5e9,
            "running_requests": float("inf"),
            "step_cost_ratio": True,
            "acceptance_rate_at": [0.1, None, float("nan"), 1, "0.5", 2e6],
        }
        judge(connection, run, at=1600.0, summary=summary(**numbers))
    text = scrape(filled, accept, ExporterChoices(labels=("zone", "a"))).content
    assert write(Given(list(read(text.decode())))) == text
    shown = series(scrape(filled).text, "draftscope_position_acceptance_ratio")
    assert [(labels["position"], value) for labels, value in shown if labels["run"] == str(run)] == [
        ("1", 0.1),
        ("4", 1.0),
        ("6", 2e6),
    ]
    assert ({"run": str(run)}, -1.5e9) in series(scrape(filled).text, "draftscope_speedup_ratio")


@pytest.mark.parametrize("scheme", ["allow-utf-8", "underscores", "dots", "values"])
@pytest.mark.parametrize("accept", ["text/plain;version=1.0.0", "application/openmetrics-text;version=1.0.0"])
def test_names_stay_as_they_are_whatever_escaping_is_asked_for(filled: Database, accept: str, scheme: str) -> None:
    asked = scrape(filled, f"{accept}; escaping={scheme};q=0.5")
    assert asked.text == scrape(filled, accept).text
    assert asked.headers["content-type"].endswith("escaping=underscores")


def test_prometheus_gets_it_packed(filled: Database) -> None:
    exporter = Exporter(filled, clock=lambda: NOW)
    packed = answer(exporter, encoding="gzip")
    assert packed.headers["content-encoding"] == "gzip"
    count = "draftscope_exporter_scrapes_total"
    assert re.sub(f"{count} .*", "", packed.text) == re.sub(f"{count} .*", "", answer(exporter).text)
    assert series(answer(exporter).text, count) == [({}, 3.0)]
    assert gzip.compress(b"") not in packed.content


def test_samples_never_appear(sqlite_database: Database) -> None:
    load_samples(sqlite_database)
    text = scrape(sqlite_database).text
    assert "draftscope_runs 0.0" in text
    assert not re.search(r"\{[^}]*run=", text)


def test_each_place_has_its_latest_run_and_there_is_a_limit(database: Database) -> None:
    with database.transaction() as connection:
        for host in ("gpu1", "gpu2", ""):
            for start in range(5):
                save(connection, host=host, started=100.0 * start, ended=100.0 * start + 50, source=f"{start}.log")
        for source in ("a.log", "b.log"):
            save(connection, host="", model="", source=source)
        newest = list_runs(connection, limit=1).runs[0]
    with database.reading() as connection:
        present = present_runs(connection, since=0, most=1000)
        assert (len(present.runs), present.left_out) == (3 + 2, 0)
        judged = load_judged(connection, [run.id for run in present.runs])
        assert {item.started_at for item in judged if item.serving.target_model} == {400.0}
        fewer = present_runs(connection, since=0, most=1)
        assert ([run.id for run in fewer.runs], fewer.left_out) == ([newest.id], 4)


def test_series_end_with_the_next_run_at_the_place_and_after_silence(database: Database) -> None:
    now = [2000.0]
    exporter = Exporter(database, ExporterChoices(forget_after_seconds=1000.0), clock=lambda: now[0])

    def shown() -> set[str]:
        return {labels["run"] for labels, _ in series(answer(exporter).text, "draftscope_acceptance_length_tokens")}

    with database.transaction() as connection:
        first = save(connection, started=100.0, ended=1200.0)
        judge(connection, first, at=1500.0, summary=summary(acceptance_length=1.8))
    assert shown() == {str(first)}
    with database.transaction() as connection:
        second = save(connection, started=1300.0, ended=1900.0)
        judge(connection, second, at=1950.0, summary=summary(acceptance_length=1.9))
    assert shown() == {str(second)}
    now[0] = 2901.0
    assert shown() == set()
    assert series(answer(exporter).text, "draftscope_runs") == [({}, 2.0)]
    with database.transaction() as connection:
        extend_run(connection, second, 1, [], ended_at=2890.0)
    assert shown() == {str(second)}


def test_what_changed_is_shown_at_once_and_only_that_is_read_again(database: Database) -> None:
    exporter = Exporter(database, ExporterChoices(labels=("team",)), clock=lambda: NOW)
    with database.transaction() as connection:
        runs = [save(connection, host=host) for host in ("gpu1", "gpu2")]
        for run in runs:
            judge(connection, run, finding(), at=1600.0, summary=summary(acceptance_length=1.8))
    read: list[int] = []

    @event.listens_for(database.engine, "before_cursor_execute")
    def note(_c: object, _k: object, statement: str, parameters: object, *_: object) -> None:
        if "FROM verdicts" in statement:
            values = parameters.values() if isinstance(parameters, dict) else parameters
            read.extend(value for value in values if value in runs)

    def lengths() -> dict[str, float]:
        found = series(answer(exporter).text, "draftscope_acceptance_length_tokens")
        return {labels["run"]: value for labels, value in found}

    first, second = map(str, runs)
    assert lengths() == {first: 1.8, second: 1.8}
    assert sorted(read) == runs
    assert lengths() == {first: 1.8, second: 1.8}
    assert sorted(read) == runs
    with database.transaction() as connection:
        judge(connection, runs[1], at=1700.0, summary=summary(acceptance_length=2.5))
    read.clear()
    assert lengths() == {first: 1.8, second: 2.5}
    assert read == [runs[1]]
    assert series(answer(exporter).text, "draftscope_open_findings") == [
        ({"run": first, "rule": "PAY001", "severity": "warning"}, 1.0)
    ]
    with database.transaction() as connection:
        label_run(connection, runs[0], {"team": "ads"})
        extend_run(connection, runs[1], 1, [], ended_at=1990.0)
    read.clear()
    text = answer(exporter).text
    assert {labels["run"]: labels["team"] for labels, _ in series(text, "draftscope_run_info")} == {
        first: "ads",
        second: "search",
    }
    assert ({"run": second}, 10.0) in series(text, "draftscope_data_age_seconds")
    assert read == [runs[0]]


def test_labels_name_runs_and_models_and_nothing_that_grows_with_traffic(filled: Database) -> None:
    targets = [TargetState("http://gpu7:30000", scrapes=1)]
    text = answer(Exporter(filled, targets=lambda: targets, clock=lambda: NOW)).text
    found = list(text_string_to_metric_families(text))
    assert {name for family in found for sample in family.samples for name in sample.labels} == {
        "run", "deployment", "replica", "engine", "engine_version", "method", "model", "draft", "question", "state",
        "rule", "severity", "position", "channel", "status", "target", "version",
    }  # fmt: skip
    assert [f"{family.name}{'_total' if family.type == 'counter' else ''}" for family in found] == [
        family.name for family in all_families()
    ]
    assert "search" not in text


def test_positions_are_bounded(database: Database) -> None:
    with database.transaction() as connection:
        run = save(connection)
        judge(connection, run, at=1600.0, summary=summary(acceptance_rate_at=[0.5] * (MOST_POSITIONS + 5)))
    found = series(scrape(database).text, "draftscope_position_acceptance_ratio")
    assert [labels["position"] for labels, _ in found] == [str(i + 1) for i in range(MOST_POSITIONS)]


def test_targets_tell_how_watching_them_goes(sqlite_database: Database) -> None:
    states = [
        TargetState("http://gpu1:30000", scrapes=5, failures=1, last_success_at=1990.0),
        TargetState("http://gpu2:30000", scrapes=3, failures=2, last_success_at=1500.0, error="no answer"),
        TargetState("http://gpu3:30000", failures=1, error="refused"),
        TargetState("http://gpu4:30000"),
    ]
    text = answer(Exporter(sqlite_database, targets=lambda: states, clock=lambda: NOW)).text

    def of(name: str) -> dict[str, float]:
        return {labels["target"][7:11]: value for labels, value in series(text, f"draftscope_target_{name}")}

    assert of("up") == {"gpu1": 1.0, "gpu2": 0.0, "gpu3": 0.0}
    assert of("age_seconds") == {"gpu1": 10.0, "gpu2": 500.0}
    assert of("scrapes_total") == {"gpu1": 5.0, "gpu2": 3.0, "gpu3": 0.0, "gpu4": 0.0}
    assert of("failures_total") == {"gpu1": 1.0, "gpu2": 2.0, "gpu3": 1.0, "gpu4": 0.0}


@pytest.mark.parametrize("family", all_families(), ids=lambda family: family.name)
def test_names_carry_base_units(family: object) -> None:
    unitless = ("_info", "_verdict", "_up", "_drifted", "_statistic", "_threshold", "_runs", "_findings", "_arguments",
                "_lines", "_deliveries", "_requests")  # fmt: skip
    units = ("_tokens", "_ratio", "_seconds", "_per_second", "_total")
    assert family.name.startswith("draftscope_")
    assert family.name.endswith(units + unitless)


def test_choices_are_read_and_checked() -> None:
    assert read_choices({}, "x") == ExporterChoices()
    table = {"labels": ["team", "cluster"], "forget_after_seconds": 60}
    assert read_choices(table, "x") == ExporterChoices(("team", "cluster"), 60.0)
    with pytest.raises(UnknownName, match="did you mean labels"):
        read_choices({"label": ["team"]}, "x")
    for table, problem in (
        ({"labels": "team"}, "not a list"),
        ({"labels": ["run"]}, "cannot be exported"),
        ({"labels": ["team", "team"]}, "stands there twice"),
        ({"labels": ["my-team"]}, "no name of a Prometheus label"),
        ({"labels": ["__team"]}, "no name of a Prometheus label"),
        ({"forget_after_seconds": 0}, "not above 0"),
        ({"forget_after_seconds": "a day"}, "not a number"),
    ):
        with pytest.raises(MalformedInput, match=problem):
            read_choices(table, "x")


@pytest.fixture
def closed(sqlite_database: Database, tmp_path: Path) -> Iterator[Database]:
    sqlite_database.close()
    for path in tmp_path.glob("draftscope.db*"):
        path.write_bytes(b"not a database" * 100)
    yield sqlite_database
    sqlite_database.close()


def test_a_database_that_does_not_answer_is_an_error_not_an_empty_page(closed: Database) -> None:
    with pytest.raises(StorageError, match="not a draftscope database"):
        scrape(closed)
