"""Each page's main task with watched engines among the runs, on both databases."""

import time
from contextlib import nullcontext
from datetime import UTC, datetime

import pytest
from playwright.sync_api import expect

from collector.storage.engine import open_database
from collector.storage.live import Seen, append_live
from collector.storage.sources import source_at
from dashboard.diagnoses import Diagnoses
from dashboard.samples import FOLDER
from dashboard.service import build_app
from dashboard.settings import Settings
from tests.browser.screenshots import fill
from tests.browser.test_run_page import SIDEWAYS
from tests.conftest import empty_schema
from tests.web.watched import windows

pytestmark = pytest.mark.browser

HOUR = 3600.0


@pytest.fixture(scope="module", params=["sqlite", "wheel"])
def stored(request, tmp_path_factory):
    """Sample runs and watched ones."""
    file = tmp_path_factory.mktemp("live") / "draftscope.db"
    address = nullcontext(f"sqlite:///{file}") if request.param == "sqlite" else empty_schema(request)
    with address as url, open_database(url, migrate=True) as database:
        fill(database)
        yield database


@pytest.fixture(scope="module")
def app(stored):
    return build_app(Diagnoses(stored), Settings())


def drawn(page, chart):
    """The lines of a plot once it stands there."""
    page.locator(f"#{chart}").scroll_into_view_if_needed()
    page.locator(f"#{chart} .main-svg").first.wait_for()
    return page.locator(f"#{chart} .scatterlayer .trace")


def test_list_leads_to_a_watched_run_whose_range_is_picked_by_keyboard(open_page, app):
    page = open_page("/")
    page.locator("#q").fill("ACC007")
    expect(page.locator(".fl .name")).to_have_count(1)
    run = page.locator(".fl[data-run]").get_attribute("data-run")
    page.locator(".fl .name a").press("Enter")
    expect(page.locator("#range-24h")).to_have_attribute("aria-current", "true")
    assert drawn(page, "t-acceptance").count() == 5  # it paused once: two bands of two edges each, and the mean
    page.locator("#range-1h").press("Enter")
    expect(page.locator("#range-1h")).to_have_attribute("aria-current", "true")
    expect(page.locator("#range-1h")).to_be_focused()
    assert page.url.endswith(f"/runs/{run}?range=1h")
    drawn(page, "t-step")
    page.locator("figure:has(#t-acceptance) summary").press("Enter")
    table = page.locator("figure:has(#t-acceptance) table")
    trace = app.state.store.report(run)
    assert trace.watched
    assert len(table.locator("tbody tr").all()) in range(45, 90)  # by minute, not the few hundred of a day
    page.reload()
    expect(page.locator("#range-1h")).to_have_attribute("aria-current", "true")
    for width in (390, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate(SIDEWAYS) == 0, width


def test_figures_over_time_follow_a_new_judgement(open_page, stored, pages):
    page = open_page(f"{pages['live-run']}?range=1h")
    points = "document.getElementById('t-acceptance').data.at(-1).x.length"
    drawn(page, "t-acceptance")
    before = page.evaluate(points)
    run = int(pages["live-run"].rsplit("/", 1)[1])
    now = time.time()
    with stored.transaction() as connection:
        source = source_at(connection, "http://node2:8000/metrics", at=now)
        append_live(connection, [Seen(run, source, windows(now, now + 0.1 * HOUR), [])])
    page.evaluate("htmx.trigger('#over-time', 'renew')")
    expect(page.locator("#over-time figure").first).to_contain_text("at the end")
    page.wait_for_timeout(300)
    drawn(page, "t-acceptance")
    assert page.evaluate(points) > before


def test_a_range_without_windows_leads_to_all(open_page, pages):
    page = open_page(pages["live-run-gone"])
    page.get_by_text("No windows in the last hour").wait_for()
    page.get_by_role("link", name="Show all").press("Enter")
    assert drawn(page, "t-acceptance").count() == 1  # each point is one window
    assert page.url.endswith("range=all")


def test_a_plot_fits_a_window_that_was_made_wider(open_page, pages):
    page = open_page(pages["group"])
    page.set_viewport_size({"width": 390, "height": 900})
    page.reload()
    drawn(page, "t-acceptance")
    ticks = "() => document.getElementById('t-acceptance').layout.xaxis.nticks"
    assert page.evaluate(ticks) == 4
    page.set_viewport_size({"width": 1440, "height": 900})
    page.wait_for_function(f"{ticks} !== 4")
    page.wait_for_function(
        "() => { const plot = document.getElementById('t-acceptance');"
        " return Math.abs(plot.querySelector('.main-svg').clientWidth - plot.clientWidth) < 2; }"
    )


def test_a_deployment_is_seen_over_time_without_scripts(open_page, pages):
    page = open_page("/", java_script_enabled=False)
    page.get_by_role("link", name="Over time: chat").click()
    page.get_by_role("link", name="7 days").click()
    assert "range=7d" in page.url
    table = page.locator("figure", has=page.locator("#t-throughput")).get_by_role("table")
    assert table.is_visible()


def test_replicas_are_compared(open_page, pages):
    page = open_page(pages["compare-live"])
    page.get_by_role("heading", name="http://node2:8000/metrics against http://node1:8000/metrics").wait_for()
    assert drawn(page, "c-lengths").count() == 2
    expect(page.locator(".compared [data-word=fell]").first).to_be_visible()


def test_a_run_page_says_what_its_diagnosis_says(open_page, app, pages):
    for name in ("run", "live-run"):
        page = open_page(pages[name])
        document = app.state.store.report(pages[name].rsplit("/", 1)[1]).document
        states = page.locator(".verdict").evaluate_all("tiles => tiles.map(tile => tile.dataset.state)")
        assert states == [verdict["state"] for verdict in document["verdicts"].values()]
        length = document["runs"][0]["quantities"]["acceptance_length"]
        expect(page.locator(".verdict-fig").nth(1)).to_contain_text(f"{length['value']:.2f}")
        assert page.locator("#findings .finding").count() == len(document["findings"])
    onset = next(f for f in document["findings"] if f["rule"] == "ACC004")["values"]["onset"]
    row = page.locator("#ACC004 tr", has_text="Since")
    expect(row).to_contain_text(f"{datetime.fromtimestamp(onset, UTC):%H:%M}")


def test_files_are_uploaded_checked_and_listed(open_page, tmp_path):
    for path in (FOLDER / "kimi-k25-first-run").iterdir():
        (tmp_path / path.name).write_text(path.read_text().replace("port=30000", "port=30111"))
    page = open_page("/upload")
    page.locator("#files").set_input_files(sorted(tmp_path.iterdir()))
    page.get_by_role("button", name="Upload and judge").press("Enter")
    page.wait_for_url("**/runs/*")
    page.get_by_role("heading", name="Four verdicts").wait_for(state="attached")
    page.goto(page.url.rsplit("/runs/", 1)[0] + "/alerts")
    page.get_by_role("heading", level=1).wait_for()
    page.locator("nav.nav a", has_text="Rules").press("Enter")
    page.locator(".rule-row a", has_text="ACC007").first.press("Enter")
    expect(page.locator("main a", has_text="Llama-3.3-70B-Instruct")).to_be_visible()
