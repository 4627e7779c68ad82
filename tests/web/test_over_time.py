"""Watched runs: their page is the last judgement, their figures over time come from the tiers."""

import json
import time

import pytest

from collector.storage.engine import open_database
from collector.storage.live import Seen, append_live
from collector.storage.sources import source_at
from dashboard.alerts import Alerting
from dashboard.diagnoses import Diagnoses
from dashboard.judging import judge_runs
from dashboard.service import build_app
from dashboard.settings import Settings
from tests.web.conftest import Client
from tests.web.pages_read import Page
from tests.web.watched import watch, windows

NOW = time.time()
HOURS = 3600.0


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """Two replicas of "chat" up to now, and one of "old" that ended ten days ago."""
    with open_database(f"sqlite:///{tmp_path_factory.mktemp('watched') / 'draftscope.db'}") as database:
        runs = [watch(database, number, windows(NOW - 9 * HOURS, NOW, seed=number)) for number in (1, 2)]
        ended = NOW - 240 * HOURS
        runs.append(watch(database, 3, windows(ended - 2 * HOURS, ended), deployment="old & <b>slow</b>"))
        judge_runs(Diagnoses(database), runs, Alerting())
        yield Client(build_app(Diagnoses(database), Settings())), runs, database


def test_the_page_of_a_watched_run_shows_the_last_judgement_and_judges_nothing(fleet):
    client, (_, run, _), database = fleet
    before = client.get(f"/api/v1/runs/{run}/diagnosis").json()
    with database.transaction() as connection:
        source = source_at(connection, "http://node2:8000/metrics", at=NOW)
        append_live(connection, [Seen(run, source, windows(NOW, NOW + 600, shares=(0.1, 0.0, 0.0)), [])])
    assert client.get(f"/api/v1/runs/{run}/diagnosis").json() == before
    page = Page(client.get(f"/runs/{run}").text)
    assert "Judged" in page.said("main")
    assert f"/runs/{run}/over-time" in page.values("hx-get")
    assert "c-time" not in page.charts
    judge_runs(Diagnoses(database), [run], Alerting())
    after = client.get(f"/api/v1/runs/{run}/diagnosis").json()
    assert (
        after["runs"][0]["quantities"]["verify_steps"]["value"]
        > before["runs"][0]["quantities"]["verify_steps"]["value"]
    )
    series = client.get(f"/api/v1/runs/{run}/series", params={"quantity": "verify_steps"}).json()
    assert series["total"] == 550


@pytest.mark.parametrize("chosen", ["1h", "6h", "24h", "7d", "30d", "all"])
def test_every_range_draws_what_the_api_gives(fleet, chosen):
    client, (run, *_), _ = fleet
    page = Page(client.get(f"/runs/{run}/over-time", params={"range": chosen}).text)
    assert set(page.charts) == {"t-acceptance", "t-throughput", "t-step"}
    (current,) = [
        attributes for tag, attributes in page.tags if tag == "a" and attributes.get("id") == f"range-{chosen}"
    ]
    assert current["aria-current"] == "true"
    for chart, quantity in (("t-acceptance", "acceptance_length"), ("t-step", "step_seconds")):
        (address,) = [link for link in page.values("href") if f"quantity={quantity}" in link]
        trace = client.get(f"{address}&points=600").json()
        mean = [value for value in page.charts[chart]["data"][-1]["y"] if value is not None]
        scale = 1000 if chart == "t-step" else 1
        assert mean == pytest.approx([scale * value for value in trace["value"]], rel=1e-3)
    assert mean == pytest.approx([1000 * 24 * 60 / 2400] * len(mean), rel=0.1)  # 24 requests share 2,400 steps a minute


def test_ranges_without_windows_say_so_and_when_the_last_was(fleet):
    client, (_, _, old), _ = fleet
    page = Page(client.get(f"/runs/{old}/over-time", params={"range": "6h"}).text)
    assert page.charts == {}
    said = page.said("over-time")
    assert "No windows in the last 6 hours" in said
    assert "The last one is from" in said
    assert f"/runs/{old}/over-time?range=all" in page.values("href")
    usual = Page(client.get(f"/runs/{old}/over-time").text)
    assert set(usual.charts) == {"t-acceptance", "t-throughput", "t-step"}


def test_htmx_gets_the_section_alone(fleet):
    client, (run, *_), _ = fleet
    part = client.get(f"/runs/{run}/over-time?range=6h", headers={"HX-Request": "true"})
    assert part.text.lstrip().startswith("<section")
    assert "<script src" not in part.text
    assert part.headers["vary"].startswith("HX-Request")
    assert f"/runs/{run}?range=6h" in Page(part.text).values("hx-push-url")
    assert f"/runs/{run}/over-time?range=6h" in Page(client.get(f"/runs/{run}?range=6h").text).values("hx-get")


def test_groups_are_linked_from_the_list_and_drawn(fleet):
    client, _, _ = fleet
    links = [link for link in Page(client.get("/").text).values("href") if link.startswith("/groups?")]
    assert sorted(links) == ["/groups?group=chat", "/groups?group=old+%26+%3Cb%3Eslow%3C%2Fb%3E"]
    chat, old = (Page(client.get(link).text) for link in sorted(links))
    assert set(chat.charts) == {"t-acceptance", "t-throughput", "t-step"}
    assert "old & <b>slow</b>" in old.said("main")
    assert ("b", {}) not in old.tags[:20]
    assert client.get("/groups?group=none").status_code == 404


def test_a_report_of_a_watched_run_has_its_plots_inside(fleet):
    client, (run, *_), _ = fleet
    report = client.get(f"/runs/{run}/report")
    page = Page(report.text)
    assert {"t-acceptance", "t-throughput", "t-step"} <= set(page.charts)
    assert page.values("hx-get") == []


def test_a_run_of_a_log_is_not_watched(samples):
    run = samples.app.state.store.list_runs()[0].id
    assert "over-time" not in samples.get(f"/runs/{run}").text
    page = Page(samples.get(f"/runs/{run}/over-time").text)
    assert "No window was seen of it yet" in page.said("main")
    assert samples.get("/runs/99999/over-time").status_code == 404


def test_live_runs_are_compared_as_they_were_judged(fleet):
    client, (one, two, _), _ = fleet
    page = Page(client.get("/compare", params={"run": [one, two]}).text)
    assert set(page.charts) == {"c-lengths", "c-throughputs"}
    document = client.get("/api/v1/compare", params={"run": [one, two]}).json()
    lengths = {
        entry["key"]: entry for entry in document["against"][0]["differences"]
    }["acceptance_length"]  # fmt: skip
    judged = client.get(f"/api/v1/runs/{one}/diagnosis").json()["runs"][0]["quantities"]["acceptance_length"]
    assert lengths["before"]["value"] == pytest.approx(judged["value"])
    assert json.dumps(document)
