"""The Prometheus exposition, as whole text."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI
from prometheus_client.openmetrics import parser as openmetrics
from prometheus_client.parser import text_string_to_metric_families

from collector.domain.errors import StorageError
from collector.domain.findings import Severity
from collector.storage.deliveries import due, enqueue, mark_sent, save_channel
from collector.storage.engine import Database
from collector.storage.overview import load_overview
from collector.storage.runs import list_runs
from dashboard.exporter import FIGURES, RUNS_PER_PLACE, metrics_router
from dashboard.pages.templating import product_version
from dashboard.samples import load_samples
from tests.out.stored import finding, judge, save

GOLDEN = Path(__file__).parent / "golden" / "metrics.txt"
NOW = 2000.0


def scrape(database: Database, accept: str = "text/plain;version=0.0.4") -> httpx.Response:
    import asyncio

    app = FastAPI()
    app.include_router(metrics_router(database, clock=lambda: NOW))

    async def ask() -> httpx.Response:
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://draftscope.test") as client:
            return await client.get("/metrics", headers={"Accept": accept})

    return asyncio.run(ask())


def summary(**values: float) -> dict:
    return {
        "method": "eagle3",
        "quantities": {key: {"value": value} for key, value in values.items()},
        "overridden": 3,
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
        }
        judge(connection, run, critical, *units, at=1600.0, summary=summary(**figures))
        save(connection, host="gpu8", port=None, ended=1999.5)
        sample = save(connection, host="sample", sample=True)
        judge(connection, sample, finding(), at=1600.0, summary=summary(acceptance_length=5.0))
        save_channel(connection, "ops", "webhook")
        for event in ("opened", "resolved"):
            enqueue(connection, "ops", event, {}, at=1600.0)
        mark_sent(connection, due(connection, at=1600.0)[0], at=1601.0)
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


def test_samples_never_appear(sqlite_database: Database) -> None:
    load_samples(sqlite_database)
    text = scrape(sqlite_database).text
    assert "draftscope_runs 0.0" in text
    assert not re.search(r"\{[^}]*run=", text)


def test_the_number_of_series_is_bounded(database: Database) -> None:
    with database.transaction() as connection:
        for host in ("gpu1", "gpu2", ""):
            for start in range(5):
                save(connection, host=host, started=100.0 * start, ended=100.0 * start + 50, source=f"{start}.log")
        for source in ("a.log", "b.log"):
            save(connection, host="", model="", source=source)
        newest = list_runs(connection, limit=1).runs[0]
    with database.reading() as connection:
        overview = load_overview(connection, per_place=RUNS_PER_PLACE, most_runs=1000)
        assert len(overview.runs) == 3 * RUNS_PER_PLACE + 2
        assert {run.started_at for run in overview.runs if run.serving.target_model} == {300.0, 400.0}
        fewer = load_overview(connection, per_place=RUNS_PER_PLACE, most_runs=1).runs
        assert [run.id for run in fewer] == [newest.id]
        assert overview.unjudged_runs == overview.stored_runs == 17


def test_labels_name_runs_and_models_and_nothing_that_grows_with_traffic(filled: Database) -> None:
    labels = {
        name
        for family in text_string_to_metric_families(scrape(filled).text)
        for s in family.samples
        for name in s.labels
    }
    assert labels == {
        "run", "deployment", "engine", "engine_version", "method", "model", "draft", "question", "state", "rule",
        "severity", "channel", "status", "version",
    }  # fmt: skip


def test_every_figure_is_in_base_units() -> None:
    assert all(name.endswith(("_tokens", "_ratio", "_seconds", "_per_second")) for name in FIGURES)


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
